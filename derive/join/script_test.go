package join_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/join"
)

var update = flag.Bool("update", false, "rewrite the expected output of the scripts")

// TestScripts runs testdata/*.txt. A line is a command:
//
//	table NAME COLUMN:KIND[*] …   a table; * marks the key columns
//	view JSON                     the definition, tables without their prefix
//	snapshot                      marks that every table was read whole
//	tx CHANGE; CHANGE; …          one transaction, then what it outputs
//	begin TABLE RUN, done TABLE RUN   marks of a floor run
//	restart                       closes and opens the views
//
// A change is insert, update, read TABLE VALUE…; delete TABLE KEY…; truncate
// TABLE; move TABLE KEY VALUE…. null is null, ~ is unchanged. Lines behind a
// command that start with > are its output: a document or -, a tombstone.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runScript(t, file) })
	}
}

type script struct {
	*world
	def join.Definition
}

func runScript(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &script{world: newWorld(t)}
	var out strings.Builder
	for i, line := range strings.Split(strings.TrimRight(string(text), "\n"), "\n") {
		if strings.HasPrefix(line, ">") {
			continue
		}
		out.WriteString(line + "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := s.command(line); err != nil {
			t.Fatalf("%s:%d: %v", file, i+1, err)
		}
		s.output(&out)
	}
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if out.String() != string(text) {
		t.Errorf("%s: got\n%s", file, out.String())
	}
}

// output appends what came out since the last command.
func (s *script) output(out *strings.Builder) {
	if s.runner == nil {
		return
	}
	s.catchUp()
	for _, o := range s.sink(s.def.Name).seen {
		id, err := change.DocumentID(change.Key(o.key))
		if err != nil {
			s.t.Fatal(err)
		}
		if o.doc == "" {
			o.doc = "-"
		}
		fmt.Fprintf(out, "> %s %s\n", id, o.doc)
	}
}

func (s *script) command(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	words := strings.Fields(rest)
	switch word {
	case "table":
		return s.makeTable(words[0], words[1:])
	case "view":
		if err := json.Unmarshal([]byte(strings.ReplaceAll(rest, `"@`, `"db.public.`)), &s.def); err != nil {
			return err
		}
		s.describe()
		s.start(s.def)
	case "snapshot":
		s.snapshotDone()
	case "restart":
		s.stop()
		s.start(s.def)
	case "begin", "done":
		run, err := strconv.ParseUint(words[1], 10, 64)
		if err != nil {
			return err
		}
		tx := s.begin()
		tx.mark(s.tables[words[0]], run, map[string]change.SnapshotState{"begin": change.SnapshotBegun, "done": change.SnapshotDone}[word])
		tx.commit()
	case "tx":
		tx := s.begin()
		for _, c := range strings.Split(rest, ";") {
			if err := s.change(tx, strings.Fields(c)); err != nil {
				return err
			}
		}
		tx.commit()
	default:
		return fmt.Errorf("unknown command %q", word)
	}
	return nil
}

var scriptKinds = map[string]change.Kind{"int": change.KindInt, "text": change.KindText, "decimal": change.KindDecimal, "citext": change.KindText, "bool": change.KindBool}

func (s *script) makeTable(name string, columns []string) error {
	var cols []change.Column
	keys := 0
	for i, c := range columns {
		n, kind, _ := strings.Cut(c, ":")
		if strings.HasSuffix(kind, "*") {
			keys++
			kind = strings.TrimSuffix(kind, "*")
		}
		k, ok := scriptKinds[kind]
		if !ok {
			return fmt.Errorf("kind %q", kind)
		}
		column := col(uint32(i+1), n, k)
		column.Fold = kind == "citext"
		cols = append(cols, column)
	}
	s.table(name, keys, cols...)
	return nil
}

func (s *script) change(tx *txn, words []string) error {
	tb := s.tables[words[1]]
	if tb == nil {
		return fmt.Errorf("no table %q", words[1])
	}
	values := func(words []string, columns []change.Column) []any {
		out := make([]any, len(words))
		for i, w := range words {
			switch {
			case w == "null":
			case w == "~":
				out[i] = change.UnchangedValue
			case columns[i].Kind == change.KindInt:
				n, err := strconv.Atoi(w)
				if err != nil {
					s.t.Fatal(err)
				}
				out[i] = n
			case columns[i].Kind == change.KindDecimal:
				out[i] = change.Decimal([]byte(w))
			case columns[i].Kind == change.KindBool:
				out[i] = w == "true"
			default:
				out[i] = w
			}
		}
		return out
	}
	keys := len(tb.schema.Key)
	switch words[0] {
	case "insert", "update", "read":
		op := map[string]change.Op{"insert": change.OpInsert, "update": change.OpUpdate, "read": change.OpRead}[words[0]]
		tx.put(tb, op, 0, values(words[2:], tb.schema.Columns)...)
	case "delete":
		tx.delete(tb, values(words[2:], tb.schema.Columns)...)
	case "move":
		tx.move(tb, keyOf(tb, values(words[2:2+keys], tb.schema.Columns)), values(words[2+keys:], tb.schema.Columns)...)
	case "truncate":
		tx.truncate(tb)
	default:
		return fmt.Errorf("unknown change %q", words[0])
	}
	return nil
}
