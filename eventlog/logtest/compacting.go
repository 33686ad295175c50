package logtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tailwater/tailwater/eventlog"
)

// MergeColumns is what a backend under test merges partial records with. A value
// is columns, "a|b", of which "~" is unchanged.
func MergeColumns(_ eventlog.Topic, older, newer eventlog.Record) (value []byte, whole bool, err error) {
	n, o := strings.Split(string(newer.Value), "|"), strings.Split(string(older.Value), "|")
	if len(n) != len(o) {
		return nil, false, fmt.Errorf("%q has other columns than %q", newer.Value, older.Value)
	}
	for i := range n {
		if n[i] == "~" {
			n[i] = o[i]
		}
	}
	return []byte(strings.Join(n, "|")), !slices.Contains(n, "~"), nil
}

// compacted runs check after a compaction, and after a restart and another one.
func (h *harness) compacted(t eventlog.Topic, check func()) {
	h.Helper()
	h.b.Compact(h.T, h.log, t)
	check()
	h.reopen()
	check()
	h.b.Compact(h.T, h.log, t)
	check()
}

// kept lists partition 0 from an offset on, as "offset:key=value".
func (h *harness) kept(t eventlog.Topic, from eventlog.Offset) (out []string) {
	h.Helper()
	for _, r := range h.partition(t, 0, from) {
		s := fmt.Sprintf("%d:%s", r.Offset, r.Key)
		if r.Value != nil {
			s += "=" + string(r.Value)
		}
		out = append(out, s)
	}
	return out
}

func (h *harness) wantKept(t eventlog.Topic, from eventlog.Offset, want ...string) {
	h.Helper()
	if got := h.kept(t, from); !slices.Equal(got, want) {
		h.Errorf("from offset %d: %q, want %q", from, got, want)
	}
}

// passed is a cursor on a topic.
func (h *harness) passed(t eventlog.Topic, csn eventlog.CSN, values bool) {
	h.Helper()
	if err := h.log.SetCursor("c", &eventlog.Cursor{Topics: []eventlog.TopicID{t.ID}, Passed: csn, Values: values}); err != nil {
		h.Fatalf("SetCursor = %v", err)
	}
}

// testCompactNewest: the newest value of each key stays where it was.
func testCompactNewest(h *harness) {
	t, other := h.topic("s.p.t", 1), h.topic("s.p.other", 1)
	h.append("s", "1", rec(t, 0, "k", "1"), rec(t, 1, "j", "1"), rec(other, 2, "k", "1"))
	h.append("s", "2", rec(t, 0, "k", "2"), eventlog.Record{Topic: t.ID, Seq: 1, Op: 1, Value: []byte("no key")}, rec(other, 2, "k", "2"))
	if got := h.log.Horizon(t.ID); got != 0 {
		h.Errorf("horizon %d before any compaction", got)
	}
	newest := h.append("s", "3", rec(t, 0, "k", "3"))
	h.compacted(t, func() {
		h.Helper()
		want := []string{"1:j=1", "3:=no key", "4:k=3"}
		h.wantKept(t, 0, want...)
		h.wantKept(t, 1, want...)
		h.wantKept(t, 2, want[1:]...)
		h.wantKept(t, 4, want[2:]...)
		h.wantKept(other, 0, "0:k=1", "1:k=2")
		if got := h.log.EndOffsets(t.ID)[0]; got != 5 {
			h.Errorf("the end is %d, want 5", got)
		}
		if got := h.log.Horizon(t.ID); got != newest.CSN {
			h.Errorf("horizon %d, want that of the record that superseded others, %d", got, newest.CSN)
		}
		if got := h.log.Horizon(other.ID); got != 0 {
			h.Errorf("horizon %d of a topic that was not compacted", got)
		}
	})
	if tx := h.append("s", "4", rec(t, 0, "k", "4")); tx.Records[0].Offset != 5 {
		h.Errorf("the next offset is %d, want 5", tx.Records[0].Offset)
	}
}

// testCompactTombstones: a tombstone hides what is older, and goes once every
// cursor has passed it and no reader starts.
func testCompactTombstones(h *harness) {
	t := h.topic("s.p.t", 1)
	before := h.append("s", "1", rec(t, 0, "k", "1"), rec(t, 1, "j", "1"))
	gone := h.append("s", "2", rec(t, 0, "k", ""))
	h.passed(t, before.CSN, false)
	h.compacted(t, func() {
		h.Helper()
		h.wantKept(t, 0, "1:j=1", "2:k")
	})
	h.passed(t, gone.CSN, false)
	release := h.log.Pin([]eventlog.TopicID{t.ID}, gone.CSN)
	h.b.Compact(h.T, h.log, t)
	h.wantKept(t, 0, "1:j=1", "2:k")
	release()
	h.compacted(t, func() {
		h.Helper()
		h.wantKept(t, 0, "1:j=1")
	})
	if err := h.log.SetCursor("c", nil); err != nil {
		h.Errorf("remove a cursor: %v", err)
	}
	h.append("s", "3", rec(t, 0, "j", ""))
	h.compacted(t, func() {
		h.Helper()
		h.wantKept(t, 0)
	})
}

// testCompactValues: who needs each value keeps those behind what it has passed.
func testCompactValues(h *harness) {
	t := h.topic("s.p.t", 1)
	h.append("s", "1", rec(t, 0, "k", "1"))
	passed := h.append("s", "2", rec(t, 0, "k", "2"))
	h.append("s", "3", rec(t, 0, "k", "3"))
	last := h.append("s", "4", rec(t, 0, "k", "4"))
	h.passed(t, passed.CSN, true)
	h.compacted(t, func() {
		h.Helper()
		h.wantKept(t, 0, "1:k=2", "2:k=3", "3:k=4")
		if got := h.log.Horizon(t.ID); got > passed.CSN {
			h.Errorf("horizon %d is beyond %d", got, passed.CSN)
		}
	})
	h.passed(t, last.CSN, true)
	release := h.log.Pin([]eventlog.TopicID{t.ID}, last.CSN-1)
	h.b.Compact(h.T, h.log, t)
	h.wantKept(t, 0, "2:k=3", "3:k=4")
	release()
	h.compacted(t, func() {
		h.Helper()
		h.wantKept(t, 0, "3:k=4")
	})
}

// testCompactPartial: a partial record takes what it lacks from those that go, and
// stays where it was. The insert half of a key change lacks what is under the old key.
func testCompactPartial(h *harness) {
	t := h.topic("s.p.t", 1)
	partial := func(seq uint32, flags uint8, key, value string) eventlog.Record {
		r := rec(t, seq, key, value)
		r.Flags = flags | eventlog.FlagPartial
		return r
	}
	h.append("s", "1", rec(t, 0, "k", "1a|1b|1c"))
	h.append("s", "2", partial(0, 0, "k", "2a|~|~"))
	newest := h.append("s", "3", partial(0, 0, "k", "~|3b|~"))
	h.compacted(t, func() {
		h.Helper()
		h.wantKept(t, 0, "2:k=2a|3b|1c")
		r := h.partition(t, 0, 0)[0]
		if r.CSN != newest.CSN || r.Flags != 0 || r.Op != 1 {
			h.Errorf("the survivor is %+v, want CSN %d and no flags", r, newest.CSN)
		}
	})
	old := rec(t, 0, "k", "")
	old.Flags = eventlog.FlagMoved
	h.append("s", "4", old, partial(1, eventlog.FlagMoved, "l", "4a|~|~"))
	h.compacted(t, func() {
		h.Helper()
		h.wantKept(t, 0, "2:k=2a|3b|1c", "3:k", "4:l=4a|~|~")
	})
	h.append("s", "5", rec(t, 0, "l", "4a|3b|1c")) // the row was read again
	h.compacted(t, func() {
		h.Helper()
		h.wantKept(t, 0, "5:l=4a|3b|1c")
	})
}

// testCompactTruncate: a truncate makes everything older go, and then goes itself.
func testCompactTruncate(h *harness) {
	t := h.topic("s.p.t", 1)
	h.append("s", "1", rec(t, 0, "k", "1"), rec(t, 1, "j", "1"))
	h.append("s", "2", eventlog.Record{Topic: t.ID, Op: 4, Partition: eventlog.EveryPartition, Key: []byte(eventlog.TruncateKey), Value: []byte("t")})
	h.append("s", "3", rec(t, 0, "j", "3"))
	h.passed(t, 0, false)
	h.compacted(t, func() {
		h.Helper()
		h.wantKept(t, 0, "2:\x00\x01=t", "3:j=3")
	})
	h.passed(t, h.log.Frontier(), false)
	h.compacted(t, func() {
		h.Helper()
		h.wantKept(t, 0, "3:j=3")
	})
}
