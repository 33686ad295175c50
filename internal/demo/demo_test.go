package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tailwater/tailwater/internal/testkit"
)

var small = LoadOptions{Size: Size{Products: 300, Reviews: 1500, Brands: 20}, Seed: 7}

func TestGeneratorIsDeterministic(t *testing.T) {
	var a, b, c bytes.Buffer
	for w, o := range map[*bytes.Buffer]LoadOptions{&a: small, &b: small, &c: {Size: small.Size, Seed: 8}} {
		if err := WriteSQL(w, o); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) || bytes.Equal(a.Bytes(), c.Bytes()) {
		t.Error("the same seed has to give the same shop, another seed another")
	}
}

func TestRowWriter(t *testing.T) {
	var b strings.Builder
	w := rowWriter{w: &b}
	w.row(7, nil, "a\tb\\c\nd", true, time.Date(2026, 1, 2, 3, 4, 5, 60_000, time.UTC))
	if want := "7\t\\N\ta\\tb\\\\c\\nd\ttrue\t2026-01-02 03:04:05.00006+00\n"; b.String() != want {
		t.Errorf("row = %q; want %q", b.String(), want)
	}
}

// The compose file's seed is the generator's output, so both show one shop.
func TestComposeSeedIsCurrent(t *testing.T) {
	var want bytes.Buffer
	if err := WriteSQL(&want, ComposeShop); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../deploy/compose/shop.sql")
	if err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("deploy/compose/shop.sql is not what the generator writes (%v): go generate ./internal/demo", err)
	}
}

func TestConfigQuotes(t *testing.T) {
	got := Config("postgres://u:it's${X}$@h/d", "/tmp/a b", "127.0.0.1:1")
	for _, want := range []string{"data_dir: '/tmp/a b'\n", "dsn: 'postgres://u:it''s$${X}$@h/d'\n", "listen: '127.0.0.1:1' }\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the configuration lacks %q:\n%s", want, got)
		}
	}
}

func TestLoad(t *testing.T) {
	ctx := t.Context()
	dsn := testkit.Postgres(t)
	for range 2 { // the second replaces the first
		if err := Load(ctx, dsn, small); err != nil {
			t.Fatal(err)
		}
	}
	docs, err := Expected(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	var joined int
	for _, doc := range docs {
		if isJoined(doc) {
			joined++
		}
	}
	if len(docs) < 200 || len(docs) >= 300 || joined < 100 {
		t.Errorf("%d documents, %d of them with brand, country, review and category", len(docs), joined)
	}
}

func TestLoadMakesTheDatabase(t *testing.T) {
	name := testkit.Name(t)
	dsn := testkit.WithDatabase(t, testkit.Postgres(t), name)
	if err := Load(t.Context(), dsn, small); err != nil {
		t.Fatal(err)
	}
	testkit.Exec(t, testkit.WithDatabase(t, dsn, "postgres"), "DROP DATABASE "+name)
}

func TestLoadRefusesForeignTables(t *testing.T) {
	dsn := testkit.Postgres(t)
	testkit.Exec(t, dsn, "create table products (id int)", "insert into products values (1)")
	err := Load(t.Context(), dsn, small)
	if !errors.Is(err, ErrForeignTables) || !strings.Contains(err.Error(), "public.products)") {
		t.Fatalf("Load = %v", err)
	}
	var n int
	if err := testkit.Connect(t, dsn).QueryRow(t.Context(), "select count(*) from products").Scan(&n); err != nil || n != 1 {
		t.Errorf("the table has %d rows, %v", n, err)
	}
}

// Each operation runs, and each but the rare misses changes something.
func TestOperations(t *testing.T) {
	dsn := testkit.Postgres(t)
	if err := Load(t.Context(), dsn, small); err != nil {
		t.Fatal(err)
	}
	c := testkit.Connect(t, dsn)
	for _, o := range operations {
		t.Run(o.name, func(t *testing.T) {
			if !changes(t, c, o) {
				t.Error("twenty runs changed nothing")
			}
		})
	}
}

func changes(t *testing.T, c *pgx.Conn, o operation) bool {
	ctx := t.Context()
	r := rand.New(rand.NewPCG(3, 3))
	for range 20 {
		tx, err := c.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.run(ctx, tx, r); err != nil && !harmless(err) {
			t.Fatal(err)
		} else if err != nil {
			_ = tx.Rollback(ctx)
			continue
		}
		var wrote bool
		err = tx.QueryRow(ctx, "select txid_current_if_assigned() is not null").Scan(&wrote)
		if err := errors.Join(err, tx.Commit(ctx)); err != nil {
			t.Fatal(err)
		}
		if wrote {
			return true
		}
	}
	return false
}

func TestTraffic(t *testing.T) {
	dsn := testkit.Postgres(t)
	if err := Load(t.Context(), dsn, small); err != nil {
		t.Fatal(err)
	}
	before, err := Expected(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	traffic := NewTrafficker(dsn, 0, 11)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- traffic.Run(ctx) }()
	testkit.Eventually(t, time.Minute, "300 transactions", func() error {
		if n := traffic.Committed(); n < 300 {
			return errors.New("too few so far")
		}
		return nil
	})
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	diff, err := Compare(t.Context(), dsn, before)
	if err != nil || len(diff) < 50 {
		t.Errorf("%d documents changed, %v", len(diff), err)
	}
}

func TestCompareDocs(t *testing.T) {
	docs := func(kv ...string) map[string]json.RawMessage {
		m := map[string]json.RawMessage{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = json.RawMessage(kv[i+1])
		}
		return m
	}
	got, err := compareDocs(docs("1", `{"a":1.50}`, "2", `{}`, "3", `{"b":[1]}`), docs("1", `{"a":1.5}`, "3", `{"b":[1]}`, "9", `{}`))
	want := []string{"1: a: want 1.50, found 1.5", "2: missing", "9: should not be there"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("compareDocs = %q, %v; want %q", got, err, want)
	}
}
