package local

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/sink"
)

var (
	ourLog   = [16]byte{1}
	testView = sink.View{Name: "product search", Fingerprint: "f1", Fields: []sink.Field{
		{Name: "id", Kind: change.KindInt}, {Name: "name", Kind: change.KindText}, {Name: "price", Kind: change.KindDecimal},
		{Name: "updated_at", Kind: change.KindTimestampTZ}, {Name: "active", Kind: change.KindBool},
		{Name: "attrs", Kind: change.KindJSON}, {Name: "code", Kind: change.KindUUID},
		{Name: "brand", Fields: []sink.Field{{Name: "name", Kind: change.KindText}}},
		{Name: "reviews", List: true, Fields: []sink.Field{{Name: "title", Kind: change.KindText}, {Name: "rating", Kind: change.KindInt}}},
	}}
)

func testStamp(csn uint64) sink.Stamp {
	return sink.Stamp{Log: ourLog, CSN: csn, Fingerprint: "f1", Complete: true, Time: int64(csn)}
}

func up(id, doc string, version uint64) sink.Update {
	u := sink.Update{ID: id, Version: version}
	if doc != "" {
		u.Doc = []byte(doc)
	}
	return u
}

func open(t *testing.T, dir string) (*Sink, sink.Target) {
	t.Helper()
	s := New(Options{Dir: dir})
	target, err := s.Open(context.Background(), testView, ourLog)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { target.Close() })
	return s, target
}

func all(string) (bool, error) { return true, nil }

// build fills a target with documents.
func build(t *testing.T, target sink.Target, updates ...sink.Update) {
	t.Helper()
	ctx := context.Background()
	if err := target.Begin(ctx, testStamp(0)); err != nil {
		t.Fatal(err)
	}
	write(t, target, 1, updates...)
	if err := target.Finish(ctx, testStamp(1), all); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, target sink.Target, csn uint64, updates ...sink.Update) []sink.Result {
	t.Helper()
	results, err := target.Write(context.Background(), updates, testStamp(csn))
	if err != nil {
		t.Fatalf("Write: %v", err)
	}
	return results
}

func contents(t *testing.T, target sink.Target) map[string]string {
	t.Helper()
	docs := map[string]string{}
	err := target.Scan(context.Background(), func(id string, doc []byte) error {
		docs[id] = string(doc)
		return nil
	})
	if err != nil {
		t.Fatalf("Scan: %v", err)
	}
	return docs
}

func TestDocumentsComeBackByteForByte(t *testing.T) {
	s, target := open(t, t.TempDir())
	long := strings.Repeat("9", 131072)
	docs := map[string]string{
		"1":   `{"id":9223372036854775809,"price":1.10,"name":"a\u0000 <b>é"}`,
		"2|x": `{"price":` + long + `,"updated_at":"infinity","active":null}`,
		"3":   `{ "spaced" : [ 1.00 ] }`,
		`\e`:  `{}`,
	}
	var ups []sink.Update
	for id, d := range docs {
		ups = append(ups, up(id, d, 1))
	}
	build(t, target, ups...)
	got := contents(t, target)
	for id, want := range docs {
		one, err := s.Get(testView.Name, id)
		if err != nil || got[id] != want || string(one) != want {
			t.Errorf("%s: Scan %.60q, Get %.60q, %v; want %.60q", id, got[id], one, err, want)
		}
	}
	if len(got) != len(docs) {
		t.Errorf("%d documents; want %d", len(got), len(docs))
	}
	if one, err := s.Get(testView.Name, "none"); one != nil || err != nil {
		t.Errorf("Get of no document = %q, %v", one, err)
	}
}

func TestSearch(t *testing.T) {
	_, target := open(t, t.TempDir())
	build(t, target,
		up("1", `{"id":1,"name":"Blue Running Shoe","price":10.50,"updated_at":"2026-01-02T03:04:05.678901Z","active":true,"brand":{"name":"Acme"},"reviews":[{"title":"very comfortable","rating":5}]}`, 1),
		up("2", `{"id":2,"name":"Red Running Shirt","price":20,"active":false,"attrs":{"fabric":["cotton"]},"brand":{"name":"Shoe King"}}`, 1),
		up("3", `{"id":3,"name":"The Who, live","price":30.25,"code":"aaaaaaaa-0000-0000-0000-000000000001"}`, 1),
		up("4", `{"id":4,"name":"Straße nach Überall","price":"NaN"}`, 1),
	)
	searcher := target.(sink.Searcher)
	for _, tt := range []struct {
		query string
		want  []string
	}{
		{"", []string{"1", "2", "3", "4"}},
		{"running", []string{"1", "2"}},
		{"RUNNING sh", []string{"1", "2"}},
		{"running sho", []string{"1", "2"}},   // shoe in the brand counts too
		{"shoe", []string{"1", "2"}},          // the document's own name counts more than its brand's
		{"comfortable", []string{"1"}},        // a nested list
		{"cotton", []string{"2"}},             // inside JSON
		{"the who", []string{"3"}},            // no stop words
		{"überall", []string{"4"}},            //
		{"acme shirt", nil},                   // all words
		{"name:shoe", []string{"1"}},          // operators
		{`"running shoe"`, []string{"1"}},     //
		{"+running -blue", []string{"2"}},     //
		{"price:>15", []string{"2", "3"}},     //
		{"reviews.rating:>=5", []string{"1"}}, //
		{"active:true", []string{"1"}},
		{`updated_at:>"2026-01-01T00:00:00Z"`, []string{"1"}},
		{`"unfinished run`, nil},
		{"name:", nil},
		{"xyzzy", nil},
	} {
		hits, total, err := searcher.Search(context.Background(), tt.query, 10, 0)
		var ids []string
		for _, h := range hits {
			ids = append(ids, h.ID)
		}
		if tt.query != "shoe" {
			slices.Sort(ids)
		}
		if err != nil || !slices.Equal(ids, tt.want) || total != uint64(len(tt.want)) {
			t.Errorf("Search(%q) = %v (%d), %v; want %v", tt.query, ids, total, err, tt.want)
		}
	}
	hits, total, err := searcher.Search(context.Background(), "", 2, 1)
	if err != nil || total != 4 || len(hits) != 2 || hits[0].ID != "2" || !bytes.HasPrefix(hits[0].Doc, []byte(`{"id":2,`)) {
		t.Errorf("a page = %+v, %d, %v", hits, total, err)
	}
	if _, _, err := searcher.Search(context.Background(), "", 20_000, 0); !errors.Is(err, ErrQuery) {
		t.Errorf("a window too large: %v", err)
	}
}

func TestUpdatesDeletesAndStamp(t *testing.T) {
	dir := t.TempDir()
	_, target := open(t, dir)
	if _, ok := target.Stamp(); ok {
		t.Error("an empty folder has a stamp")
	}
	build(t, target, up("1", `{"name":"a"}`, 1), up("2", `{"name":"b"}`, 1))
	write(t, target, 5, up("1", "", 5), up("3", `{"name":"c"}`, 5))
	if err := target.Flush(context.Background(), testStamp(6)); err != nil {
		t.Fatal(err)
	}
	before, _ := target.Stamp()
	if err := target.Close(); err != nil {
		t.Fatal(err)
	}
	_, target = open(t, dir)
	after, ok := target.Stamp()
	if !ok || after != before || after.CSN != 6 || !after.Complete {
		t.Errorf("stamp after reopening %+v; want %+v", after, before)
	}
	r := write(t, target, 6, up("2", `{"name":"old"}`, 4), up("3", `{"name":"c2"}`, 6))
	if r[0].Outcome != sink.Stale || r[1].Outcome != sink.Written {
		t.Errorf("outcomes %+v; a version below the stamp's is stale", r)
	}
	want := fmt.Sprint(map[string]string{"2": `{"name":"b"}`, "3": `{"name":"c2"}`})
	if got := fmt.Sprint(contents(t, target)); got != want {
		t.Errorf("contents %s; want %s", got, want)
	}
}

func TestRejectsWhatIsNoDocument(t *testing.T) {
	_, target := open(t, t.TempDir())
	build(t, target)
	r := write(t, target, 2, up("1", `{"name":"good"}`, 2), up("2", `[1]`, 2), up("3", `{"name":`, 2))
	if r[0].Outcome != sink.Written || r[1].Outcome != sink.Rejected || r[2].Outcome != sink.Rejected {
		t.Errorf("outcomes %+v", r)
	}
}

// A new generation is searched once it is finished; the old one until then.
func TestNewGeneration(t *testing.T) {
	dir := t.TempDir()
	s, target := open(t, dir)
	build(t, target, up("1", `{"name":"old"}`, 1))
	ctx := context.Background()
	next := testStamp(0)
	next.Fingerprint, next.Complete = "f2", false
	if err := target.Begin(ctx, next); err != nil {
		t.Fatal(err)
	}
	if _, err := target.Write(ctx, []sink.Update{up("2", `{"name":"new"}`, 2)}, next); err != nil {
		t.Fatal(err)
	}
	if hits, _, err := s.Search(ctx, testView.Name, "old", 10, 0); err != nil || len(hits) != 1 {
		t.Errorf("the old generation is not searched during a build: %v, %v", hits, err)
	}
	target.Close() // a kill in the middle: the build goes on
	s, target = open(t, dir)
	if got, ok := target.Stamp(); !ok || got.Complete || got.Fingerprint != "f2" {
		t.Errorf("stamp of an unfinished build %+v, %v", got, ok)
	}
	if err := target.Begin(ctx, next); err != nil {
		t.Fatal(err)
	}
	next.Complete = true
	if err := target.Finish(ctx, next, func(id string) (bool, error) { return id == "2", nil }); err != nil {
		t.Fatal(err)
	}
	if hits, _, err := s.Search(ctx, testView.Name, "", 10, 0); err != nil || len(hits) != 1 || hits[0].ID != "2" {
		t.Errorf("after the build: %v, %v", hits, err)
	}
	paths, err := generations(filepath.Join(dir, change.EscapeName(testView.Name)))
	if err != nil || len(paths) != 1 {
		t.Errorf("generations left: %v, %v; want one", paths, err)
	}
}

// V29: what a build that was interrupted left behind goes at its end.
func TestV29SweepAtFinish(t *testing.T) {
	_, target := open(t, t.TempDir())
	ctx := context.Background()
	if err := target.Begin(ctx, testStamp(0)); err != nil {
		t.Fatal(err)
	}
	write(t, target, 1, up("1", `{}`, 1), up("7", `{}`, 1))
	if err := target.Finish(ctx, testStamp(1), func(id string) (bool, error) { return id != "7", nil }); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, target); len(got) != 1 || got["1"] == "" {
		t.Errorf("contents %v; want 1 only", got)
	}
}

// TestKill kills a process that writes, with -9, and finds every batch that it was told of.
func TestKill(t *testing.T) {
	if dir := os.Getenv("LOCAL_TEST_KILL_DIR"); dir != "" {
		writeUntilKilled(t, dir)
		return
	}
	dir := t.TempDir()
	for round := range 3 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKill$", "-test.v")
		cmd.Env = append(os.Environ(), "LOCAL_TEST_KILL_DIR="+dir)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		var last uint64
		lines := bufio.NewScanner(out)
		for n := 0; n < 8*(round+1) && lines.Scan(); {
			if _, err := fmt.Sscanf(lines.Text(), "csn %d", &last); err == nil {
				n++
			}
		}
		must(t, cmd.Process.Kill())
		for lines.Scan() { // told before the kill
			fmt.Sscanf(lines.Text(), "csn %d", &last)
		}
		_ = cmd.Wait()
		_, target := open(t, dir)
		stamp, ok := target.Stamp()
		docs := contents(t, target)
		if !ok || last == 0 || stamp.CSN < last || len(docs) != int(stamp.CSN) {
			t.Fatalf("round %d: told CSN %d, stamp %+v, %d documents", round, last, stamp, len(docs))
		}
		must(t, target.Close())
	}
}

func writeUntilKilled(t *testing.T, dir string) {
	_, target := open(t, dir)
	if _, ok := target.Stamp(); !ok {
		build(t, target, up("1", `{"name":"n1"}`, 1))
	}
	s, _ := target.Stamp()
	for csn := s.CSN + 1; ; csn++ {
		write(t, target, csn, up(fmt.Sprint(csn), fmt.Sprintf(`{"name":"n%d"}`, csn), csn))
		fmt.Printf("csn %d\n", csn)
	}
}

func TestDamageIsRebuilt(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(t *testing.T, gen string)
	}{
		{"meta file cut", func(t *testing.T, gen string) { truncate(t, filepath.Join(gen, "index_meta.json"), 5) }},
		{"root cut", func(t *testing.T, gen string) { truncate(t, filepath.Join(gen, "store", "root.bolt"), 100) }},
		{"store gone", func(t *testing.T, gen string) { must(t, os.RemoveAll(filepath.Join(gen, "store"))) }},
		{"segment gone", func(t *testing.T, gen string) {
			files, _ := filepath.Glob(filepath.Join(gen, "store", "*.zap"))
			if len(files) == 0 {
				t.Fatal("the index has no segment on disk")
			}
			for _, f := range files {
				must(t, os.Remove(f))
			}
		}},
		{"all gone", func(t *testing.T, gen string) { must(t, os.RemoveAll(filepath.Dir(gen))) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			_, target := open(t, dir)
			build(t, target, up("1", `{"name":"a"}`, 1))
			written, _ := target.Stamp()
			must(t, target.Close())
			tt.damage(t, filepath.Join(dir, change.EscapeName(testView.Name), "000001"))
			_, target = open(t, dir)
			// bleve may fall back to an older state of its own: its stamp then tells that the target went back.
			if s, ok := target.Stamp(); ok && !s.Before(written) {
				t.Fatalf("a damaged index shows stamp %+v, not before %+v", s, written)
			}
			build(t, target, up("1", `{"name":"a"}`, 1))
			if len(contents(t, target)) != 1 {
				t.Error("it was not built again")
			}
		})
	}
}

func TestFolderRemovedWhileOpen(t *testing.T) {
	dir := t.TempDir()
	_, target := open(t, dir)
	build(t, target, up("1", `{"name":"a"}`, 1))
	must(t, os.RemoveAll(filepath.Join(dir, change.EscapeName(testView.Name))))
	_, err := target.Write(context.Background(), []sink.Update{up("2", `{}`, 2)}, testStamp(2))
	if !errors.Is(err, sink.ErrWentBack) {
		t.Fatalf("Write = %v; want ErrWentBack", err)
	}
	target.Close()
	_, target = open(t, dir)
	if _, ok := target.Stamp(); ok {
		t.Error("the folder is back")
	}
}

// A locked index is in use, not damaged.
func TestLockedIsNotDamaged(t *testing.T) {
	dir := t.TempDir()
	_, target := open(t, dir)
	build(t, target, up("1", `{"name":"a"}`, 1))
	if _, err := New(Options{Dir: dir}).Open(context.Background(), testView, ourLog); err == nil {
		t.Fatal("a locked index was opened")
	}
	if len(contents(t, target)) != 1 {
		t.Error("the index was removed under its user")
	}
}

func TestMappingErrors(t *testing.T) {
	for _, tt := range []struct {
		name     string
		opts     []MappingField
		analyzer string
		want     string
	}{
		{"unknown field", []MappingField{{Field: "nome", Type: "text"}}, "", `"nome"`},
		{"unknown type", []MappingField{{Field: "brand.name", Type: "varchar"}}, "", `"varchar"`},
		{"unknown analyzer", nil, "klingon", `"klingon"`},
	} {
		v := testView
		v.Options = ViewOptions{Mapping: tt.opts}
		_, err := New(Options{Dir: t.TempDir(), Analyzer: tt.analyzer}).Open(context.Background(), v, ourLog)
		if !errors.Is(err, sink.ErrStopped) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func truncate(t *testing.T, path string, n int64) { t.Helper(); must(t, os.Truncate(path, n)) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
