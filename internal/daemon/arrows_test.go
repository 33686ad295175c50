package daemon

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/tailwater/tailwater/"

// arrows says what each folder may import of ours; a folder below counts as its
// longest prefix here. Test files may also import internal/testkit, eventlog/logtest and vfs.
var arrows = map[string][]string{
	"change":               {},
	"config":               {"internal/spell", "internal/keytemplate"},
	"eventlog":             {},
	"eventlog/seglog":      {"eventlog", "internal/vfs"},
	"eventlog/logtest":     {"eventlog"},
	"eventlog/kafkalog":    {"eventlog"},
	"snapshot":             {"change"},
	"connectors":           {"change", "eventlog"},
	"connectors/postgres":  {"connectors", "snapshot", "change", "internal/retry", "internal/spell"},
	"connectors/mysql":     {"connectors", "snapshot", "change", "internal/retry"},
	"derive":               {"change", "eventlog", "derive/image", "internal/retry"},
	"derive/image":         {"change", "eventlog"},
	"derive/expr":          {"change", "internal/sqldriver", "internal/spell"},
	"derive/join":          {"change", "derive", "derive/image", "derive/expr", "internal/spell"},
	"derive/sink":          {"change", "eventlog", "internal/retry"},
	"derive/sink/elastic":  {"derive/sink", "change", "internal/retry"},
	"derive/sink/cache":    {"derive/sink", "change", "internal/retry", "internal/keytemplate"},
	"derive/sink/local":    {"derive/sink", "change"},
	"derive/verify":        {"change", "internal/jsoncmp"},
	"server":               {"change", "eventlog", "derive"},
	"internal/vfs":         {},
	"internal/retry":       {},
	"internal/sqldriver":   {},
	"internal/jsoncmp":     {},
	"internal/spell":       {},
	"internal/keytemplate": {},
}

// free folders may import anything that is not cmd: they put the others together, or are for tests only.
var free = []string{"internal/daemon", "internal/testkit", "internal/lab", "internal/demo", "cmd", "bench", "examples"}

func TestImportArrows(t *testing.T) {
	root := "../.."
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (strings.HasPrefix(e.Name(), ".") && path != root || e.Name() == "testdata") {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".go") {
			checkImports(t, root, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkImports(t *testing.T, root, path string) {
	rel, _ := filepath.Rel(root, path)
	folder := filepath.ToSlash(filepath.Dir(rel))
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	checkTemplates(t, rel, f)
	for _, f := range free {
		if folder == f || strings.HasPrefix(folder, f+"/") {
			return
		}
	}
	allowed, ok := allowedFor(folder)
	if !ok {
		t.Errorf("%s: folder %s has no arrows in this test", rel, folder)
		return
	}
	if strings.HasSuffix(path, "_test.go") {
		allowed = append(append([]string{}, allowed...), "internal/testkit", "internal/vfs", "eventlog/logtest", "internal/jsoncmp", "eventlog", "eventlog/seglog")
	}
	for _, imp := range f.Imports {
		name, _ := strconv.Unquote(imp.Path.Value)
		ours, ok := strings.CutPrefix(name, module)
		if !ok || ours == folder {
			continue
		}
		if !permits(allowed, ours, folder) {
			t.Errorf("%s imports %s: no arrow leads from %s there", rel, ours, folder)
		}
	}
}

// checkTemplates keeps templates out: they look methods up by name, so that the
// linker keeps every exported method of the whole program, 15 MiB of them.
func checkTemplates(t *testing.T, rel string, f *ast.File) {
	for _, imp := range f.Imports {
		if name, _ := strconv.Unquote(imp.Path.Value); strings.HasSuffix(name, "/template") && !strings.HasSuffix(rel, "_test.go") {
			t.Errorf("%s imports %s, which makes the binary much larger", rel, name)
		}
	}
}

func allowedFor(folder string) ([]string, bool) {
	for f := folder; f != "." && f != ""; f = filepath.ToSlash(filepath.Dir(f)) {
		if a, ok := arrows[f]; ok {
			return a, true
		}
	}
	return nil, false
}

// permits reports whether ours is in allowed, or the folder's own parent.
func permits(allowed []string, ours, folder string) bool {
	return slices.Contains(allowed, ours) || strings.HasPrefix(folder, ours+"/") && ours != "derive" && ours != "internal"
}

// TestDocGo asks for a doc.go in each package and for files of at most 600 lines (tests 1,000).
func TestDocGo(t *testing.T) {
	root := "../.."
	packages := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (strings.HasPrefix(e.Name(), ".") && path != root || e.Name() == "testdata") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		dir := filepath.Dir(path)
		packages[dir] = packages[dir] || e.Name() == "doc.go"
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		most := 600
		if strings.HasSuffix(path, "_test.go") {
			most = 1000
		}
		if n := strings.Count(string(b), "\n"); n > most && !strings.HasSuffix(path, "_gen.go") {
			t.Errorf("%s has %d lines, more than %d: there is a second idea in it", path, n, most)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, has := range packages {
		if !has {
			t.Errorf("%s has no doc.go", dir)
		}
	}
}
