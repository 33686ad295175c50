package main

import (
	"bufio"
	"io"
)

// lineWriter buffers lines for a long output.
type lineWriter struct{ w *bufio.Writer }

func newLineWriter(w io.Writer) *lineWriter { return &lineWriter{bufio.NewWriterSize(w, 64<<10)} }

func (l *lineWriter) write(line []byte) error {
	_, err := l.w.Write(line)
	return err
}

func (l *lineWriter) flush() error { return l.w.Flush() }
