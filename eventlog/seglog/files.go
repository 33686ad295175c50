package seglog

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tailwater/tailwater/eventlog"
)

const journalSuffix = ".journal"

// indexPoint is a place in a journal file: an entry begins at pos, and all
// transactions before it have ordinals below ordinal and CSNs below csn; the
// file's records before it were committed at maxTime or earlier.
type indexPoint struct {
	pos     int64
	ordinal uint64
	csn     eventlog.CSN
	maxTime int64 // µs; noTime: there are none, anyTime: not known
}

const (
	noTime  = math.MinInt64
	anyTime = math.MaxInt64
)

// indexEvery is the least distance of index points in bytes: groups of 1 MiB, which often are
// a little smaller, have one each, and a seek reads one of them.
const indexEvery = 256 << 10

// journalFile is a file of the journal. All but size, index, streams and maxTime are fixed
// once it is listed; those of the newest file grow under the log's lock.
type journalFile struct {
	number  uint64
	path    string
	size    int64        // of what is durable: entries end here
	body    int64        // where the entries behind the checkpoint begin
	nextCSN eventlog.CSN // at its start
	ordinal uint64       // at its start
	starts  map[eventlog.TopicID][]eventlog.Offset
	index   []indexPoint
	streams []streamFile // that its entries adopt; of an older file: that are named after it
	maxTime int64        // largest commit time of its records, as in indexPoint
}

func journalName(number uint64) string { return fmt.Sprintf("%012d%s", number, journalSuffix) }

func parseJournalName(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, journalSuffix)
	if !ok || len(digits) != 12 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && n > 0
}

// start returns the offset at which a partition went on when the file was begun.
func (f *journalFile) start(topic eventlog.TopicID, partition int32) eventlog.Offset {
	if s := f.starts[topic]; int(partition) < len(s) {
		return s[partition]
	}
	return 0
}

// note adds an index point for the entry at pos if the last one is far enough behind.
func (f *journalFile) note(pos int64, ordinal uint64, csn eventlog.CSN) {
	if n := len(f.index); n == 0 && pos-f.body >= indexEvery || n > 0 && pos-f.index[n-1].pos >= indexEvery {
		f.index = append(f.index, indexPoint{pos, ordinal, csn, f.maxTime})
	}
}

// saw counts a transaction whose entry was noted; each has a record, in _tx if nowhere else.
func (f *journalFile) saw(tx *eventlog.Tx) { f.maxTime = max(f.maxTime, tx.CommitTime) }

// seek returns the last place from which no transaction at or above the ordinal
// is missed, and the ordinal of the next transaction there.
func (f *journalFile) seek(ordinal uint64) (pos int64, next uint64) {
	pos, next = f.body, f.ordinal
	for _, p := range f.index {
		if p.ordinal > ordinal {
			break
		}
		pos, next = p.pos, p.ordinal
	}
	return pos, next
}

// seekCSN returns the ordinal at the last place before which all CSNs are below csn.
func (f *journalFile) seekCSN(csn eventlog.CSN) uint64 {
	ordinal := f.ordinal
	for _, p := range f.index {
		if p.csn > csn {
			break
		}
		ordinal = p.ordinal
	}
	return ordinal
}

// seekTime returns the ordinal at the last place before which all records were committed before a time.
func (f *journalFile) seekTime(micros int64) uint64 {
	ordinal := f.ordinal
	for _, p := range f.index {
		if p.maxTime >= micros {
			break
		}
		ordinal = p.ordinal
	}
	return ordinal
}
