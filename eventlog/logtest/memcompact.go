package logtest

import (
	"slices"

	"github.com/tailwater/tailwater/eventlog"
)

// Compact removes what a newer whole record of its key supersedes, and sets the
// horizon. Partial records and what is older than them stay; so do tombstones.
func (m *MemLog) Compact(topic eventlog.TopicID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	whole := map[string]eventlog.Offset{} // newest whole record, by partition and key
	key := func(r *eventlog.Record) string { return string(rune(r.Partition)) + string(r.Key) }
	for k, p := range m.parts {
		if k.topic != topic {
			continue
		}
		for i := range p.records {
			r := &p.records[i]
			if len(r.Key) > 0 && r.Key[0] != 0 && (r.Value == nil || r.Flags&eventlog.FlagPartial == 0) {
				whole[key(r)] = r.Offset
			}
			m.horizons[topic] = max(m.horizons[topic], r.CSN)
		}
	}
	superseded := func(r eventlog.Record) bool {
		off, ok := whole[key(&r)]
		return r.Topic == topic && ok && r.Offset < off
	}
	for i := range m.txs {
		tx := &m.txs[i].tx
		tx.Records = slices.DeleteFunc(slices.Clone(tx.Records), superseded)
	}
	for k, p := range m.parts {
		for i := range p.records {
			if k.topic == topic && superseded(p.records[i]) {
				p.gone[p.records[i].Offset] = true
			}
		}
	}
}

// DropTombstones removes the tombstones committed before a time (µs since 1970)
// that every cursor has passed, with what they hide.
func (m *MemLog) DropTombstones(topic eventlog.TopicID, before int64) {
	m.Compact(topic)
	m.mu.Lock()
	defer m.mu.Unlock()
	passed := m.txs[len(m.txs)-1].tx.CSN
	for _, c := range m.cursors {
		if !c.LetGo && slices.Contains(c.Topics, topic) {
			passed = min(passed, c.Passed)
		}
	}
	goes := func(r eventlog.Record) bool {
		return r.Topic == topic && r.Value == nil && len(r.Key) > 0 && r.Key[0] != 0 && r.CSN <= passed && r.Time < before
	}
	for i := range m.txs {
		tx := &m.txs[i].tx
		tx.Records = slices.DeleteFunc(slices.Clone(tx.Records), goes)
	}
	for k, p := range m.parts {
		for i := range p.records {
			if k.topic == topic && goes(p.records[i]) {
				p.gone[p.records[i].Offset] = true
			}
		}
	}
}
