package seglog

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tailwater/tailwater/eventlog"
)

// SetCursor durably registers or moves a consumer's cursor; nil removes it.
func (l *Log) SetCursor(consumer string, c *eventlog.Cursor) error {
	l.cursorMu.Lock()
	defer l.cursorMu.Unlock()
	if err := l.checkLetGo(consumer, c); err != nil {
		return err
	}
	if c != nil && c.LetGo {
		own := *c
		own.LetGo, c = false, &own
	}
	m := cursorMarkOf(consumer, c)
	if c != nil {
		if _, err := decodeCursorMark(m.value); err != nil {
			return fmt.Errorf("set cursor of %q to CSN %d: %w", consumer, c.Passed, err)
		}
	}
	return l.saveOwn(m)
}

// saveOwn durably replaces one of the log's own marks.
func (l *Log) saveOwn(m mark) error {
	return l.do(context.Background(), &request{mark: &m, done: make(chan struct{})})
}

// Cursors returns the cursors of all registered consumers.
func (l *Log) Cursors() map[string]eventlog.Cursor {
	l.mu.RLock()
	defer l.mu.RUnlock()
	out := maps.Clone(l.st.cursors)
	for name, c := range out {
		c.Topics = slices.Clone(c.Topics)
		out[name] = c
	}
	return out
}

// Horizon returns the largest CSN of a record for whose sake a value of the topic was removed.
func (l *Log) Horizon(topic eventlog.TopicID) eventlog.CSN {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if t := l.st.topic(topic); t != nil {
		return t.horizon
	}
	return 0
}

// pin is a reader that starts from a topic's beginning.
type pin struct {
	topics []eventlog.TopicID
	upTo   eventlog.CSN
}

// Pin keeps the topics as they are for a reader that starts from their beginning.
func (l *Log) Pin(topics []eventlog.TopicID, upTo eventlog.CSN) (release func()) {
	// A compaction in progress does not know of the pin, and need not: what it
	// removes for the sake of a record above upTo is below the horizon that it set,
	// and the values that its tombstones hide went before it began.
	p := &pin{slices.Clone(topics), upTo}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pins[p] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.pins, p)
	}
}

// limits is what consumers demand of a topic's compaction.
type limits struct {
	values     eventlog.CSN // only records at or below it supersede others
	tombstones eventlog.CSN // only tombstones at or below it may go
}

// limitsOf collects the pins and cursors on a topic. A view that reads another
// topic too does not matter here: each cursor names its topics.
func (l *Log) limitsOf(topic eventlog.TopicID) limits {
	cursors := l.Cursors()
	l.mu.RLock()
	defer l.mu.RUnlock()
	lim := limits{values: l.st.frontier, tombstones: l.st.frontier}
	for p := range l.pins {
		if slices.Contains(p.topics, topic) {
			lim.values, lim.tombstones = min(lim.values, p.upTo), 0
		}
	}
	for _, c := range cursors {
		if c.LetGo || !slices.Contains(c.Topics, topic) {
			continue
		}
		lim.tombstones = min(lim.tombstones, c.Passed)
		if c.Values {
			lim.values = min(lim.values, c.Passed)
		}
	}
	return lim
}
