package daemon

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/seglog"
	"github.com/tailwater/tailwater/server"
)

// refreshEvery is how often a log that another process writes to is looked at
// by who follows it.
const refreshEvery = 100 * time.Millisecond

// LogReader answers what is asked about a log: the daemon's own, or one opened for reading only.
type LogReader struct {
	log   *seglog.Log
	kinds map[string]string // source name to its kind
	live  bool              // this process writes to it
}

// NewLogReader makes the reader of a log; kinds are those of the sources, by their names.
func NewLogReader(log *seglog.Log, kinds map[string]string) *LogReader {
	return &LogReader{log: log, kinds: kinds, live: !log.ReadOnly()}
}

// wait returns when there may be more to read than when changed was taken.
func (l *LogReader) wait(ctx context.Context, changed <-chan struct{}) error {
	var tick <-chan time.Time
	if !l.live {
		t := time.NewTicker(refreshEvery)
		defer t.Stop()
		tick = t.C
	}
	for {
		select {
		case <-changed:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-tick:
			if _, err := l.log.Refresh(); err != nil {
				return fmt.Errorf("look for new records: %w", err)
			}
		}
	}
}

// Topics lists the topics by name.
func (l *LogReader) Topics(ctx context.Context) ([]server.TopicStatus, error) {
	infos, err := l.log.Inspect(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("list the topics: %w", dirError(err))
	}
	return topicStatus(infos), nil
}

// LogStats describes the log and its topics.
func (l *LogReader) LogStats(ctx context.Context) (server.LogDetail, error) {
	infos, err := l.log.Inspect(ctx, true)
	if err != nil {
		return server.LogDetail{}, fmt.Errorf("describe the log: %w", dirError(err))
	}
	st := l.log.Stats()
	d := server.LogDetail{
		FrontierCSN: uint64(st.Frontier), OldestCSN: uint64(st.OldestCSN), JournalBytes: st.JournalBytes, JournalFiles: st.JournalFiles,
		SegmentBytes: st.SegmentBytes, Topics: topicStatus(infos), Laggard: laggard(st.Laggard),
	}
	for i := range d.Topics {
		t := &d.Topics[i]
		d.Segments += t.Segments
		d.Records += t.Records
		if t.Newest != nil && (d.Newest == nil || t.Newest.After(*d.Newest)) {
			d.Newest = t.Newest
		}
	}
	if l.live {
		d.Live = &server.LogCounters{Appends: st.Appends, AppendedBytes: st.AppendedBytes, Syncs: st.Syncs}
	}
	return d, nil
}

func laggard(l *eventlog.Laggard) *server.Laggard {
	if l == nil {
		return nil
	}
	return &server.Laggard{Consumer: l.Consumer, Topic: l.Topic, PassedCSN: uint64(l.Passed), Since: time.UnixMicro(l.Since).UTC(), Bytes: l.Bytes}
}

// CheckLog reads everything that the log has on disk.
func (l *LogReader) CheckLog(ctx context.Context, fn func(server.Damage) error) (server.CheckResult, error) {
	names := map[eventlog.TopicID]string{}
	for _, t := range l.log.Topics() {
		names[t.ID] = t.Spec.Name
	}
	n := 0
	c, err := l.log.CheckFiles(ctx, func(d seglog.Damage) error {
		n++
		return fn(damage(d, names[d.Topic]))
	})
	return checkResult(c, n), err
}

// CheckDir checks the log of a data directory, also one that does not open any more.
func CheckDir(ctx context.Context, cfg *config.Config, fn func(server.Damage) error) (server.CheckResult, error) {
	path := filepath.Join(cfg.DataDir, "log")
	if !exists(path) {
		return server.CheckResult{}, noLog(cfg)
	}
	n := 0
	c, err := seglog.CheckDir(ctx, path, seglog.Options{}, func(d seglog.Damage, topic string) error {
		n++
		return fn(damage(d, topic))
	})
	return checkResult(c, n), err
}

func checkResult(c seglog.Checked, damages int) server.CheckResult {
	return server.CheckResult{OK: damages == 0, Damages: damages, Records: c.Records, Bytes: c.Bytes, Files: c.Files, Torn: c.Torn}
}

func damage(d seglog.Damage, topic string) server.Damage {
	return server.Damage{File: d.Path, Byte: d.Pos, Reason: d.Reason, Topic: topic, Fix: wayOut(topic)}
}

// wayOut says what brings back what was damaged in a topic; "" is the journal.
func wayOut(topic string) string {
	view, isView := strings.CutPrefix(topic, change.TopicView)
	switch {
	case isView:
		if plain, err := change.UnescapeName(view); err == nil {
			view = plain
		}
		return "tailwater view rebuild " + view + " writes the view's records again"
	case topic == "" || strings.HasPrefix(topic, "_"):
		return "restore the file from a copy, or begin a new log: stop the daemon, tailwater drop --state --yes, tailwater run reads every table again"
	}
	return "tailwater snapshot run " + topic + " refills it; if that ends with the same damage, begin a new log: stop the daemon, tailwater drop --state --yes, tailwater run reads every table again"
}

// dirError gives damage that stopped something else its way out.
func dirError(err error) error {
	if errors.Is(err, eventlog.ErrCorrupt) {
		return fmt.Errorf("%w; tailwater log check names all damage and the way out", err)
	}
	return err
}
