package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/internal/testkit"
	"github.com/tailwater/tailwater/snapshot"
)

// memory is a log as a source sees it.
type memory struct {
	mu      sync.Mutex
	pos     change.Position
	note    []byte
	schemas map[string]*change.Schema
	silent  bool // the source is not told what is durable
}

func (m *memory) LogID() [16]byte { return [16]byte{1} }
func (m *memory) Last() (change.Position, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pos, !m.pos.IsZero()
}
func (m *memory) Marks() ([]*change.SnapshotMark, error)                            { return nil, nil }
func (m *memory) Recent(fn func(r connectors.RecentTx) error) error                 { return nil }
func (m *memory) Schemas() (map[string]*change.Schema, error)                       { return m.schemas, nil }
func (m *memory) ReadNewest(string, func(change.Key, change.Row, bool) error) error { return nil }
func (m *memory) Intent() ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.note, nil
}
func (m *memory) SetIntent(note []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note = note
	return nil
}

// durable is what ingest does: the batch is in the log.
func (m *memory) durable(src connectors.Source, b *change.Batch) {
	m.mu.Lock()
	m.pos = b.Pos
	for i := range b.Events {
		m.schemas[b.Events[i].Schema.Topic] = b.Events[i].Schema
	}
	m.mu.Unlock()
	if !m.silent {
		src.Confirm(b.Pos)
	}
}

// noSnapshot is a coordinator without chunks.
type noSnapshot struct {
	mu      sync.Mutex
	passed  LSN
	want    LSN
	layouts []string
	ready   chan struct{}
}

func (n *noSnapshot) Transaction(*change.Batch) error                  { return nil }
func (n *noSnapshot) Streamed(*change.Batch, *snapshot.Streamed) error { return nil }
func (n *noSnapshot) Signal(*change.Batch, string, string) error       { return nil }
func (n *noSnapshot) Passed(lsn LSN) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.passed = lsn
}
func (n *noSnapshot) Layout(was, now *table, retyped bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.layouts = append(n.layouts, fmt.Sprintf("%s retyped=%v", now, retyped))
}
func (n *noSnapshot) Chunk() (*change.Batch, error)        { return nil, nil }
func (n *noSnapshot) Ready() <-chan struct{}               { return n.ready }
func (n *noSnapshot) Run(ctx context.Context) error        { <-ctx.Done(); return nil }
func (n *noSnapshot) Wanted() LSN                          { n.mu.Lock(); defer n.mu.Unlock(); return n.want }
func (n *noSnapshot) Progress() []connectors.TableProgress { return nil }

// rig is a source on a fresh database.
type rig struct {
	t     *testing.T
	dsn   string
	opts  Options
	con   *Connector
	log   *memory
	co    *noSnapshot
	start coordinatorStart // of the last Open
	src   connectors.Source
}

func newRig(t *testing.T, dsn string, ddl ...string) *rig {
	t.Helper()
	r := &rig{t: t, dsn: dsn, log: &memory{schemas: map[string]*change.Schema{}}}
	r.opts = Options{Source: testkit.Name(t), DSN: dsn, Tables: []string{"public.*"}, Discover: -1,
		TickInterval: 50 * time.Millisecond, StatusInterval: 50 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(testWriter{t}, nil))}
	testkit.Exec(t, dsn, ddl...)
	r.connector()
	t.Cleanup(r.close)
	return r
}

func (r *rig) connector() {
	r.con = New(r.opts)
	r.con.coordinate = func(start coordinatorStart) (coordinator, error) {
		r.start = start
		r.co = &noSnapshot{ready: make(chan struct{}, 1)}
		return r.co, nil
	}
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

// open opens the source and takes the first tick of a new slot.
func (r *rig) open() {
	r.t.Helper()
	src, err := r.con.Open(r.t.Context(), r.log)
	if err != nil {
		r.t.Fatalf("open: %v", err)
	}
	r.src = src
}

func (r *rig) close() {
	if r.src != nil {
		r.src.Close()
		r.src = nil
	}
}

func (r *rig) exec(sql ...string) { r.t.Helper(); testkit.Exec(r.t, r.dsn, sql...) }

// next returns the next batch with rows, making all of them durable.
func (r *rig) next() *change.Batch {
	r.t.Helper()
	for {
		b := r.step()
		if b.Kind == change.Transaction {
			return b
		}
	}
}

// step returns the next batch.
func (r *rig) step() *change.Batch {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer cancel()
	b, err := r.src.Next(ctx)
	if err != nil {
		r.t.Fatalf("next: %v", err)
	}
	if !b.More {
		r.log.durable(r.src, b)
	}
	return b
}

// render writes a batch's events, one a line.
func render(t *testing.T, b *change.Batch) string {
	t.Helper()
	var out strings.Builder
	for i := range b.Events {
		e := &b.Events[i]
		fmt.Fprintf(&out, "%s %s", e.Op, e.Schema.Topic[strings.LastIndexByte(e.Schema.Topic, '.')+1:])
		if e.Flags&change.FlagPartial != 0 {
			out.WriteString(" partial")
		}
		if e.Flags&change.FlagMoved != 0 {
			out.WriteString(" moved")
		}
		parts, err := change.DecodeKey(b.Key(e))
		if err != nil {
			t.Fatalf("key: %v", err)
		}
		out.WriteString(" key=")
		for j, p := range parts {
			if j > 0 {
				out.WriteByte(',')
			}
			out.Write(change.AppendText(nil, p))
		}
		if row, ok := b.Before(e); ok {
			out.WriteString(" before=" + renderRow(t, row))
		}
		if row, ok := b.After(e); ok {
			out.WriteString(" after=" + renderRow(t, row))
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func renderRow(t *testing.T, row change.Row) string {
	t.Helper()
	values, err := row.Values(nil)
	if err != nil {
		t.Fatalf("row: %v", err)
	}
	var out []byte
	for i, v := range values {
		if i > 0 {
			out = append(out, ' ')
		}
		out = append(append(out, row.Schema.Columns[i].Name...), ':')
		if v.IsUnchanged() {
			out = append(out, "(unchanged)"...)
			continue
		}
		if text := change.AppendJSON(nil, v); len(text) > 200 {
			out = fmt.Appendf(out, "(%d bytes)", len(text))
		} else {
			out = append(out, text...)
		}
	}
	return "{" + string(out) + "}"
}

func isReopen(err error) bool { return errors.Is(err, connectors.ErrReopen) }
