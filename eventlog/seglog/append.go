package seglog

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/tailwater/tailwater/eventlog"
)

// request is what one caller wants in the next group.
type request struct {
	txs      []*eventlog.Tx
	prepared *prepared // of txs
	topic    *eventlog.TopicSpec
	mark     *mark
	// stream asks for the adoption of its file for the one transaction, or, with
	// forget, that no entry may name it.
	stream *stream
	forget bool

	made eventlog.Topic // answer to topic
	size int            // estimate of its bytes
	err  error
	done chan struct{}
}

// alone reports that the request gets an entry of its own: the adoption of a
// stream, or batches that lie in memory of their own, fit to be an entry. Joined with
// others they would have to be copied, for a sync that is small beside it.
func (r *request) alone() bool {
	return r.stream != nil || r.prepared != nil && r.prepared.mem != nil
}

// Append appends the group in order, as part of one entry with one sync.
func (l *Log) Append(ctx context.Context, txs []*eventlog.Tx) error {
	if len(txs) == 0 {
		return nil
	}
	if err := eventlog.CheckGroup(txs, l.Frontier(), l.topicByID); err != nil {
		return err
	}
	r := &request{txs: txs, done: make(chan struct{})}
	for _, tx := range txs {
		r.size += 64 + len(tx.Note) + len(tx.Position)
		for i := range tx.Records {
			if tx.Records[i].Topic == txTopic {
				return fmt.Errorf("append record to topic %s: the log writes it itself", txTopicName)
			}
			r.size += 64 + len(tx.Records[i].Key) + len(tx.Records[i].Value)
		}
	}
	if r.size > maxEntry/2 {
		return fmt.Errorf("%w: %d bytes in one group, %d are possible; commit smaller transactions, or stream them", eventlog.ErrTooLarge, r.size, maxEntry/2)
	}
	r.prepared = l.prepare(txs)
	defer r.prepared.recycle()
	err := l.do(ctx, r)
	r.prepared.fill(txs, err == nil)
	return err
}

// EnsureTopic returns the topic of that name, making it durably if needed.
func (l *Log) EnsureTopic(spec eventlog.TopicSpec) (eventlog.Topic, error) {
	if t, ok := l.Topic(spec.Name); ok {
		merged, err := eventlog.MergeSpec(t.Spec, spec)
		if err != nil || merged == t.Spec || t.ID == txTopic {
			return t, err
		}
	} else if _, err := eventlog.CompleteSpec(spec); err != nil {
		return eventlog.Topic{}, err
	}
	r := &request{topic: &spec, done: make(chan struct{})}
	err := l.do(context.Background(), r)
	return r.made, err
}

// SaveCheckpoint durably replaces the mark of a consumer; a nil mark removes it.
func (l *Log) SaveCheckpoint(consumer string, c eventlog.Checkpoint) error {
	if isOwnMark(consumer) {
		return fmt.Errorf("save checkpoint of %q: names that begin with a zero byte are the log's own", consumer)
	}
	r := &request{mark: &mark{consumer, slices.Clone(c)}, done: make(chan struct{})}
	return l.do(context.Background(), r)
}

// Skip moves the next CSN to at least csn: a tick is appended with it.
func (l *Log) Skip(ctx context.Context, csn eventlog.CSN) error {
	tick := &eventlog.Tx{Kind: eventlog.TxTick, CSN: csn, CommitTime: l.opts.Clock().UnixMicro()}
	txs := []*eventlog.Tx{tick}
	p := l.prepare(txs)
	defer p.recycle()
	return l.do(ctx, &request{txs: txs, prepared: p, size: skipRequest, done: make(chan struct{})})
}

// skipRequest marks the request of Skip, whose tick keeps its CSN if that is ahead.
const skipRequest = -1

// do queues a request and waits for its answer, writing for all while it holds the token.
func (l *Log) do(ctx context.Context, r *request) error {
	if l.readOnly {
		return ErrReadOnly
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	l.queueMu.Lock()
	if l.closing {
		l.queueMu.Unlock()
		return eventlog.ErrClosed
	}
	l.queue = append(l.queue, r)
	l.queueMu.Unlock()
	for {
		select {
		case <-r.done:
			return r.err
		case <-l.token:
			l.commitQueued()
			l.token <- struct{}{}
			if l.largeNext() {
				// Its caller was made ready on this thread, which would go on to encode the
				// next group, and the disk would wait until another thread takes it over.
				runtime.Gosched()
			}
		case <-ctx.Done():
			if l.withdraw(r) {
				return ctx.Err()
			}
			<-r.done // it is being written: its fate must be known
			return r.err
		}
	}
}

// withdraw takes a request out of the queue; false if it is already being written.
func (l *Log) withdraw(r *request) bool {
	l.queueMu.Lock()
	defer l.queueMu.Unlock()
	i := slices.Index(l.queue, r)
	if i < 0 {
		return false
	}
	l.queue = slices.Delete(l.queue, i, i+1)
	return true
}

// takeQueued takes from the queue what makes up the next group.
func (l *Log) takeQueued() []*request {
	l.queueMu.Lock()
	defer l.queueMu.Unlock()
	n, size := 0, 0
	for n < len(l.queue) && (n == 0 || !l.queue[n].alone() && size+l.queue[n].size <= l.opts.GroupBytes) {
		size += l.queue[n].size
		n++
		if l.queue[n-1].alone() {
			break
		}
	}
	taken := slices.Clone(l.queue[:n])
	l.queue = slices.Delete(l.queue, 0, n)
	return taken
}

// largeNext reports that the next group is one large request. Small ones had better
// wait: more of them then share a sync.
func (l *Log) largeNext() bool {
	l.queueMu.Lock()
	defer l.queueMu.Unlock()
	return len(l.queue) > 0 && l.queue[0].alone()
}

func (l *Log) queued() bool {
	l.queueMu.Lock()
	defer l.queueMu.Unlock()
	return len(l.queue) > 0
}

// commitQueued writes one group and answers its requests. The caller holds the token.
func (l *Log) commitQueued() {
	taken := l.takeQueued()
	if len(taken) == 0 {
		return
	}
	err := l.commit(taken)
	for _, r := range taken {
		if r.err == nil {
			r.err = err
		}
		close(r.done)
	}
}

// commit makes a group durable and then visible, or neither.
func (l *Log) commit(taken []*request) error {
	if err := l.ready(); err != nil {
		return err
	}
	s := taken[0].stream
	if taken[0].forget {
		s.doubtful = false
		return nil
	}
	if err := l.maybeRoll(); err != nil {
		return err
	}
	if s != nil {
		return l.adopt(s, taken[0].txs[0])
	}
	g, err := l.encodeGroup(taken)
	if err != nil || g == nil {
		return err
	}
	if err := l.writeEntry(g.entry); err != nil {
		g.mem.release()
		return err
	}
	l.publish(g)
	return nil
}
