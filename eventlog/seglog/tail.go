package seglog

import (
	"sort"

	"github.com/tailwater/tailwater/eventlog"
)

// tail is the newest groups in memory. A reader holds at most the memory of the
// one group it is at; what it has not reached when it falls out, it reads from disk.
type tail struct {
	groups []tailGroup
	bytes  int64
	max    int64
}

type tailGroup struct {
	first, end uint64       // ordinals
	csn        eventlog.CSN // all transactions before it have CSNs below this
	payload    []byte
	kind       byte  // of its entry
	mem        *slab // in which the payload lies, held
}

// size is what dropping the group gives back.
func (g *tailGroup) size() int64 {
	if len(g.payload) > maxShared {
		return int64(len(g.mem.b))
	}
	return int64(len(g.payload))
}

func (t *tail) add(g tailGroup) {
	t.groups = append(t.groups, g)
	t.bytes += g.size()
	drop := 0
	for t.bytes > t.max && drop < len(t.groups) {
		t.bytes -= t.groups[drop].size()
		t.groups[drop].mem.release()
		t.groups[drop] = tailGroup{}
		drop++
	}
	t.groups = t.groups[drop:]
}

// forget drops the groups before an ordinal.
func (t *tail) forget(ordinal uint64) {
	n := 0
	for n < len(t.groups) && t.groups[n].end <= ordinal {
		t.bytes -= t.groups[n].size()
		t.groups[n].mem.release()
		t.groups[n] = tailGroup{}
		n++
	}
	t.groups = t.groups[n:]
}

// find returns the group that holds an ordinal, or the first behind a gap at it;
// nil if the tail does not reach back so far.
func (t *tail) find(ordinal uint64) *tailGroup {
	if len(t.groups) == 0 || t.groups[0].first > ordinal {
		return nil
	}
	i := sort.Search(len(t.groups), func(i int) bool { return t.groups[i].end > ordinal })
	if i == len(t.groups) {
		return nil
	}
	return &t.groups[i]
}

// findCSN returns the ordinal of the last group before which all CSNs are below csn.
func (t *tail) findCSN(csn eventlog.CSN) (uint64, bool) {
	i := sort.Search(len(t.groups), func(i int) bool { return t.groups[i].csn > csn })
	if i == 0 {
		return 0, false
	}
	return t.groups[i-1].first, true
}
