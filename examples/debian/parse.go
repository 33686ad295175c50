package debian

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Package is one entry of the index.
type Package struct {
	Name, Version, Architecture, Section, Priority string
	MaintainerName, MaintainerEmail                string
	Homepage, Summary                              string
	InstalledSize, Size                            int64 // KiB and bytes; 0 unknown
	Tags                                           []string
	Depends                                        []Dependency
}

// Dependency is one alternative of one dependency.
type Dependency struct {
	Kind        string // depends, pre-depends
	Seq         int    // place in the field, from 1
	Alternative int    // place among the alternatives, from 1
	Target      string
	Version     string // "(>= 2.34)" without the parentheses; may be empty
}

// Parse calls fn for each entry of an index; of several entries of one name
// only the first counts.
func Parse(r io.Reader, fn func(p *Package) error) error {
	seen := map[string]bool{}
	fields := map[string]string{}
	last := ""
	end := func() error {
		defer clear(fields)
		name := fields["Package"]
		if name == "" || seen[name] {
			return nil
		}
		seen[name] = true
		return fn(entry(fields))
	}
	s := bufio.NewScanner(r)
	s.Buffer(nil, 16<<20)
	for n := 1; s.Scan(); n++ {
		line := s.Text()
		switch {
		case line == "":
			if err := end(); err != nil {
				return err
			}
		case line[0] == ' ' || line[0] == '\t':
			fields[last] += "\n" + strings.TrimSpace(line)
		default:
			name, value, ok := strings.Cut(line, ":")
			if !ok {
				return fmt.Errorf("line %d is no field of a package index", n)
			}
			last = name
			fields[name] = strings.TrimSpace(value)
		}
	}
	if err := s.Err(); err != nil {
		return err
	}
	return end()
}

func entry(f map[string]string) *Package {
	p := &Package{Name: f["Package"], Version: f["Version"], Architecture: f["Architecture"], Section: f["Section"], Priority: f["Priority"], Homepage: f["Homepage"]}
	p.Summary, _, _ = strings.Cut(f["Description"], "\n")
	p.MaintainerName, p.MaintainerEmail = maintainer(f["Maintainer"])
	p.InstalledSize, _ = strconv.ParseInt(f["Installed-Size"], 10, 64)
	p.Size, _ = strconv.ParseInt(f["Size"], 10, 64)
	seen := map[string]bool{}
	for _, t := range strings.Split(strings.ReplaceAll(f["Tag"], "\n", " "), ",") {
		if t = strings.TrimSpace(t); t != "" && !seen[t] {
			seen[t] = true
			p.Tags = append(p.Tags, t)
		}
	}
	p.Depends = append(dependencies("pre-depends", f["Pre-Depends"]), dependencies("depends", f["Depends"])...)
	return p
}

// maintainer splits "Name <address>".
func maintainer(s string) (name, email string) {
	name, rest, ok := strings.Cut(s, "<")
	if !ok {
		return s, s
	}
	return strings.TrimSpace(name), strings.TrimSuffix(strings.TrimSpace(rest), ">")
}

// dependencies reads "a (>= 1) | b, c".
func dependencies(kind, field string) []Dependency {
	var list []Dependency
	for i, group := range strings.Split(strings.ReplaceAll(field, "\n", " "), ",") {
		for j, alt := range strings.Split(group, "|") {
			name, version, _ := strings.Cut(strings.TrimSpace(alt), "(")
			name, _, _ = strings.Cut(strings.TrimSpace(name), ":")
			if name == "" {
				continue
			}
			version, _, _ = strings.Cut(version, ")")
			list = append(list, Dependency{Kind: kind, Seq: i + 1, Alternative: j + 1, Target: name, Version: strings.TrimSpace(version)})
		}
	}
	return list
}
