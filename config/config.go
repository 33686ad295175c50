package config

import "path/filepath"

// Config is a whole configuration. It is made by Load and not changed after.
type Config struct {
	File    string // file or directory that was loaded, as it was named
	DataDir string // absolute; log, state and local index live below it. Default "tailwater-data" beside the file

	Sources []*Source // in the order of the file
	Log     Log
	Views   []*View
	Sinks   []*Sink
	Server  Server

	// InsecurePlaintext at the top is the default of every source, sink and the
	// server: connections outside loopback need no TLS. Default false.
	InsecurePlaintext bool

	// Warnings are what was found worth saying without being wrong.
	Warnings Problems

	places map[string]Pos
	root   *node
}

// Source is the source of that name, or nil.
func (c *Config) Source(name string) *Source { return find(c.Sources, name, (*Source).name) }

// View is the view of that name, or nil.
func (c *Config) View(name string) *View { return find(c.Views, name, (*View).name) }

// Sink is the sink of that name, or nil.
func (c *Config) Sink(name string) *Sink { return find(c.Sinks, name, (*Sink).name) }

// At is the place of a key path such as "views.orders.from", or of the nearest
// key above it that the file has.
func (c *Config) At(path string) Pos {
	for p := path; ; p = parentPath(p) {
		if pos, ok := c.places[p]; ok {
			pos.Path = path
			return pos
		}
		if p == "" {
			return Pos{File: c.File, Path: path}
		}
	}
}

// SocketPath is the daemon's unix socket.
func (c *Config) SocketPath() string { return filepath.Join(c.DataDir, "tailwater.sock") }

func (s *Source) name() string { return s.Name }
func (v *View) name() string   { return v.Name }
func (s *Sink) name() string   { return s.Name }

func find[T any](list []*T, name string, of func(*T) string) *T {
	for _, x := range list {
		if of(x) == name {
			return x
		}
	}
	return nil
}
