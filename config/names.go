package config

import (
	"errors"
	"fmt"
	"strings"
)

// pos is the place of a key path if the file has it.
func (c *Config) pos(path string) Pos { return c.At(path) }

// splitName splits a dotted name; a part with dots or blanks stands in double
// quotes, "" inside is one quote.
func splitName(text string) ([]string, error) {
	var parts []string
	for rest := text; ; {
		part, tail, err := cutPart(rest)
		if err != nil {
			return nil, err
		}
		if part == "" {
			return nil, errors.New("a part of the name is empty")
		}
		parts = append(parts, part)
		if tail == "" {
			return parts, nil
		}
		if tail[0] != '.' {
			return nil, errors.New("something follows the closing quote")
		}
		rest = tail[1:]
	}
}

// cutPart takes the first part of a dotted name; tail starts with the dot.
func cutPart(text string) (part, tail string, err error) {
	if !strings.HasPrefix(text, `"`) {
		i := strings.IndexByte(text, '.')
		if i < 0 {
			i = len(text)
		}
		part = text[:i]
		if strings.ContainsAny(part, " \t\r\n\x00\"'`;,()[]{}") {
			return "", "", errors.New(`a part with other characters than letters, digits, _, $ and - needs double quotes`)
		}
		return part, text[i:], nil
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == 0:
			return "", "", errors.New("it holds a NUL")
		case text[i] != '"':
			b.WriteByte(text[i])
		case i+1 < len(text) && text[i+1] == '"':
			b.WriteByte('"')
			i++
		default:
			return b.String(), text[i+1:], nil
		}
	}
	return "", "", errors.New("a double quote is not closed")
}

// checkName reports a name of ours that could not be one of a topic, an index
// or a path of the HTTP API.
func (d *decoder) checkName(what, name string, pos Pos) {
	hint := "use a letter, then letters, digits, _ and -, at most 48 in all"
	lower := what == "source"
	if lower {
		hint = "use a lower-case letter, then lower-case letters, digits, _ and -, at most 48 in all"
	}
	legal := name != "" && len(name) <= 48
	for i, c := range name {
		small := c >= 'a' && c <= 'z'
		large := c >= 'A' && c <= 'Z' && !lower
		other := i > 0 && (c >= '0' && c <= '9' || c == '_' || c == '-')
		legal = legal && (small || large || other)
	}
	if !legal {
		d.problem(pos, fmt.Sprintf("%s cannot be the name of a %s", quote(name), what), hint)
		return
	}
	if what == "source" && name == "view" {
		d.problem(pos, `a source cannot be named "view": its topics would be those of views`, "rename it")
	}
}

// tableRef reads the name of a table. Without a source it is def's, without a
// schema it is def's, or that of the source.
func (d *decoder) tableRef(n *node, def TableRef, cfg *Config) TableRef {
	text, ok := d.value(n)
	if !ok {
		return TableRef{Pos: n.pos}
	}
	ref := TableRef{Text: text, Pos: n.pos}
	parts, err := splitName(text)
	if err != nil {
		d.problem(n.pos, fmt.Sprintf("%s names no table: %s", quote(text), err), "write source.schema.table, schema.table or table")
		return ref
	}
	switch len(parts) {
	case 1:
		ref.Source, ref.Schema, ref.Table = def.Source, def.Schema, parts[0]
	case 2:
		ref.Source, ref.Schema, ref.Table = def.Source, parts[0], parts[1]
		if def.Source == "" || def.Schema == "" {
			if s := cfg.Source(parts[0]); s != nil {
				ref.Source, ref.Schema = s.Name, s.DefaultSchema()
			}
		}
	case 3:
		ref.Source, ref.Schema, ref.Table = parts[0], parts[1], parts[2]
	default:
		d.problem(n.pos, fmt.Sprintf("%s has too many parts", quote(text)), "write source.schema.table; a part with a dot in it needs double quotes")
		return ref
	}
	d.checkTable(&ref, cfg)
	return ref
}

// checkTable fills in what the reference left out and checks that the table is
// captured.
func (d *decoder) checkTable(ref *TableRef, cfg *Config) {
	if ref.Source == "" {
		if len(cfg.Sources) != 1 {
			d.problem(ref.Pos, fmt.Sprintf("%s names no source", quote(ref.Text)), "write source.schema.table; "+sourceNames(cfg))
			return
		}
		ref.Source = cfg.Sources[0].Name
	}
	s := cfg.Source(ref.Source)
	if s == nil {
		if d.sourceFailed(ref.Source) {
			return
		}
		hint := sourceNames(cfg)
		if near := suggest(ref.Source, names(cfg.Sources, (*Source).name)); near != "" {
			hint = "did you mean " + quote(near) + "?"
		}
		d.problem(ref.Pos, fmt.Sprintf("there is no source %s", quote(ref.Source)), hint)
		return
	}
	if ref.Schema == "" {
		ref.Schema = s.DefaultSchema()
	}
	if len(s.Tables) > 0 && !s.Captures(ref.Schema, ref.Table) {
		d.problem(ref.Pos, fmt.Sprintf("source %s does not capture the table %s.%s", s.Name, ref.Schema, ref.Table), fmt.Sprintf("add it to the tables at %s", d.placeOf(s)))
	}
}

func (d *decoder) placeOf(s *Source) string {
	if p, ok := d.places[joinPath(joinPath(joinPath("sources", s.Name), string(s.Kind)), "tables")]; ok {
		return p.String()
	}
	return s.Pos.String()
}

// sourceFailed tells a source that is in the file and was reported already.
func (d *decoder) sourceFailed(name string) bool {
	_, ok := d.places[joinPath("sources", name)]
	return ok
}

func sourceNames(cfg *Config) string {
	if len(cfg.Sources) == 0 {
		return "there are no sources"
	}
	return "the sources are: " + strings.Join(names(cfg.Sources, (*Source).name), ", ")
}

func names[T any](list []*T, of func(*T) string) []string {
	var out []string
	for _, x := range list {
		out = append(out, of(x))
	}
	return out
}
