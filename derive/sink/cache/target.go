package cache

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/tailwater/tailwater/derive/sink"
)

// target is one view in the database.
type target struct {
	opts     Options
	client   rueidis.Client
	view     string
	log      string // our id, hex
	template *template
	ttl      time.Duration
	hash     string // key of the mark
	epochs   string // checkpoint that keeps the epoch

	found   mark   // the mark in the database as last read or written
	epoch   uint64 // ours; 0: not claimed
	floor   uint64 // versions below are in the database already
	unknown bool   // a script's outcome is not known: raise the epoch first
	foreign error  // another writer has the target; only Begin takes it
}

// open reads the mark and raises the epoch of one that is ours. Epochs that we
// did not raise are a second writer with a copy of our data directory.
func (t *target) open(ctx context.Context) error {
	rctx, cancel := context.WithTimeout(ctx, t.opts.Timeout)
	defer cancel()
	var err error
	if t.found, err = readMark(rctx, t.client, t.hash); err != nil {
		return err
	}
	saved, wrote, err := t.savedEpoch()
	if err != nil {
		return err
	}
	switch {
	case t.found.log != t.log:
		if t.found.log != "" && wrote {
			t.foreign = t.otherWriter()
		}
		return nil
	case t.found.epoch > saved:
		t.foreign = t.otherWriter()
		return nil
	}
	if t.found.complete {
		t.floor = t.found.csn
	}
	if err := t.raise(ctx, t.found, false, 0, ""); err != nil {
		return err
	}
	t.found.epoch = t.epoch
	return nil
}

func (t *target) otherWriter() error {
	return fmt.Errorf("%w: view %q in redis %s (its mark is %s). Stop the other one, then 'tailwater view rebuild %s'",
		sink.ErrOtherWriter, t.view, t.opts.Addr, t.hash, t.view)
}

// Stamp returns the mark as a stamp.
func (t *target) Stamp() (sink.Stamp, bool) { return t.found.stamp() }

// Begin claims the target for a build, whoever had it, or goes on with one.
func (t *target) Begin(ctx context.Context, s sink.Stamp) error {
	t.floor = 0
	if t.epoch != 0 && !t.found.complete && t.found.fp == s.Fingerprint && !t.unknown {
		return nil
	}
	rctx, cancel := context.WithTimeout(ctx, t.opts.Timeout)
	defer cancel()
	found, err := readMark(rctx, t.client, t.hash)
	if err != nil {
		return classify(err)
	}
	if err := t.raise(ctx, found, true, found.seq+1, s.Fingerprint); err != nil {
		return fmt.Errorf("begin to build view %q in redis: %w", t.view, err)
	}
	t.found = mark{log: t.log, epoch: t.epoch, seq: found.seq + 1, fp: s.Fingerprint}
	t.foreign, t.unknown = nil, false
	return nil
}

// Write writes the updates in scripts of bounded size; the last one brings the stamp.
func (t *target) Write(ctx context.Context, updates []sink.Update, s sink.Stamp) ([]sink.Result, error) {
	if err := t.fence(ctx); err != nil {
		return nil, err
	}
	results := make([]sink.Result, len(updates))
	b := t.newBatch()
	for i := range updates {
		u := &updates[i]
		if u.Version < t.floor {
			results[i].Outcome = sink.Stale
			continue
		}
		key, err := t.template.key(u)
		if err == nil && len(u.Doc) > maxValue {
			err = fmt.Errorf("the document has %d bytes; a value of Redis has at most %d", len(u.Doc), maxValue)
		}
		if err != nil {
			results[i] = sink.Result{Outcome: sink.Rejected, Reason: err.Error()}
			continue
		}
		if b.full(len(key) + len(u.Doc)) {
			if err := t.run(ctx, b, t.found.csn, t.found.time, t.found.complete); err != nil {
				return nil, err
			}
			b = t.newBatch()
		}
		b.add(key, u.Doc)
	}
	return results, t.run(ctx, b, max(s.CSN, t.found.csn), max(s.Time, t.found.time), s.Complete)
}

// fence makes sure that the target is ours, and that nothing which an earlier
// connection still holds takes effect.
func (t *target) fence(ctx context.Context) error {
	switch {
	case t.foreign != nil:
		return t.foreign
	case t.epoch == 0:
		return fmt.Errorf("%w: view %q has no mark in redis", sink.ErrWentBack, t.view)
	case !t.unknown:
		return nil
	}
	rctx, cancel := context.WithTimeout(ctx, t.opts.Timeout)
	defer cancel()
	now, err := readMark(rctx, t.client, t.hash)
	if err != nil {
		return classify(err)
	}
	if err := t.judge(now); err != nil {
		return err
	}
	if err := t.raise(ctx, now, false, 0, ""); err != nil {
		return err
	}
	// Between the two the script in question may still have run.
	rctx, cancel = context.WithTimeout(ctx, t.opts.Timeout)
	defer cancel()
	if now, err = readMark(rctx, t.client, t.hash); err != nil {
		return classify(err)
	}
	if now.log != t.log || now.epoch != t.epoch {
		return t.judge(now)
	}
	t.found, t.unknown = now, false
	return nil
}

// judge says what a mark means that is not the one expected; nil: it may be ours
// with or without the script whose outcome is unknown. The epoch in it may also
// be one whose claim was answered to nobody.
func (t *target) judge(now mark) error {
	saved, _, err := t.savedEpoch()
	switch {
	case err != nil:
		return err
	case now.log == "":
		return fmt.Errorf("%w: the mark of view %q is gone from redis %s", sink.ErrWentBack, t.view, t.opts.Addr)
	case now.log != t.log, now.epoch > saved:
		t.foreign = t.otherWriter()
		return t.foreign
	case now.epoch < t.epoch, now.seq < t.found.seq, now.seq > t.found.seq+1:
		return fmt.Errorf("%w: redis %s holds write %d of view %q and we wrote %d", sink.ErrWentBack, t.opts.Addr, now.seq, t.view, t.found.seq)
	}
	return nil
}

// batch is the content of one script.
type batch struct {
	count, bytes, maxCount, maxBytes int

	set, del, values []string
}

func (t *target) newBatch() *batch {
	return &batch{maxCount: t.opts.BatchCount, maxBytes: t.opts.BatchBytes}
}

func (b *batch) full(next int) bool {
	return b.count >= b.maxCount || b.count > 0 && b.bytes+next > b.maxBytes
}

func (b *batch) add(key string, doc []byte) {
	b.count++
	b.bytes += len(key) + len(doc)
	if doc == nil {
		b.del = append(b.del, key)
		return
	}
	b.set, b.values = append(b.set, key), append(b.values, rueidis.BinaryString(doc))
}

// run executes one script.
func (t *target) run(ctx context.Context, b *batch, csn uint64, at int64, complete bool) error {
	next := t.found
	next.csn, next.seq, next.time, next.complete = csn, t.found.seq+1, at, complete
	flag := "0"
	if complete {
		flag = "1"
	}
	keys := append(append(append(make([]string, 0, 1+b.count), t.hash), b.set...), b.del...)
	args := append(make([]string, 0, 10+len(b.values)),
		t.log, strconv.FormatUint(t.epoch, 10), strconv.FormatUint(t.found.csn, 10), strconv.FormatUint(t.found.seq, 10),
		strconv.FormatUint(csn, 10), strconv.FormatUint(next.seq, 10), strconv.FormatInt(at, 10), flag,
		strconv.FormatInt(t.ttl.Milliseconds(), 10), strconv.Itoa(len(b.values)))
	args = append(args, b.values...)
	ctx, cancel := context.WithTimeout(ctx, t.opts.Timeout)
	defer cancel()
	refused, err := writeScript.Exec(ctx, t.client, keys, args).AsStrSlice()
	if err != nil {
		t.unknown = true
		return classify(err)
	}
	if len(refused) == 0 {
		t.found = next
		return nil
	}
	now := mark{log: refused[0]}
	for i, p := range []*uint64{&now.epoch, &now.csn, &now.seq} {
		if i+1 < len(refused) {
			*p, _ = strconv.ParseUint(refused[i+1], 10, 64)
		}
	}
	if err := t.judge(now); err != nil {
		return err
	}
	return fmt.Errorf("%w: redis %s holds write %d at CSN %d of view %q and we wrote %d at %d",
		sink.ErrWentBack, t.opts.Addr, now.seq, now.csn, t.view, t.found.seq, t.found.csn)
}

// Flush moves the stamp, and so finds out a target that is no longer ours or lost writes.
func (t *target) Flush(ctx context.Context, s sink.Stamp) error {
	if err := t.fence(ctx); err != nil {
		return err
	}
	if s.CSN > t.found.csn || s.Complete != t.found.complete {
		return t.run(ctx, t.newBatch(), max(s.CSN, t.found.csn), max(s.Time, t.found.time), s.Complete)
	}
	rctx, cancel := context.WithTimeout(ctx, t.opts.Timeout)
	defer cancel()
	now, err := readMark(rctx, t.client, t.hash)
	if err != nil {
		return classify(err)
	}
	if now == t.found {
		return nil
	}
	if err := t.judge(now); err != nil {
		return err
	}
	return fmt.Errorf("%w: the mark of view %q in redis %s is not the one we wrote", sink.ErrWentBack, t.view, t.opts.Addr)
}

// Drop deletes every key of the template and the mark.
func (t *target) Drop(ctx context.Context) error {
	none := func(string) (bool, error) { return false, nil }
	err := t.eachPage(ctx, func(keys []string) error {
		return t.client.Do(ctx, t.client.B().Unlink().Key(keys...).Build()).Error()
	}, none)
	if err != nil {
		return fmt.Errorf("drop view %q from redis: %w", t.view, classify(err))
	}
	err = t.client.Do(ctx, t.client.B().Del().Key(t.hash).Build()).Error()
	return errors.Join(classify(err), t.opts.State.SaveCheckpoint(t.epochs, nil))
}

// Close has nothing to do: the connection is the sink's.
func (t *target) Close() error { return nil }
