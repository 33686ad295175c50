package config

import "fmt"

// Pos is the place of a node in a configuration file. It travels with every
// struct decoded from a file, so that any package can report a problem there.
// The zero Pos is "nowhere" and still makes a usable Problem.
type Pos struct {
	File string // as it was named on the command line, or found below it
	Line int    // from 1; 0 means unknown
	Col  int    // from 1, in characters; 0 means unknown
	Path string // keys from the top, "views.orders.nest.lines.by"

	src *source
}

// String is file:line:col, leaving out what is unknown.
func (p Pos) String() string {
	switch {
	case p.File == "":
		return p.Path
	case p.Line == 0:
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// IsZero tells a Pos that names no place.
func (p Pos) IsZero() bool { return p.File == "" && p.Line == 0 && p.Path == "" }

// Problem makes a Problem at p. The hint, which may be empty, is the way out.
func (p Pos) Problem(message, hint string) Problem {
	return Problem{
		File: p.File, Line: p.Line, Col: p.Col, Path: p.Path,
		Excerpt: p.src.excerpt(p.Line, p.Col),
		Message: message, Hint: hint,
	}
}

// Problemf is Problem with a formatted message and no hint.
func (p Pos) Problemf(format string, args ...any) Problem {
	return p.Problem(fmt.Sprintf(format, args...), "")
}

// in is the place of a key below p for which the file has nothing.
func (p Pos) in(key string) Pos {
	p.Path = joinPath(p.Path, key)
	return p
}
