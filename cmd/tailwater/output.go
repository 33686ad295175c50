package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// output is stdout; it keeps the first error, so that a result that was not
// written whole is a failure whatever command wrote it.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(b []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(b)
	if err != nil {
		o.err = fmt.Errorf("write the result: %w", err)
		return n, o.err
	}
	return n, nil
}

// printJSON prints a value as one line.
func (p *program) printJSON(v any) error {
	e := json.NewEncoder(p.stdout)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// say prints to stderr, unless --quiet.
func (p *program) say(format string, args ...any) {
	if !p.quiet {
		fmt.Fprintf(p.stderr, format+"\n", args...)
	}
}

// table prints rows in columns; the first row is the head.
func table(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(t, strings.TrimRight(strings.Join(r, "\t"), "\t "))
	}
	return t.Flush()
}

// printable is a text of the data in a terminal: what could steer the terminal
// is shown escaped.
func printable(text string) string {
	for _, r := range text {
		if !unicode.IsPrint(r) {
			q := strconv.Quote(text)
			return q[1 : len(q)-1]
		}
	}
	return text
}

func bytesText(n int64) string {
	if n < 0 {
		return "?"
	}
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}

// countText is a number with thin groups: 1 234 567.
func countText(n int64) string {
	s := strconv.FormatInt(n, 10)
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	if neg {
		s = "-" + s
	}
	return s
}

func secondsText(s float64) string {
	switch {
	case s < 0:
		return "?"
	case s < 10:
		return strconv.FormatFloat(s, 'f', 1, 64) + "s"
	case s < 60:
		return strconv.FormatFloat(s, 'f', 0, 64) + "s"
	}
	return time.Duration(s * float64(time.Second)).Round(time.Second).String()
}

// painter colours words, or not.
type painter bool

// painter colours when stdout is a terminal and nobody said otherwise.
func (p *program) painter() painter {
	if p.noColor {
		return false
	}
	if v, ok := p.env("NO_COLOR"); ok && v != "" {
		return false
	}
	if v, _ := p.env("TERM"); v == "dumb" {
		return false
	}
	return painter(p.terminal())
}

func (p *program) terminal() bool {
	out, ok := p.stdout.(*output)
	if !ok {
		return false
	}
	f, ok := out.w.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

func (c painter) red(text string) string {
	if !c || text == "" {
		return text
	}
	return "\x1b[31m" + text + "\x1b[0m"
}
