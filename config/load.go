package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Load reads a file, or every *.yaml and *.yml of a directory as if they were
// one, and checks it. env looks a variable up; os.LookupEnv serves. The error
// is Problems when the content is wrong; any other means that it could not be read.
func Load(path string, env func(string) (string, bool)) (*Config, error) {
	d := &decoder{env: env, file: path}
	root, err := d.read(path)
	if err != nil {
		return nil, err
	}
	return d.finish(root)
}

// Locate reads only what leads to a running daemon: DataDir and Server. It
// passes over everything that is wrong elsewhere, variables that are not set
// included, so that asking a daemon for its status needs no passwords. Of Server
// it leaves out what is wrong: the daemon's socket asks for no token.
func Locate(path string, env func(string) (string, bool)) (*Config, error) {
	return partly(path, env, (*decoder).located)
}

// LoadStopped reads what is needed of a data directory that no daemon has open:
// DataDir, Log, and of each source its name and kind. Like Locate it passes over
// everything that is wrong elsewhere, so that no secret needs to be at hand.
func LoadStopped(path string, env func(string) (string, bool)) (*Config, error) {
	return partly(path, env, (*decoder).stopped)
}

func partly(path string, env func(string) (string, bool), decode func(*decoder, *node) *Config) (*Config, error) {
	d := &decoder{env: env, file: path}
	root, err := d.read(path)
	if err != nil {
		return nil, err
	}
	if err := d.problems.sorted().Err(); err != nil {
		return nil, err
	}
	cfg := decode(d, root)
	return cfg, d.problems.sorted().Err()
}

func (d *decoder) read(path string) (*node, error) {
	files, err := listFiles(path)
	if err != nil {
		return nil, err
	}
	var root *node
	for _, f := range files {
		text, err := readBounded(f, maxFile)
		if err != nil {
			return nil, fmt.Errorf("read configuration %s: %s", f, plainCause(err))
		}
		dir, err := filepath.Abs(filepath.Dir(f))
		if err != nil {
			return nil, fmt.Errorf("read configuration %s: %w", f, err)
		}
		if n := d.parse(f, dir, text); n != nil {
			root = d.merge(root, n)
		}
	}
	return root, nil
}

// Parse is Load for a text that is not in a file. The name stands in problems;
// relative paths start at dir.
func Parse(name, dir, text string, env func(string) (string, bool)) (*Config, error) {
	d := &decoder{env: env, file: name}
	root := d.parse(name, dir, text)
	return d.finish(root)
}

func (d *decoder) parse(name, dir, text string) *node {
	text = strings.TrimPrefix(text, "\ufeff")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	d.baseDir = firstOf(d.baseDir, dir)
	n := parseTree(newSource(name, dir, text), text, &d.problems)
	if n != nil && n.kind != mapNode {
		if n.kind != nullNode {
			d.problem(n.pos, "the file must be a map of sections, this is "+n.word(), "start with sources:, views: and sinks:")
		}
		return nil
	}
	return n
}

func (d *decoder) finish(root *node) (*Config, error) {
	if root == nil {
		if len(d.problems) == 0 {
			d.problem(Pos{File: d.file}, "the configuration is empty", "start with sources:, views: and sinks:, or try: tailwater demo")
		}
		return nil, d.problems.sorted()
	}
	cfg := d.config(root)
	if err := d.problems.sorted().Err(); err != nil {
		return nil, err
	}
	cfg.Warnings = d.warnings.sorted()
	return cfg, nil
}

// listFiles is the file itself, or a directory's YAML files by name.
func listFiles(path string) ([]string, error) {
	st, err := os.Stat(path)
	if err != nil {
		if os.IsNotExist(err) {
			return nil, fmt.Errorf("configuration %s does not exist; name it with -c FILE or -c DIR", path)
		}
		return nil, fmt.Errorf("read configuration %s: %s", path, plainCause(err))
	}
	if st.Mode().IsRegular() {
		return []string{path}, nil
	}
	if !st.IsDir() {
		return nil, fmt.Errorf("configuration %s is neither a file nor a directory", path)
	}
	var files []string
	for _, pattern := range []string{"*.yaml", "*.yml"} {
		found, err := filepath.Glob(filepath.Join(globEscape(path), pattern))
		if err != nil {
			return nil, fmt.Errorf("list configuration %s: %w", path, err)
		}
		files = append(files, found...)
	}
	files = slices.DeleteFunc(files, func(f string) bool {
		st, err := os.Stat(f)
		return strings.HasPrefix(filepath.Base(f), ".") || err == nil && !st.Mode().IsRegular()
	})
	if len(files) == 0 {
		return nil, fmt.Errorf("configuration directory %s has no *.yaml file", path)
	}
	slices.Sort(files)
	return files, nil
}

func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// mergeable are the maps whose keys may be spread over several files.
var mergeable = []string{"", "sources", "views", "sinks", "log", "log.topics", "server"}

// merge adds the keys of b to a. A key that both have is a problem that names
// both places.
func (d *decoder) merge(a, b *node) *node {
	if a == nil {
		return b
	}
	for _, e := range b.entries {
		old := a.entry(e.key)
		switch {
		case old == nil:
			a.entries = append(a.entries, e)
		case old.value.kind == nullNode:
			old.value = e.value
		case e.value.kind == nullNode:
		case old.value.kind == mapNode && e.value.kind == mapNode && slices.Contains(mergeable, e.pos.Path):
			d.merge(old.value, e.value)
		default:
			d.problem(e.pos, fmt.Sprintf("%s is in two files", e.pos.Path), fmt.Sprintf("the first one is at %s; keep one", old.pos))
		}
	}
	return a
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
