package seglog

import (
	"context"
	"testing"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/logtest"
	"github.com/tailwater/tailwater/internal/vfs"
)

func TestConformance(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts Options
		fs   vfs.FS
	}{
		{"on disk", Options{}, vfs.OS},
		{"small files", Options{FileBytes: 2000, SealBatch: 200}, nil},
		{"no tail", Options{TailBytes: 1, FileBytes: 5000, SealBatch: 1000}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) { logtest.Run(t, backend(tt.opts, tt.fs)) })
	}
}

func TestModel(t *testing.T) {
	b := backend(Options{FileBytes: 1500, SealBatch: 300, TailBytes: 1000}, nil)
	b.Crash = func(t *testing.T, l eventlog.Log) eventlog.Log {
		opts := l.(*Log).opts
		opts.FS = opts.FS.(*vfs.Mem).Crash(nil)
		again, err := Open(l.(*Log).dir, opts)
		if err != nil {
			t.Fatalf("Open after a power loss = %v", err)
		}
		return again
	}
	logtest.Model(t, b)
}

// backend is this package for the suite; a nil fs is a new one in memory each time.
func backend(opts Options, fs vfs.FS) logtest.Backend {
	opts.Merge = logtest.MergeColumns
	open := func(t *testing.T, dir string, opts Options) eventlog.Log {
		l, err := Open(dir, opts)
		if err != nil {
			t.Fatalf("Open = %v", err)
		}
		return l
	}
	return logtest.Backend{
		Open: func(t *testing.T) eventlog.Log {
			opts := opts
			if opts.FS = fs; fs == nil {
				opts.FS = vfs.NewMem()
				return open(t, "log", opts)
			}
			return open(t, t.TempDir()+"/log", opts)
		},
		Reopen: func(t *testing.T, l eventlog.Log) eventlog.Log {
			if err := l.Close(); err != nil {
				t.Fatalf("Close = %v", err)
			}
			return open(t, l.(*Log).dir, l.(*Log).opts)
		},
		Settle: func(t *testing.T, l eventlog.Log) {
			if err := l.(*Log).SealAll(context.Background()); err != nil {
				t.Fatalf("SealAll = %v", err)
			}
		},
		Compact: func(t *testing.T, l eventlog.Log, topic eventlog.Topic) {
			if err := l.(*Log).SealAll(context.Background()); err != nil {
				t.Fatalf("SealAll = %v", err)
			}
			for range 4 { // a tombstone goes in the pass behind the one that removed what it hides
				if _, err := l.(*Log).Compact(context.Background(), topic.ID); err != nil {
					t.Fatalf("Compact = %v", err)
				}
			}
		},
	}
}
