package seglog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// recovered is what recovery found.
type recovered struct {
	fresh bool         // there was no log
	file  *journalFile // the newest file; nil when fresh
	last  int64        // where its last good entry begins; 0: its header and checkpoint
	torn  int64        // bytes behind that
}

// recover reads the directory: the checkpoint of each journal file, all entries
// of the newest, the names of all segments.
func (l *Log) recover() (recovered, error) {
	numbers, err := l.listJournal()
	if err != nil {
		return recovered{}, err
	}
	if err := l.loadSegments(); err != nil {
		return recovered{}, err
	}
	st, rec, err := l.loadJournal(numbers)
	if err != nil {
		return recovered{}, err
	}
	if rec.fresh && len(l.segs) > 0 {
		return rec, &CorruptError{Path: l.path("journal"), Reason: "there are sealed segments but no journal file"}
	}
	l.st = st
	if err := l.checkSegments(); err != nil {
		return rec, err
	}
	return rec, l.loadStreams()
}

// listJournal returns the numbers of the journal's files in order. There must be no hole.
func (l *Log) listJournal() ([]uint64, error) {
	numbers, err := l.journalNumbers()
	if err != nil {
		return nil, err
	}
	for i := 1; i < len(numbers); i++ {
		if numbers[i] != numbers[i-1]+1 {
			return nil, &CorruptError{
				Path:   l.path("journal/" + journalName(numbers[i-1]+1)),
				Reason: fmt.Sprintf("file is missing between %d and %d", numbers[i-1], numbers[i]),
			}
		}
	}
	return numbers, nil
}

// journalNumbers returns the numbers of the journal's files in order.
func (l *Log) journalNumbers() ([]uint64, error) {
	names, err := l.fs().ReadDir(l.path("journal"))
	if err != nil {
		return nil, err
	}
	var numbers []uint64
	for _, name := range names {
		if n, ok := parseJournalName(name); ok {
			numbers = append(numbers, n)
		} else if _, _, ok := parseStreamName(name); !ok && !strings.HasSuffix(name, ".tmp") {
			l.opts.Logger.Warn("leaving a file alone that is not the log's", "file", l.path("journal/"+name))
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// loadJournal reads the checkpoints and scans the newest file that has a whole one (V19).
func (l *Log) loadJournal(numbers []uint64) (*state, recovered, error) {
	var states []*state
	var ends []int64 // of the file before
	for i, n := range numbers {
		f, st, prevEnd, err := l.loadCheckpoint(n)
		if errors.Is(err, errNoCheckpoint) && i == len(numbers)-1 {
			if err := l.dropUnborn(n, i == 0); err != nil {
				return nil, recovered{}, err
			}
			break
		}
		if errors.Is(err, errNoCheckpoint) {
			err = &CorruptError{Path: l.path("journal/" + journalName(n)), Reason: fmt.Sprintf("%v, and it is not the newest file", err)}
		}
		if err == nil && i > 0 && st.id != states[0].id {
			err = &CorruptError{Path: f.path, Pos: fileHeaderSize, Reason: fmt.Sprintf("checkpoint of log %x, the files before it are of %x", st.id, states[0].id)}
		}
		if err != nil {
			return nil, recovered{}, err
		}
		l.files = append(l.files, f)
		states, ends = append(states, st), append(ends, prevEnd)
	}
	if len(l.files) == 0 {
		return newState(), recovered{fresh: true}, nil
	}
	last := len(l.files) - 1
	for i := range last {
		l.files[i].size = ends[i+1]
	}
	rec, err := l.scanNewest(l.files[last], states[last])
	return states[last], rec, err
}

// errNoCheckpoint says that a file has no whole checkpoint entry and nothing good behind it.
var errNoCheckpoint = errors.New("no whole checkpoint")

// loadCheckpoint reads the head of a journal file.
func (l *Log) loadCheckpoint(number uint64) (*journalFile, *state, int64, error) {
	path := l.path("journal/" + journalName(number))
	f, err := l.fs().Open(path)
	if err != nil {
		return nil, nil, 0, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, nil, 0, err
	}
	s := newScanner(f, path, number, 0, size)
	if size >= fileHeaderSize {
		head, err := s.window(fileHeaderSize)
		if err != nil {
			return nil, nil, 0, err
		}
		if err := checkFileHeader(head, number); err != nil {
			return nil, nil, 0, l.unborn(s, err.Error())
		}
		s.pos = fileHeaderSize
	}
	kind, payload, err := s.next()
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, eventlog.ErrCorrupt) {
		return nil, nil, 0, err // not read: that says nothing about what is there
	}
	if err != nil || kind != kindCheckpoint {
		return nil, nil, 0, l.unborn(s, fmt.Sprintf("begins with an entry of kind %d (%v)", kind, err))
	}
	st, prevEnd, err := decodeCheckpoint(payload)
	if err != nil {
		return nil, nil, 0, &CorruptError{Path: path, Pos: fileHeaderSize, Reason: err.Error()}
	}
	return &journalFile{
		number: number, path: path, size: size, body: s.pos,
		nextCSN: st.nextCSN, ordinal: st.ordinal, starts: st.offsets(), maxTime: anyTime,
	}, st, prevEnd, nil
}

// unborn tells a file whose beginning was torn from one that is damaged: the latter has good entries.
func (l *Log) unborn(s *entryScanner, reason string) error {
	s.pos = 0
	if _, found, err := s.goodBehind(); err != nil {
		return err
	} else if found {
		return s.corrupt(reason + ", with good entries behind it")
	}
	return fmt.Errorf("%s: %w", reason, errNoCheckpoint)
}

// dropUnborn removes a newest file that never held anything.
func (l *Log) dropUnborn(number uint64, only bool) error {
	path := l.path("journal/" + journalName(number))
	if only && number != 1 {
		return &CorruptError{Path: path, Reason: "the only journal file has no whole checkpoint"}
	}
	if l.readOnly {
		return nil
	}
	l.opts.Logger.Warn("dropping a journal file whose making was interrupted", "file", path)
	if err := l.fs().Remove(path); err != nil {
		return err
	}
	return l.fs().SyncDir(l.path("journal"))
}

// scanNewest advances st by all entries of a file.
func (l *Log) scanNewest(jf *journalFile, st *state) (recovered, error) {
	f, err := l.fs().Open(jf.path)
	if err != nil {
		return recovered{}, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return recovered{}, err
	}
	jf.maxTime = noTime
	s := newScanner(f, jf.path, jf.number, jf.body, size)
	last, err := l.scanEntries(s, jf, st)
	if err != nil {
		return recovered{}, err
	}
	jf.size = s.pos
	return recovered{file: jf, last: last, torn: size - s.pos}, nil
}

// scanEntries reads entries from s until the end or a torn tail, where it leaves
// s, and returns where the last good one begins, 0 if there is none.
func (l *Log) scanEntries(s *entryScanner, jf *journalFile, st *state) (last int64, err error) {
	for {
		pos := s.pos
		kind, payload, err := s.next()
		if errors.Is(err, io.EOF) {
			return last, nil
		}
		var bad *CorruptError
		if errors.As(err, &bad) {
			at, found, ferr := s.goodBehind()
			if ferr != nil {
				return 0, ferr
			}
			if found {
				bad.Reason += fmt.Sprintf("; a good entry follows at byte %d, so it was not torn", at)
				return 0, bad
			}
			return last, nil
		}
		if err != nil {
			return 0, err
		}
		if err := l.replay(jf, st, kind, payload, pos); err != nil {
			return 0, located(s.path, pos, err)
		}
		last = pos
	}
}

// replay applies one entry.
func (l *Log) replay(jf *journalFile, st *state, kind byte, payload []byte, pos int64) error {
	switch kind {
	case kindGroup, kindAdopt:
		g, err := decodeTransactions(kind, payload)
		if err != nil {
			return err
		}
		ordinal, csn := st.ordinal, st.nextCSN
		if err := st.applyGroup(g); err != nil {
			return err
		}
		if g.stream != nil {
			if err := l.replayAdoption(jf, g.stream); err != nil {
				return err
			}
		}
		jf.note(pos, ordinal, csn)
		for i := range g.rows {
			jf.saw(&g.rows[i].tx)
		}
		if len(g.rows) > 0 {
			b, mem := l.mem.copy(payload)
			l.tail.add(tailGroup{kind: kind, first: g.first, end: g.end(), csn: csn, payload: b, mem: mem})
		}
		return nil
	case kindIndex: // written before the next file was; that one is not there
		return nil
	}
	return fmt.Errorf("entry of kind %d inside a file", kind)
}

// loadIndex returns a closed file's index and the largest commit time of its
// records; none and anyTime if it was not closed with one.
func loadIndex(f vfs.File, jf *journalFile, size int64) ([]indexPoint, int64) {
	var last [4]byte
	if size < jf.body+entryHeaderSize+4 {
		return nil, anyTime
	}
	if _, err := f.ReadAt(last[:], size-4); err != nil {
		return nil, anyTime
	}
	n := int64(binary.LittleEndian.Uint32(last[:]))
	if n < entryHeaderSize || n > size-jf.body {
		return nil, anyTime
	}
	s := newScanner(f, jf.path, jf.number, size-n, size)
	kind, payload, err := s.next()
	if err != nil || kind != kindIndex {
		return nil, anyTime
	}
	points, maxTime, err := decodeIndex(payload)
	if err != nil {
		return nil, anyTime
	}
	return points, maxTime
}
