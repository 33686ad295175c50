package seglog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tailwater/tailwater/internal/vfs"
)

// A streamed file, version 1, is a 16-byte header ("TWST", u16 version, u16
// zero, u64 number) and then chunks: entries as in the journal, of kind 5,
// seeded with the file's own number. While its transaction is in progress it is
// NUMBER.stream.tmp in the journal's directory, then JOURNAL-NUMBER.stream, with
// the number of the journal file whose entry adopts it and with which it goes.
const (
	streamVersion   = 1
	streamSuffix    = ".stream"
	streamTmpSuffix = ".stream.tmp"
)

var streamMagic = [4]byte{'T', 'W', 'S', 'T'}

// streamFile is an adopted file.
type streamFile struct {
	number uint64
	size   int64
}

func streamTmpName(number uint64) string { return fmt.Sprintf("%012d%s", number, streamTmpSuffix) }

func streamName(journal, number uint64) string {
	return fmt.Sprintf("%012d-%d%s", journal, number, streamSuffix)
}

// parseStreamName reads the name of a streamed file; journal 0: one in progress.
func parseStreamName(name string) (journal, number uint64, ok bool) {
	if digits, tmp := strings.CutSuffix(name, streamTmpSuffix); tmp {
		number, ok = parseDecimal(digits)
		return 0, number, ok && streamTmpName(number) == name
	}
	both, found := strings.CutSuffix(name, streamSuffix)
	first, second, cut := strings.Cut(both, "-")
	journal, ok1 := parseDecimal(first)
	number, ok2 := parseDecimal(second)
	return journal, number, found && cut && ok1 && ok2 && streamName(journal, number) == name
}

func parseDecimal(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && n > 0
}

func appendStreamHeader(dst []byte, number uint64) []byte {
	dst = append(dst, streamMagic[:]...)
	dst = binary.LittleEndian.AppendUint16(dst, streamVersion)
	dst = binary.LittleEndian.AppendUint16(dst, 0)
	return binary.LittleEndian.AppendUint64(dst, number)
}

func checkStreamHeader(b []byte, number uint64) error {
	switch {
	case [4]byte(b[:4]) != streamMagic:
		return fmt.Errorf("magic %q is not a streamed file's", b[:4])
	case binary.LittleEndian.Uint16(b[4:]) != streamVersion:
		return fmt.Errorf("streamed file of version %d; this program reads %d", binary.LittleEndian.Uint16(b[4:]), streamVersion)
	case binary.LittleEndian.Uint16(b[6:]) != 0:
		return fmt.Errorf("header with unknown flags %#x", binary.LittleEndian.Uint16(b[6:]))
	case binary.LittleEndian.Uint64(b[8:]) != number:
		return fmt.Errorf("header names streamed file %d", binary.LittleEndian.Uint64(b[8:]))
	}
	return nil
}

func (l *Log) streamPath(a *adoption) string {
	return l.path("journal/" + streamName(a.journal, a.number))
}

// bytes is what a journal file and the streamed files that it adopted take.
func (f *journalFile) bytes() int64 {
	n := f.size
	for _, s := range f.streams {
		n += s.size
	}
	return n
}

// replayAdoption notes the streamed file of an entry of jf; a CorruptError names
// one that is not there.
func (l *Log) replayAdoption(jf *journalFile, a *adoption) error {
	path := l.streamPath(a)
	if a.journal != jf.number {
		return fmt.Errorf("adopts %s for journal file %d", path, a.journal)
	}
	size, err := sizeOf(l.fs(), path)
	if vfs.IsNotExist(err) {
		return missingStream(path, a)
	}
	if err != nil {
		return &ioError{err}
	}
	if size < a.length {
		return &CorruptError{Path: path, Pos: size, Reason: fmt.Sprintf("file ends, it had %d bytes", a.length)}
	}
	jf.streams = append(jf.streams, streamFile{a.number, a.length})
	return nil
}

func missingStream(path string, a *adoption) error {
	return &CorruptError{Path: path, Reason: fmt.Sprintf("streamed file of %d bytes is missing, transaction with CSN %d is in it", a.length, a.tx.CSN)}
}

// located makes what was wrong with an entry a CorruptError that names it, but
// for errors that name a file themselves.
func located(path string, pos int64, err error) error {
	var bad *CorruptError
	var io *ioError
	if errors.As(err, &bad) || errors.As(err, &io) {
		return err
	}
	return &CorruptError{Path: path, Pos: pos, Reason: err.Error()}
}

// loadStreams lists the streamed files: those of closed journal files live as
// long as these; of the newest those that an entry adopts, which its scan has
// noted. All others are what a crash left, and are removed.
func (l *Log) loadStreams() error {
	names, err := l.fs().ReadDir(l.path("journal"))
	if err != nil {
		return err
	}
	for _, name := range names {
		journal, number, ok := parseStreamName(name)
		if !ok {
			continue
		}
		l.streamNumber = max(l.streamNumber, number)
		if err := l.loadStream(name, journal, number); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) loadStream(name string, journal, number uint64) error {
	path := l.path("journal/" + name)
	if len(l.files) > 0 {
		first, newest := l.files[0], l.files[len(l.files)-1]
		if journal >= first.number && journal < newest.number {
			size, err := sizeOf(l.fs(), path)
			if err != nil {
				return err
			}
			jf := l.files[journal-first.number]
			jf.streams = append(jf.streams, streamFile{number, size})
			return nil
		}
		for _, s := range newest.streams {
			if journal == newest.number && s.number == number {
				return nil
			}
		}
	}
	if l.readOnly {
		return nil // it may be another process's, at work
	}
	if journal > 0 && (len(l.files) == 0 || journal > l.files[len(l.files)-1].number) {
		l.opts.Logger.Warn("leaving a streamed file alone whose journal file was never there", "file", path)
		return nil
	}
	l.opts.Logger.Info("removing a streamed file that was never adopted", "file", path)
	if err := l.fs().Remove(path); err != nil && !vfs.IsNotExist(err) {
		return err
	}
	return nil
}

// removeStreams removes what a journal file adopted, after that was removed durably:
// a crash in between leaves files of a journal file that is not there, which Open removes.
func (l *Log) removeStreams(jf *journalFile) error {
	for _, s := range jf.streams {
		path := l.path("journal/" + streamName(jf.number, s.number))
		if err := l.fs().Remove(path); err != nil && !vfs.IsNotExist(err) {
			return err
		}
	}
	return nil
}
