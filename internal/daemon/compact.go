package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/seglog"
	"github.com/tailwater/tailwater/server"
)

// Compact compacts the topics that the glob matches and calls fn after each.
func (l *LogReader) Compact(ctx context.Context, glob string, fn func(server.Compacted) error) error {
	return compact(ctx, l.log, glob, fn)
}

// compact seals what there is and compacts the topics; a glob passes over those
// of another cleanup. Reading goes on meanwhile.
func compact(ctx context.Context, log *seglog.Log, glob string, fn func(server.Compacted) error) error {
	topics, err := matching(log, glob)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(topics, compacted) {
		if strings.ContainsAny(glob, "*?[") {
			return nil
		}
		return fmt.Errorf("%w: topic %q is kept by cleanup %s, which keeps every record; only topics of cleanup compact are compacted",
			server.ErrBadRequest, topics[0].Spec.Name, topics[0].Spec.Cleanup)
	}
	if err := log.SealAll(ctx); err != nil { // only segments can be compacted
		return fmt.Errorf("compact %s: %w", glob, err)
	}
	for _, t := range topics {
		if !compacted(t) {
			continue
		}
		before, err := topicInfo(ctx, log, t.ID)
		if err != nil {
			return err
		}
		if _, err := log.Compact(ctx, t.ID); err != nil {
			return err
		}
		after, err := topicInfo(ctx, log, t.ID)
		if err != nil {
			return err
		}
		if err := fn(server.Compacted{
			Topic: t.Spec.Name, RecordsBefore: before.SegmentRecords, RecordsAfter: after.SegmentRecords,
			BytesBefore: before.SegmentBytes, BytesAfter: after.SegmentBytes,
		}); err != nil {
			return err
		}
	}
	return nil
}

func compacted(t eventlog.Topic) bool { return t.Spec.Cleanup == eventlog.CleanupCompact }

func topicInfo(ctx context.Context, log *seglog.Log, id eventlog.TopicID) (seglog.TopicInfo, error) {
	infos, err := log.Inspect(ctx, false)
	if err != nil {
		return seglog.TopicInfo{}, fmt.Errorf("look at the topic: %w", err)
	}
	return infos[id-1], nil
}

// CompactDir compacts topics of a data directory that no daemon has open; it
// takes the directory's lock.
func CompactDir(ctx context.Context, cfg *config.Config, glob string, logger *slog.Logger, fn func(server.Compacted) error) error {
	path := filepath.Join(cfg.DataDir, "log")
	if !exists(path) {
		return noLog(cfg)
	}
	dir, err := openDataDir(cfg.DataDir, lockCompact, logger)
	if err != nil {
		return err
	}
	defer dir.close()
	log, err := openLog(cfg, dir, logger)
	if err != nil {
		return dirError(err)
	}
	err = compact(ctx, log, glob, fn)
	if cerr := log.Close(); err == nil {
		err = cerr
	}
	return err
}

func noLog(cfg *config.Config) error {
	return fmt.Errorf("%w: %s has no log; start the daemon once with: tailwater run", server.ErrNotFound, cfg.DataDir)
}
