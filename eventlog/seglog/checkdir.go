package seglog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// CheckDir checks the log in a directory, also one that does not open any more.
// It takes no lock and writes nothing. name is a topic's name for what damaged
// is told; "" in the journal, or where nothing says it any more.
func CheckDir(ctx context.Context, dir string, opts Options, damaged func(d Damage, name string) error) (Checked, error) {
	names := map[eventlog.TopicID]string{}
	tell := func(d Damage) error { return damaged(d, names[d.Topic]) }
	l, err := OpenReadOnly(dir, opts)
	if err == nil {
		for _, t := range l.Topics() {
			names[t.ID] = t.Spec.Name
		}
		return l.CheckFiles(ctx, tell)
	}
	var bad *CorruptError
	if !errors.As(err, &bad) {
		return Checked{}, err
	}
	return checkBroken(ctx, newLog(dir, opts), bad, names, tell)
}

// checkBroken checks, file by file, a log that does not open because of bad.
func checkBroken(ctx context.Context, l *Log, bad *CorruptError, names map[eventlog.TopicID]string, tell func(Damage) error) (Checked, error) {
	l.readOnly = true
	told := false
	c := checker{l: l, ctx: ctx, damaged: func(d Damage) error {
		told = told || d.Path == bad.Path
		return tell(d)
	}}
	if err := c.rawJournal(); err != nil {
		return c.Checked, err
	}
	if err := l.loadSegments(); err != nil {
		return c.Checked, err
	}
	var segs []*segment
	for k, list := range l.segs {
		segs = append(segs, list...)
		if _, ok := names[k.topic]; !ok {
			names[k.topic] = metaName(l, k.topic)
		}
	}
	if err := c.segments(segs); err != nil {
		return c.Checked, err
	}
	if !told { // of what is missing, or does not fit together
		return c.Checked, tell(Damage{bad, 0}) // no topic's way out: the daemon does not start
	}
	return c.Checked, nil
}

// rawJournal checks all journal files by their names. What looks torn at the
// end of the newest is no damage.
func (c *checker) rawJournal() error {
	numbers, err := c.l.listJournal()
	var bad *CorruptError
	if err != nil && !errors.As(err, &bad) {
		return err
	}
	if bad != nil { // a hole: what is there is checked nevertheless
		if numbers, err = c.l.journalNumbers(); err != nil {
			return err
		}
	}
	for i, n := range numbers {
		path := c.l.path("journal/" + journalName(n))
		size, err := sizeOf(c.l.fs(), path)
		if err != nil {
			return fmt.Errorf("check %s: %w", path, err)
		}
		if i == len(numbers)-1 {
			if size, err = c.wholeSize(path, n, size); err != nil {
				return err
			}
		}
		if err := c.report(0, c.journalFile(path, n, size, i == len(numbers)-1)); err != nil {
			return err
		}
	}
	return nil
}

// wholeSize returns where the entries of a file end, before what was torn.
func (c *checker) wholeSize(path string, number uint64, size int64) (int64, error) {
	f, err := c.l.fs().Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	s := newScanner(f, path, number, fileHeaderSize, size)
	for {
		_, _, err := s.next()
		var bad *CorruptError
		switch {
		case errors.As(err, &bad):
			at, found, err := s.goodBehind()
			if err != nil {
				return 0, err
			}
			if !found {
				return s.pos, nil
			}
			s.pos = at
		case err != nil:
			return size, nil
		}
	}
}

// metaName returns a topic's name from its directory.
func metaName(l *Log, id eventlog.TopicID) string {
	dirs, err := l.fs().ReadDir(l.path("topics"))
	if err != nil {
		return ""
	}
	for _, dir := range dirs {
		if n, ok := parseTopicDir(dir); !ok || n != id {
			continue
		}
		b, err := vfs.ReadFile(l.fs(), l.path("topics/"+dir+"/meta"))
		var m topicMeta
		if err == nil && json.Unmarshal(b, &m) == nil {
			return m.Name
		}
	}
	return ""
}
