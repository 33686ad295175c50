package debian

import (
	"context"
	_ "embed"
	"fmt"
	"hash/fnv"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed schema.sql
var schemaSQL string

// ViewSQL yields for each document of the view its id and the document, as text.
//
//go:embed view.sql
var ViewSQL string

// MutateSQL changes the tables in every way that a view has to follow.
//
//go:embed mutate.sql
var MutateSQL string

// Config is the example's configuration.
//
//go:embed tailwater.yaml
var Config string

// hot are packages that many others depend on; a part of the index has them too.
var hot = map[string]bool{"libc6": true, "zlib1g": true, "libgcc-s1": true, "libstdc++6": true, "python3": true, "perl": true}

// taken tells whether a part of the index, so many of a thousand packages, has this one.
func taken(name string, perMille uint32) bool {
	h := fnv.New32a()
	h.Write([]byte(name))
	return h.Sum32()%1000 < perMille || hot[name]
}

// Load makes the tables and fills them from an index, in one transaction: with
// all packages, or with so many of a thousand. It returns their number.
func Load(ctx context.Context, dsn string, index io.Reader, perMille uint32) (int, error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	t, err := read(index, perMille)
	if err != nil {
		return 0, fmt.Errorf("read the package index: %w", err)
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) // no effect after the commit
	if _, err := tx.Exec(ctx, schemaSQL); err != nil {
		return 0, fmt.Errorf("make the tables: %w", err)
	}
	for _, c := range []struct {
		table, columns string
		rows           [][]any
	}{
		{"maintainers", "email name", t.maintainers},
		{"sections", "name area", t.sections},
		{"packages", "name version architecture priority section maintainer homepage summary installed_size size", t.packages},
		{"tags", "name facet", t.tags},
		{"package_tags", "package tag", t.packageTags},
		{"dependencies", "package kind seq alternative target version", t.dependencies},
	} {
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{c.table}, strings.Fields(c.columns), pgx.CopyFromRows(c.rows)); err != nil {
			return 0, fmt.Errorf("fill %s: %w", c.table, err)
		}
	}
	if err := tx.Commit(ctx); err != nil {
		return 0, err
	}
	_, err = conn.Exec(ctx, "ANALYZE")
	return len(t.packages), err
}

// tables are the rows to load.
type tables struct {
	maintainers, sections, packages, tags, packageTags, dependencies [][]any
}

func read(index io.Reader, perMille uint32) (*tables, error) {
	t := &tables{}
	known := map[string]bool{}
	once := func(kind, name string) bool {
		k := kind + "\n" + name
		was := known[k]
		known[k] = true
		return !was
	}
	err := Parse(index, func(p *Package) error {
		if !taken(p.Name, perMille) {
			return nil
		}
		if once("maintainer", p.MaintainerEmail) {
			t.maintainers = append(t.maintainers, []any{p.MaintainerEmail, p.MaintainerName})
		}
		if p.Section != "" && once("section", p.Section) {
			area, _, ok := strings.Cut(p.Section, "/")
			if !ok {
				area = "main"
			}
			t.sections = append(t.sections, []any{p.Section, area})
		}
		t.packages = append(t.packages, []any{p.Name, p.Version, p.Architecture, p.Priority, orNull(p.Section), p.MaintainerEmail, orNull(p.Homepage), p.Summary, sizeOrNull(p.InstalledSize), sizeOrNull(p.Size)})
		for _, tag := range p.Tags {
			if once("tag", tag) {
				facet, _, _ := strings.Cut(tag, "::")
				t.tags = append(t.tags, []any{tag, facet})
			}
			t.packageTags = append(t.packageTags, []any{p.Name, tag})
		}
		for _, d := range p.Depends {
			t.dependencies = append(t.dependencies, []any{p.Name, d.Kind, d.Seq, d.Alternative, d.Target, orNull(d.Version)})
		}
		return nil
	})
	return t, err
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func sizeOrNull(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

// Mutate runs MutateSQL, statement by statement.
func Mutate(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, sql := range statements(MutateSQL) {
		if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(strings.Fields(sql), " "), err)
		}
	}
	return nil
}

// statements splits at semicolons at a line's end; no text in the file has one there.
func statements(text string) []string {
	var list []string
	for _, s := range strings.SplitAfter(text, ";\n") {
		if s = strings.TrimSpace(s); s != "" {
			list = append(list, s)
		}
	}
	return list
}
