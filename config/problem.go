package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrInvalid matches every error that Load returns for the content of a file.
var ErrInvalid = errors.New("config: invalid")

// Problem is one thing that is wrong in a configuration, with its place.
type Problem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Col     int    `json:"col,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Excerpt string `json:"excerpt,omitempty"` // lines of the file with a mark, secrets masked
}

// Error is the problem in one line.
func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.head())
	if p.Hint != "" {
		b.WriteString("; ")
		b.WriteString(p.Hint)
	}
	return b.String()
}

// Is lets errors.Is(err, ErrInvalid) match.
func (p Problem) Is(target error) bool { return target == ErrInvalid }

// Text is the problem in several lines: place and message, excerpt, hint.
func (p Problem) Text() string {
	var b strings.Builder
	b.WriteString(p.head())
	b.WriteByte('\n')
	b.WriteString(p.Excerpt)
	if p.Hint != "" {
		fmt.Fprintf(&b, "       = %s\n", strings.ReplaceAll(p.Hint, "\n", "\n         "))
	}
	return b.String()
}

func (p Problem) head() string {
	var b strings.Builder
	switch {
	case p.File != "" && p.Line > 0:
		fmt.Fprintf(&b, "%s:%d:%d: ", p.File, p.Line, p.Col)
	case p.File != "":
		fmt.Fprintf(&b, "%s: ", p.File)
	}
	if p.Path != "" {
		fmt.Fprintf(&b, "%s: ", p.Path)
	}
	b.WriteString(p.Message)
	return b.String()
}

// Problems is a list of problems that is an error as a whole.
type Problems []Problem

// Error is every problem in several lines each, and their number at the end.
func (ps Problems) Error() string {
	var b strings.Builder
	for _, p := range ps {
		b.WriteString(p.Text())
	}
	switch len(ps) {
	case 0:
		return "no problems"
	case 1:
		b.WriteString("1 problem in the configuration")
	default:
		fmt.Fprintf(&b, "%d problems in the configuration", len(ps))
	}
	return b.String()
}

// Is lets errors.Is(err, ErrInvalid) match.
func (ps Problems) Is(target error) bool { return target == ErrInvalid }

// Err is nil for an empty list, so that it can be returned as an error.
func (ps Problems) Err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

// sorted is the list in the order of the files, without repetitions.
func (ps Problems) sorted() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return slices.Compact(ps)
}
