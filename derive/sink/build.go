package sink

import (
	"context"
	"hash/maphash"
	"math"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
)

// build sends the newest version of every document up to the topic's end, or
// goes on with a build that was left unfinished. stream catches up and finishes it.
func (s *session) build(ctx context.Context) error {
	if err := s.awaitReady(ctx); err != nil {
		return err
	}
	s.csn, s.time = 0, 0
	resume := s.cur != nil && s.cur.phase == phaseBuild
	if !resume {
		s.cur = &cursor{fingerprint: s.opts.View.Fingerprint, phase: phaseBuild, offsets: make([]eventlog.Offset, s.topic.Spec.Partitions)}
	} else {
		s.csn, s.time = s.cur.stamp.CSN, s.cur.stamp.Time
	}
	s.setGoing(true)
	if err := s.retrying(ctx, func() error { return s.target.Begin(ctx, s.stamp(0, 0)) }); err != nil {
		return err
	}
	s.rebuild = false
	s.count(func(st *SinkStats) { st.BuildRecords = 0 })
	s.setGoing(true)
	s.noteStamp()
	if err := s.save(); err != nil {
		return err
	}
	for s.cur.part < len(s.cur.offsets) {
		if err := s.buildPartition(ctx, int32(s.cur.part)); err != nil {
			return err
		}
		s.cur.part, s.cur.next = s.cur.part+1, 0
		s.dirty = true
	}
	return s.save()
}

// awaitReady waits for the view to be live, so that the topic holds every document.
func (s *session) awaitReady(ctx context.Context) error {
	if s.opts.Ready == nil {
		return nil
	}
	select {
	case <-s.opts.Ready:
		return nil
	default:
	}
	s.setState(StateWaiting, "the view is not live yet")
	select {
	case <-s.opts.Ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// buildPartition sends the newest documents of one partition: the first pass
// finds them and where the partition ends, the second sends them.
func (s *session) buildPartition(ctx context.Context, p int32) error {
	end := s.cur.offsets[p]
	if s.cur.next == 0 {
		end = math.MaxInt64
	}
	newest := map[keyHash]eventlog.Offset{}
	hash := newKeyHasher()
	last := eventlog.Offset(-1)
	err := s.scan(ctx, p, 0, end, func(r *eventlog.Record) error {
		newest[hash.sum(r.Key)], last = r.Offset, r.Offset
		return nil
	})
	if err != nil {
		return err
	}
	if s.cur.next == 0 {
		end = last + 1
		s.cur.offsets[p] = end
	}
	b := newBatch(nil)
	send := func() error {
		if err := s.deliver(ctx, b.updates, uint64(b.csn), b.time); err != nil {
			return err
		}
		s.csn, s.time = max(s.csn, uint64(b.csn)), max(s.time, b.time)
		s.noteStamp()
		s.setGoing(true)
		b = newBatch(nil)
		return s.upkeep(ctx)
	}
	err = s.scan(ctx, p, s.cur.next, end, func(r *eventlog.Record) error {
		if r.Value == nil || newest[hash.sum(r.Key)] != r.Offset {
			return nil
		}
		if err := b.add(r, 0); err != nil {
			return logFault("read the view's topic", err)
		}
		if len(b.updates) < s.limit && b.bytes < s.opts.BatchBytes {
			return nil
		}
		if err := send(); err != nil {
			return err
		}
		s.cur.next, s.dirty = r.Offset+1, true
		return nil
	})
	if err != nil || len(b.updates) == 0 {
		return err
	}
	return send()
}

// scan calls fn for the records of a partition in [from, end).
func (s *session) scan(ctx context.Context, p int32, from, end eventlog.Offset, fn func(r *eventlog.Record) error) error {
	from = max(from, s.opts.Log.StartOffsets(s.topic.ID)[p])
	if from >= end {
		return nil
	}
	r, err := s.opts.Log.ReadPartition(s.topic.ID, p, from)
	if err != nil {
		return s.readFault(err)
	}
	defer r.Close()
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		rec, ok, err := r.Next()
		if err != nil {
			return s.readFault(err)
		}
		if !ok || rec.Offset >= end {
			return nil
		}
		if err := fn(&rec); err != nil {
			return err
		}
	}
}

// finish makes the build the target's content and clears dead letters of documents that are no more.
func (s *session) finish(ctx context.Context) error {
	keep := s.keep(ctx)
	stamp := s.stamp(0, 0)
	stamp.Complete = true
	if err := s.retrying(ctx, func() error { return s.target.Finish(ctx, stamp, keep) }); err != nil {
		return err
	}
	var letters []letter
	for id := range s.dead {
		ok, err := keep(id)
		if err != nil {
			return err
		}
		if !ok {
			letters = append(letters, letter{id: id})
		}
	}
	if err := s.bury(ctx, letters); err != nil {
		return err
	}
	s.noteStamp()
	s.log.Info("the target is built", "documents", s.Stats().BuildRecords)
	return nil
}

// keep tells which ids are documents: as the view says, else as its topic says,
// which is read when first asked.
func (s *session) keep(ctx context.Context) func(id string) (bool, error) {
	if s.opts.Has != nil {
		return s.opts.Has
	}
	var ids map[keyHash]struct{}
	hash := newKeyHasher()
	return func(id string) (bool, error) {
		if ids == nil {
			all := map[keyHash]struct{}{}
			err := s.opts.Log.NewestByKey(s.topic.ID, func(key []byte, _ eventlog.CSN, tombstone bool) error {
				if tombstone {
					return ctx.Err()
				}
				doc, err := change.DocumentID(key)
				all[hash.sum([]byte(doc))] = struct{}{}
				return err
			})
			if err != nil {
				return false, s.readFault(err)
			}
			ids = all
		}
		_, ok := ids[hash.sum([]byte(id))]
		return ok, nil
	}
}

// keyHash stands for a key in memory; two seeds make a collision of 128 bits.
type keyHash [2]uint64

type keyHasher [2]maphash.Seed

func newKeyHasher() keyHasher { return keyHasher{maphash.MakeSeed(), maphash.MakeSeed()} }

func (h keyHasher) sum(key []byte) keyHash {
	return keyHash{maphash.Bytes(h[0], key), maphash.Bytes(h[1], key)}
}
