package seglog

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tailwater/tailwater/eventlog"
)

// laggardShare is the part of the quota that a topic's consumers must keep for
// the one furthest behind to be named: one that is up to date may keep a little.
const laggardShare = 0.01

// heldBack is what a pass over a partition left only because consumers have not
// passed it: tombstones, or rows of _tx.
type heldBack struct {
	upTo  eventlog.CSN // who has passed it holds nothing
	limit eventlog.CSN // which all had passed
	since int64        // commit time, µs, of the oldest
	bytes int64        // on disk, about
}

// countHeld counts a record that stays, of the run at hand.
func (c *compaction) countHeld(r *eventlog.Record) {
	size := int64(len(r.Key) + len(r.Value) + 20)
	c.runKept += size
	if r.Value != nil && !isTruncate(r) || len(r.Key) == 0 || r.Offset >= c.end || !c.due(r) || r.CSN <= c.limits.tombstones {
		return
	}
	c.runHeld += size
	c.back.upTo, c.back.limit = max(c.back.upTo, r.CSN), c.limits.tombstones
	if t := c.timeOf(r); c.back.since == 0 || t < c.back.since {
		c.back.since = t
	}
}

// sumHeld adds a run: of what it has on disk now the share that its held records have.
func (c *compaction) sumHeld(segs ...*segment) {
	var size int64
	for _, s := range segs {
		size += s.size
	}
	c.back.bytes += int64(float64(size) * float64(c.runHeld) / float64(max(c.runKept, 1)))
}

// noteBack remembers what the last look at a partition found held.
func (l *Log) noteBack(k partKey, b heldBack) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b.upTo == 0 {
		delete(l.back, k)
		return
	}
	l.back[k] = b
}

// holding is what the consumers of a topic keep in it.
type holding struct {
	eventlog.Laggard // the one furthest behind
	cursor           eventlog.Cursor
	anew             bool // all of them can begin anew, and no reader has just begun
}

// holdings returns what each topic has of what would go but for its consumers, the most first.
func (l *Log) holdings() (list []holding) {
	cursors := l.Cursors()
	l.mu.RLock()
	defer l.mu.RUnlock()
	byTopic := map[eventlog.TopicID]heldBack{}
	for k, b := range l.back {
		t := byTopic[k.topic]
		if t.since == 0 || b.since < t.since {
			t.since = b.since
		}
		byTopic[k.topic] = heldBack{upTo: max(t.upTo, b.upTo), since: t.since, bytes: t.bytes + b.bytes}
	}
	for id, b := range byTopic {
		h := holding{anew: true, cursor: eventlog.Cursor{Passed: math.MaxUint64}}
		for name, c := range cursors {
			if c.LetGo || c.Passed >= b.upTo || !slices.Contains(c.Topics, id) {
				continue
			}
			h.anew = h.anew && c.Rebuilds
			if c.Passed < h.cursor.Passed || c.Passed == h.cursor.Passed && name < h.Consumer {
				h.cursor, h.Consumer = c, name
			}
		}
		if h.Consumer == "" {
			continue // they have passed it since
		}
		for p := range l.pins {
			h.anew = h.anew && !slices.Contains(p.topics, id)
		}
		h.Topic, h.Passed, h.Since, h.Bytes = l.st.topic(id).topic.Spec.Name, h.cursor.Passed, b.since, b.bytes
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b holding) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Topic, b.Topic))
	})
	return list
}

// relieve looks at who keeps in a log whose quota is nearly used up what could
// go. It says so, and lets the consumer furthest behind go where that makes room
// for what was refused; then compaction has more to do, and it returns true.
func (l *Log) relieve() bool {
	quota := l.quota.Load()
	var list []holding
	if l.pressed() {
		list = slices.DeleteFunc(l.holdings(), func(h holding) bool { return float64(h.Bytes) < float64(quota)*laggardShare })
	}
	l.nameLaggard(list)
	refused := l.refused.Load()
	if refused == 0 || len(list) == 0 {
		return false
	}
	for _, stuck := range l.stuck() {
		if !stuck {
			return false // what a consumer has passed goes first
		}
	}
	l.mu.RLock()
	need, sealed := l.diskBytes()+refused-int64(float64(quota)*pressedShare), len(l.files) <= 1
	l.mu.RUnlock()
	if !sealed {
		return false // sealing may be enough
	}
	list = slices.DeleteFunc(list, func(h holding) bool { return !h.anew })
	for _, h := range list {
		need -= h.Bytes
	}
	if need > 0 || len(list) == 0 {
		return false // it would not help: what is left is live
	}
	if err := l.letGo(&list[0]); err != nil {
		l.opts.Logger.Warn("let go a consumer that is too far behind", "consumer", list[0].Consumer, "err", err)
		return false
	}
	return true
}

// nameLaggard publishes who keeps the most, and logs it where that changes.
func (l *Log) nameLaggard(list []holding) {
	var now *eventlog.Laggard
	if len(list) > 0 {
		first := list[0].Laggard
		now = &first
	}
	old := l.laggard.Swap(now)
	switch {
	case now != nil && (old == nil || old.Consumer != now.Consumer):
		l.opts.Logger.Warn("the log is nearly full, and a consumer that is behind keeps deletes in it that could go",
			"consumer", now.Consumer, "topic", now.Topic, "csn", uint64(now.Passed), "bytes", now.Bytes, "since", time.UnixMicro(now.Since).UTC())
	case now == nil && old != nil:
		l.opts.Logger.Info("no consumer keeps the log from getting smaller any more", "consumer", old.Consumer)
	}
}

// letGo durably ends what a consumer holds: before anything that it needs goes.
func (l *Log) letGo(h *holding) error {
	l.cursorMu.Lock()
	defer l.cursorMu.Unlock()
	now, ok := l.Cursors()[h.Consumer]
	if !ok || now.Passed != h.cursor.Passed || now.LetGo {
		return nil // it has moved: look again
	}
	now.LetGo = true
	if err := l.saveOwn(cursorMarkOf(h.Consumer, &now)); err != nil {
		return err
	}
	l.mu.Lock()
	for k := range l.back {
		if slices.Contains(now.Topics, k.topic) {
			delete(l.compacted, k) // it is due at once
		}
	}
	l.mu.Unlock()
	l.opts.Logger.Warn("the log is full, and a consumer is too far behind for its deletes to be kept: it must begin anew",
		"consumer", h.Consumer, "topic", h.Topic, "csn", uint64(h.Passed), "bytes", h.Bytes)
	return nil
}

// LetGoAll durably ends what the cursors on a topic hold that can begin anew.
func (l *Log) LetGoAll(topic eventlog.TopicID) error {
	l.cursorMu.Lock()
	defer l.cursorMu.Unlock()
	for name, c := range l.Cursors() {
		if c.LetGo || !c.Rebuilds || !slices.Contains(c.Topics, topic) {
			continue
		}
		c.LetGo = true
		if err := l.saveOwn(cursorMarkOf(name, &c)); err != nil {
			return fmt.Errorf("let the cursor of %q go: %w", name, err)
		}
	}
	return nil
}

// stuck tells of the partitions in which something was held whether it still is;
// in a log that is full, all of it.
func (l *Log) stuck() map[partKey]bool {
	l.mu.RLock()
	held := maps.Clone(l.back)
	l.mu.RUnlock()
	out := map[partKey]bool{}
	for k, b := range held {
		passed := l.limitsOf(k.topic).tombstones
		out[k] = passed < b.upTo && (passed <= b.limit || l.refused.Load() == 0)
	}
	return out
}

// checkLetGo refuses to move a cursor that was let go. The caller holds cursorMu.
func (l *Log) checkLetGo(consumer string, c *eventlog.Cursor) error {
	if c == nil || !l.Cursors()[consumer].LetGo {
		return nil
	}
	return fmt.Errorf("set cursor of %q to CSN %d: %w", consumer, c.Passed, eventlog.ErrLetGo)
}
