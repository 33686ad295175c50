package derive

import (
	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/image"
	"github.com/tailwater/tailwater/eventlog"
)

// viewState is one view of the Runner.
type viewState struct {
	name   string
	wanted View // nil: kept, but no longer asked for
	id     uint32
	topic  eventlog.Topic

	current *unit  // outputs; nil before the first images are there
	old     *unit  // serves while current's pass runs
	next    *unit  // waits for its images
	waiting string // why there is no unit yet
	stopped string // why it stopped
	unread  error  // damage in its topic, which a view without state must read first
	memory  progress
	// refilled: what of memory.Refill is left are the outputs.
	refilled bool
	changed  bool // memory is to be written

	dirty      map[string]eventlog.CSN // roots of the batch, with their cause
	frozen     *served                 // what readers see while a floor is open
	lastCommit int64                   // commit time of the last transaction output, µs since 1970
	complete   eventlog.CSN
}

// units returns the view's units that exist.
func (v *viewState) units() []*unit {
	var out []*unit
	for _, u := range []*unit{v.old, v.current, v.next} {
		if u != nil {
			out = append(out, u)
		}
	}
	return out
}

// serving is the unit that readers are shown.
func (v *viewState) serving() *unit {
	if v.old != nil {
		return v.old
	}
	return v.current
}

// reads reports whether the view's documents hang on a topic.
func (v *viewState) reads(topic string) bool {
	_, ok := v.current.needs[topic]
	return ok
}

// tracks reports whether changes must be walked: a view before the first root
// of a pass rebuilds every root anyway.
func (v *viewState) tracks() bool {
	return v.current != nil && v.current.bound != nil && v.stopped == "" && v.wanted != nil && (!v.memory.Pass || v.memory.Cursor != nil)
}

// restart makes the view rebuild every root, because of a change at cause.
func (v *viewState) restart(cause eventlog.CSN) {
	if v.memory.Pass {
		cause = min(cause, v.memory.Cause)
	}
	v.memory.Pass, v.memory.Fresh, v.memory.Cursor, v.memory.Cause = true, v.memory.Documents == 0 && v.memory.Pending == 0, nil, cause
	v.changed = true
}

// mark notes that the document of root may have changed. b takes what memory does not.
func (r *Runner) mark(b *image.Batch, v *viewState, root change.Key, cause eventlog.CSN) error {
	if v.memory.Pass && string(root) > string(v.memory.Cursor) {
		return nil // the pass will come to it
	}
	if _, ok := v.dirty[string(root)]; ok {
		return nil
	}
	if len(v.dirty) < r.opts.InlineLimit {
		v.dirty[string(root)] = cause
		return nil
	}
	return r.enqueue(b, v, root, cause, 0)
}

// Flags and classes of queue entries.
const (
	mustSend = 1 // what was last output is not known: send, also a tombstone

	classReady = 0 // to be drained
	classHeld  = 1 // waits for a row that fills its columns
)

// entry is a root in the queue.
type entry struct {
	cause eventlog.CSN
	flags byte
	class byte
}

// Queue values: cause uvarint, then one byte, flags in the low half, class in the high one.

func (r *Runner) queued(b *image.Batch, v *viewState, root []byte) (entry, bool, error) {
	if v.memory.Pending == 0 {
		return entry{}, false, nil
	}
	r.keyBuf = image.QueueKey(r.keyBuf[:0], v.id, root)
	n := len(r.keyBuf)
	buf, ok, err := b.Get(r.keyBuf, r.keyBuf[:n:n])
	r.keyBuf = buf
	if err != nil || !ok {
		return entry{}, false, err
	}
	e, err := decodeEntry(buf[n:])
	return e, err == nil, err
}

func decodeEntry(value []byte) (entry, error) {
	cause, tail, err := uvarint(value)
	if err != nil || len(tail) != 1 {
		return entry{}, errDamaged("queue entry")
	}
	return entry{cause: eventlog.CSN(cause), flags: tail[0] & 15, class: tail[0] >> 4}, nil
}

// enqueue puts a root into the ready queue; an entry that is there keeps its
// cause, which is older, and its flags.
func (r *Runner) enqueue(b *image.Batch, v *viewState, root []byte, cause eventlog.CSN, flags byte) error {
	old, ok, err := r.queued(b, v, root)
	if err != nil {
		return err
	}
	e := entry{cause: cause, flags: flags, class: classReady}
	if ok {
		if e.cause, e.flags = min(cause, old.cause), flags|old.flags; e == old {
			return nil
		}
	}
	return r.putQueue(b, v, root, old, ok, e)
}

// putQueue replaces a root's entry, if it has one, by e.
func (r *Runner) putQueue(b *image.Batch, v *viewState, root []byte, old entry, hadOld bool, e entry) error {
	if hadOld && (old.cause != e.cause || old.class != e.class) {
		if err := b.Delete(image.ReadyKey(nil, v.id, old.class, uint64(old.cause), root)); err != nil {
			return err
		}
	}
	if !hadOld {
		v.memory.Pending++
		v.changed = true
	}
	if err := b.Set(image.QueueKey(nil, v.id, root), append(appendUvarint(nil, uint64(e.cause)), e.flags|e.class<<4)); err != nil {
		return err
	}
	return b.Set(image.ReadyKey(nil, v.id, e.class, uint64(e.cause), root), nil)
}

// dequeue removes a root's entry.
func (r *Runner) dequeue(b *image.Batch, v *viewState, root []byte, e entry) error {
	v.memory.Pending--
	v.changed = true
	if err := b.Delete(image.QueueKey(nil, v.id, root)); err != nil {
		return err
	}
	return b.Delete(image.ReadyKey(nil, v.id, e.class, uint64(e.cause), root))
}

// ready returns up to n roots of the queue, oldest causes first; the bytes are copies.
func (r *Runner) ready(b *image.Batch, v *viewState, n int) ([][]byte, error) {
	if v.memory.Pending == 0 || n <= 0 {
		return nil, nil
	}
	var roots [][]byte
	bounds := image.Prefixed(image.ReadyPrefix(nil, v.id, classReady))
	err := b.Scan(bounds[0], bounds[1], func(k, _ []byte) (bool, error) {
		_, root := image.ReadyCause(k)
		roots = append(roots, append([]byte{}, root...))
		return len(roots) < n, nil
	})
	return roots, err
}

// leastCause returns the least cause in the queue; ok is false if it is empty.
func leastCause(b image.Reader, v *viewState) (least eventlog.CSN, ok bool, err error) {
	if v.memory.Pending == 0 {
		return 0, false, nil
	}
	for _, class := range []byte{classReady, classHeld} {
		bounds := image.Prefixed(image.ReadyPrefix(nil, v.id, class))
		err := b.Scan(bounds[0], bounds[1], func(k, _ []byte) (bool, error) {
			cause, _ := image.ReadyCause(k)
			if !ok || eventlog.CSN(cause) < least {
				least, ok = eventlog.CSN(cause), true
			}
			return false, nil
		})
		if err != nil {
			return 0, false, err
		}
	}
	return least, ok, nil
}
