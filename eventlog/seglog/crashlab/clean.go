package crashlab

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tailwater/tailwater/eventlog"
)

// cursorName is the consumer whose cursor the lab moves.
const cursorName = "view"

func isCompacted(t eventlog.Topic) bool { return t.Spec.Cleanup == eventlog.CleanupCompact }

// compacted lists the topics that are compacted.
func (m *model) compacted() (out []eventlog.TopicID) {
	for _, t := range m.topic {
		if isCompacted(t) {
			out = append(out, t.ID)
		}
	}
	return out
}

// compact compacts all topics that are.
func (l *life) compact() error {
	l.now = l.now.Add(time.Duration(l.rng.IntN(60)) * time.Second)
	for _, id := range l.model.compacted() {
		before, limit := l.log.Horizon(id), l.log.Frontier()
		if c := l.log.Cursors()[cursorName]; c.Values && slices.Contains(c.Topics, id) {
			limit = min(limit, c.Passed)
		}
		if l.pin != nil && slices.Contains(l.pin.topics, id) {
			limit = min(limit, l.pin.upTo)
		}
		_, err := l.log.Compact(context.Background(), id)
		if h := l.log.Horizon(id); h > max(before, limit) {
			l.wrong("the horizon of topic %d is %d; it was %d, and consumers allow %d", id, h, before, limit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// expire deletes what is too old or too much; half of the time rows of _tx too.
func (l *life) expire() error {
	l.model.mayExpire()
	if l.rng.IntN(2) == 0 {
		l.log.SetQuota(1 + l.rng.Int64N(20_000)) // rows of _tx may have an eighth of it
		defer l.log.SetQuota(0)
	}
	return l.log.Expire()
}

// mayExpire notes that what the log holds now may go as far as retention reaches.
func (m *model) mayExpire() {
	clear(m.mayGo)
	for _, k := range m.txs {
		k.rowMayGo = true
		for i := range k.tx.Records {
			m.mayGo[m.placeOf(&k.tx.Records[i])]++
		}
	}
}

// moveCursor registers, moves or removes the cursor of a consumer of all compacted topics.
func (l *life) moveCursor() error {
	var c *eventlog.Cursor
	frontier := l.log.Frontier()
	if l.rng.IntN(6) > 0 {
		c = &eventlog.Cursor{Topics: l.model.compacted(), Passed: frontier, Values: l.rng.IntN(3) == 0}
	}
	if old, ok := l.log.Cursors()[cursorName]; ok && c != nil && frontier > old.Passed && l.rng.IntN(2) == 0 {
		c.Passed = old.Passed + eventlog.CSN(l.rng.Int64N(int64(frontier-old.Passed)))
		c.Topics = old.Topics // a topic is registered as of the frontier
	}
	err := l.log.SetCursor(cursorName, c)
	switch {
	case err == nil:
		l.model.cursors = []string{cursorText(c)}
	case l.dead(err):
		l.model.cursors = append(l.model.cursors, cursorText(c))
	}
	return err
}

func cursorText(c *eventlog.Cursor) string {
	if c == nil {
		return "none"
	}
	return fmt.Sprint(c.Topics, c.Passed, c.Values)
}

// pinned is a pin that is held.
type pinned struct {
	topics  []eventlog.TopicID
	upTo    eventlog.CSN
	horizon map[eventlog.TopicID]eventlog.CSN // when it was taken
	release func()
}

// movePin takes a pin; one that is held it releases, after a look at what it held.
func (l *life) movePin() error {
	if l.pin == nil {
		topics := l.model.compacted()
		p := &pinned{topics: topics, upTo: l.log.Frontier(), horizon: map[eventlog.TopicID]eventlog.CSN{}}
		for _, t := range topics {
			p.horizon[t] = l.log.Horizon(t)
		}
		p.release = l.log.Pin(topics, p.upTo)
		l.pin, l.model.pin = p, p
		return nil
	}
	err := l.look()
	l.pin.release()
	l.pin, l.model.pin = nil, nil
	return err
}
