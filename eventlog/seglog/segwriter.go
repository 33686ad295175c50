package seglog

import (
	"fmt"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/internal/vfs"
)

// segChunk is how much a segment's writer collects before it opens its file.
const segChunk = 256 << 10

// segWriter writes a segment: one partition's part of a sealing round, or what a
// compaction leaves of a run of segments. Its file is open only while a chunk is
// written, so that any number of partitions may be sealed.
type segWriter struct {
	l     *Log
	key   partKey
	dir   string
	tmp   string
	from  eventlog.Offset // what is below is sealed already
	codec eventlog.Compression

	builder eventlog.BatchBuilder
	point   segmentBatch // of the batch being built
	idx     segmentIndex
	buf     []byte // of the file from written on
	written int64
	base    eventlog.Offset
	next    eventlog.Offset
	made    bool
	covers  bool     // base and next were given: the segment takes the place of others, even if empty
	gen     uint64   // of the file's name
	seg     *segment // finished, not yet renamed
}

func (l *Log) newSegWriter(k partKey) (*segWriter, error) {
	l.mu.RLock()
	from := l.sealedEnd(k)
	ts := l.st.topic(k.topic)
	l.mu.RUnlock()
	if ts == nil || int(k.partition) >= len(ts.next) {
		return nil, fmt.Errorf("topic %d partition %d is not known", k.topic, k.partition)
	}
	t, _ := l.topicByID(k.topic)
	w, err := l.segWriterOf(t, k, "tmp")
	if err == nil {
		w.from = from
	}
	return w, err
}

// segWriterOf returns a writer with a temporary file PARTITION.SUFFIX.
func (l *Log) segWriterOf(t eventlog.Topic, k partKey, suffix string) (*segWriter, error) {
	codec, err := eventlog.ParseCompression(t.Spec.Compression)
	if err != nil {
		return nil, fmt.Errorf("seal topic %q: %w", t.Spec.Name, err)
	}
	dir, err := l.makeTopicDir(t)
	if err != nil {
		return nil, fmt.Errorf("make directory of topic %q: %w", t.Spec.Name, err)
	}
	return &segWriter{
		l: l, key: k, dir: dir, tmp: fmt.Sprintf("%s/%05d.%s", dir, k.partition, suffix), codec: codec,
		buf: appendSegmentHeader(nil, k),
	}, nil
}

// add appends a record that is not sealed yet.
func (w *segWriter) add(r *eventlog.Record, every bool) error {
	if w.builder.Len() > 0 && (!w.builder.Fits(r) || w.builder.Size() >= w.l.opts.SealBatch) {
		if err := w.endBatch(); err != nil {
			return err
		}
	}
	if w.builder.Len() == 0 {
		w.builder.Reset(r.CSN, true)
		w.point = segmentBatch{base: r.Offset, before: w.idx.maxCSN, maxTime: r.Time / 1000}
	}
	if !w.covers {
		if w.idx.records == 0 {
			w.base = r.Offset
		}
		w.next = r.Offset + 1
	}
	w.builder.Add(r, every)
	w.idx.records++
	w.idx.maxCSN = max(w.idx.maxCSN, r.CSN)
	w.point.maxTime = max(w.point.maxTime, r.Time/1000)
	return nil
}

func (w *segWriter) endBatch() error {
	w.point.pos = w.written + int64(len(w.buf))
	w.idx.batches = append(w.idx.batches, w.point)
	w.buf = w.builder.AppendTo(w.buf, w.codec)
	w.builder.Reset(0, true)
	return w.spill()
}

// spill writes what was collected once that is a chunk.
func (w *segWriter) spill() error {
	if len(w.buf) < segChunk {
		return nil
	}
	return w.write(false)
}

// copyRows writes what stays of a batch; whole tells that it is all of it as it was.
func (w *segWriter) copyRows(b *rawBatch, rows []eventlog.Record, every []bool, whole bool, size int) error {
	if whole && w.takesRaw(b, size) {
		return w.addRaw(b, rows)
	}
	for i := range rows {
		if err := w.add(&rows[i], every[i]); err != nil {
			return err
		}
	}
	return nil
}

// takesRaw reports whether a batch whose records all stay may be copied as it is:
// compressed as the topic wants it now, and not a remnant that would better be
// joined with its neighbours.
func (w *segWriter) takesRaw(b *rawBatch, size int) bool {
	return b.Compression == w.codec && size >= w.l.opts.SealBatch/2
}

// addRaw copies a batch; rows are its records.
func (w *segWriter) addRaw(b *rawBatch, rows []eventlog.Record) error {
	if w.builder.Len() > 0 {
		if err := w.endBatch(); err != nil {
			return err
		}
	}
	w.idx.batches = append(w.idx.batches, segmentBatch{
		base: b.Base, pos: w.written + int64(len(w.buf)), before: w.idx.maxCSN, maxTime: b.MaxTime,
	})
	w.buf = append(w.buf, b.bytes...)
	w.idx.records += int64(len(rows))
	for i := range rows {
		w.idx.maxCSN = max(w.idx.maxCSN, rows[i].CSN)
	}
	return w.spill()
}

// write writes what was collected; last also syncs the file.
func (w *segWriter) write(last bool) error {
	var f vfs.File
	var err error
	if w.made {
		f, err = w.l.fs().OpenWrite(w.tmp)
	} else {
		f, err = w.l.fs().Create(w.tmp)
	}
	if err != nil {
		return err
	}
	w.made = true
	_, err = f.WriteAt(w.buf, w.written)
	if err == nil && last {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	w.written += int64(len(w.buf))
	w.buf = w.buf[:0]
	return err
}

// finish completes and syncs the file, still under its temporary name.
func (w *segWriter) finish() error {
	if w.idx.records == 0 && !w.covers {
		return nil
	}
	if w.builder.Len() > 0 {
		if err := w.endBatch(); err != nil {
			return err
		}
	}
	w.idx.end = w.written + int64(len(w.buf))
	w.buf = w.idx.append(w.buf)
	if err := w.write(true); err != nil {
		return err
	}
	w.seg = &segment{
		key: w.key, base: w.base, next: w.next, gen: w.gen, size: w.written, idx: &w.idx,
		path: w.dir + "/" + segmentName(w.key.partition, w.base, w.next, w.gen),
	}
	w.buf, w.builder = nil, eventlog.BatchBuilder{}
	return nil
}

// abandon removes what an unfinished round left; Open would do it too.
func (w *segWriter) abandon() {
	if w.made {
		if err := w.l.fs().Remove(w.tmp); err != nil && !vfs.IsNotExist(err) {
			w.l.opts.Logger.Warn("remove unfinished segment", "file", w.tmp, "err", err)
		}
	}
}
