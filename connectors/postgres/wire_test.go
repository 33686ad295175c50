package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"

	"github.com/tailwater/tailwater/change"
)

// chopped is a connection whose reads come in pieces.
type chopped struct {
	net.Conn
	r   io.Reader
	rnd *rand.Rand
}

func (c *chopped) Read(b []byte) (int, error) { return c.r.Read(b[:min(len(b), 1+c.rnd.IntN(5000))]) }

func TestWire(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	var stream bytes.Buffer
	var sent [][]byte
	for _, n := range []int{0, 1, 10, wireBuffer - 5, wireBuffer, 3, 9 << 20, 7, 100000, 5 << 20, 0} {
		body := make([]byte, n)
		for i := range body {
			body[i] = byte(rnd.Uint32())
		}
		sent = append(sent, body)
		stream.WriteByte('d')
		stream.Write(binary.BigEndian.AppendUint32(nil, uint32(n+4)))
		stream.Write(body)
	}
	w := newWire(&chopped{r: &stream, rnd: rnd})
	for i, want := range sent {
		kind, body, err := w.next()
		if err != nil || kind != 'd' || !bytes.Equal(body, want) {
			t.Fatalf("message %d of %d bytes: kind %c, %d bytes, %v", i, len(want), kind, len(body), err)
		}
	}
	if len(w.buf) != wireBuffer {
		t.Errorf("the buffer keeps %d bytes", len(w.buf))
	}
	if _, _, err := w.next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

// TestWireLength: a length that is never sent takes no memory.
func TestWireLength(t *testing.T) {
	w := newWire(&chopped{r: bytes.NewReader([]byte{'d', 0x7F, 0xFF, 0xFF, 0xFF, 1, 2}), rnd: rand.New(rand.NewPCG(1, 1))})
	if _, _, err := w.next(); err == nil || len(w.buf) > wireBuffer+wireGrow {
		t.Errorf("%v with a buffer of %d", err, len(w.buf))
	}
	w = newWire(&chopped{r: bytes.NewReader([]byte{'d', 0, 0, 0, 3}), rnd: rand.New(rand.NewPCG(1, 1))})
	if _, _, err := w.next(); !errors.Is(err, errMessage) {
		t.Errorf("a length below 4: %v", err)
	}
}

func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		q := newQueue(2000)
		batch := func() *change.Batch {
			b := &change.Batch{}
			b.Add(&change.Schema{}, change.OpInsert, 0, make([]byte, 600), nil, nil)
			return b
		}
		must := func(it item) {
			t.Helper()
			if err := q.put(ctx, it); err != nil {
				t.Fatal(err)
			}
		}
		must(item{passed: 1})
		must(item{passed: 2, urgent: true})
		must(item{passed: 3})
		must(item{batch: batch(), passed: 4})
		must(item{passed: 5})
		blocked := true
		go func() {
			must(item{batch: batch(), passed: 6})
			blocked = false
		}()
		synctest.Wait()
		if !blocked {
			t.Error("the queue has no bound")
		}
		var got []LSN
		for {
			it, ok, err := q.take()
			if !ok {
				if err != nil {
					t.Error(err)
				}
				break
			}
			if it.passed == 3 && !it.urgent {
				t.Error("urgency is lost in merging")
			}
			got = append(got, it.passed)
			synctest.Wait()
		}
		if len(got) != 4 || got[0] != 3 || got[1] != 4 || got[2] != 5 || got[3] != 6 {
			t.Errorf("took %v", got)
		}
		must(item{passed: 7})
		q.end(errClosed)
		q.end(io.EOF)
		if it, ok, _ := q.take(); !ok || it.passed != 7 {
			t.Error("an item before the end is lost")
		}
		if _, ok, err := q.take(); ok || err != errClosed {
			t.Errorf("the end is %v", err)
		}
		if err := q.put(ctx, item{passed: 8}); err != errClosed {
			t.Errorf("put after the end: %v", err)
		}
		// A context ends a put that waits.
		q = newQueue(10)
		must(item{batch: batch()})
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		if err := q.put(canceled, item{batch: batch()}); !errors.Is(err, context.Canceled) {
			t.Errorf("put: %v", err)
		}
	})
}
