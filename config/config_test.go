package config

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func env(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

var testEnv = env(map[string]string{
	"SHOP_DSN":   "postgres://app:hunter2@127.0.0.1:5432/shop",
	"ES_URL":     "http://127.0.0.1:9200",
	"REDIS_ADDR": "127.0.0.1:6379",
	"WORD":       "hunter2",
	"N":          "5000",
	"EMPTY":      "",
})

// TestErrors loads each file of testdata/errors and compares every problem, as
// a person sees it, with the golden file beside it.
func TestErrors(t *testing.T) {
	files, err := filepath.Glob("testdata/errors/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".yaml"), func(t *testing.T) {
			_, err := Load(f, testEnv)
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("Load = %v, want ErrInvalid", err)
			}
			golden(t, strings.TrimSuffix(f, ".yaml")+".golden", err.Error()+"\n")
			noSecret(t, err.Error())
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; run go test -update and read the diff\n got:\n%s\nwant:\n%s", file, got, want)
	}
}

func noSecret(t *testing.T, text string) {
	t.Helper()
	for _, canary := range []string{"hunter2", "ter2"} {
		if strings.Contains(text, canary) {
			t.Errorf("a secret is in the text:\n%s", text)
		}
	}
}

func parse(t *testing.T, text string) (*Config, error) {
	t.Helper()
	return Parse("t.yaml", t.TempDir(), text, testEnv)
}

func mustParse(t *testing.T, text string) *Config {
	t.Helper()
	cfg, err := parse(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

const shopSource = "sources: { shop: { postgres: { dsn: \"${SHOP_DSN}\", tables: [public.*] } } }\n"

func TestShop(t *testing.T) {
	cfg, err := Load("testdata/shop.yaml", testEnv)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/shop.golden", dump(cfg))
}

// dump shows what the structs hold, one value a line.
func dump(cfg *Config) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("data_dir %s", cfg.DataDir)
	for _, s := range cfg.Sources {
		p("source %s %s %s dsn=%v addr=%s discover=%s slot=%s pub=%s tls=%s snapshot=%+v heartbeat=%s on_limit=%s",
			s.Pos, s.Name, s.Kind, s.DSN, s.Address, s.Discover, s.Slot, s.Publication, s.TLS.Mode, s.Snapshot, s.Heartbeat, s.OnLimit)
		p("  messages=%q off=%v signals=%s heartbeat_message=%s", s.Messages, s.NoMessages, s.Signals, s.HeartbeatMessage)
		for _, t := range s.Tables {
			p("  table %s %q literal=%v", t.Pos, t.Text, t.Literal())
		}
		for _, t := range s.Exclude {
			p("  exclude %s %q", t.Pos, t.Text)
		}
	}
	p("log quota=%s journal=%s", cfg.Log.Quota, cfg.Log.Journal)
	p("  shop.public.orders %+v", cfg.Log.Topic("shop.public.orders"))
	p("  view.orders %+v", cfg.Log.Topic("view.orders"))
	for _, v := range cfg.Views {
		p("view %s %s emit=%s", v.Pos, v.Name, v.Emit)
		dumpNode(p, "  ", &v.Node)
		for _, t := range v.To {
			p("  to %s %s index=%s key=%q %+v ttl=%s", t.Pos, t.Sink, t.Index, t.Key.Text, t.Key.Parts, t.TTL)
			for _, m := range t.Mapping {
				p("    mapping %s %s %s keyword=%v %v", m.Pos, m.Field, m.Type, m.Keyword, m.Params)
			}
		}
	}
	for _, s := range cfg.Sinks {
		p("sink %s %s %s on_reject=%s batch=%+v", s.Pos, s.Name, s.Kind, s.OnReject, s.Batch)
		switch {
		case s.Elastic != nil:
			p("  %v %s", s.Elastic.URLs, s.Elastic.Timeout)
		case s.Redis != nil:
			p("  %v db=%d %s", s.Redis.Addrs, s.Redis.DB, s.Redis.Timeout)
		case s.Local != nil:
			p("  %+v", *s.Local)
		}
	}
	p("server %s", cfg.Server.Listen)
	for _, w := range cfg.Warnings {
		p("warning %s", w.Error())
	}
	return b.String()
}

func dumpNode(p func(string, ...any), indent string, n *Node) {
	p("%stable %s %s", indent, n.Table.Pos, n.Table)
	if n.Where != nil {
		p("%swhere %s %q", indent, n.Where.Pos, n.Where.Text)
	}
	for _, f := range n.Fields {
		p("%sfield %s %s = %q %q", indent, f.Pos, f.Name, f.Column, exprText(f.Expr))
	}
	for _, r := range n.Nest {
		p("%snest %s %s %s by=%v limit=%d", indent, r.Pos, r.Name, r.Kind, canonBy(r.By), r.Limit)
		if r.Through != nil {
			p("%s  through %s near=%v far=%v", indent, r.Through.Table, canonBy(r.Through.Near), canonBy(r.Through.Far))
		}
		for _, o := range r.Order {
			p("%s  order %s %s desc=%v nullsfirst=%v", indent, o.Pos, o.Column, o.Desc, o.NullsFirst)
		}
		dumpNode(p, indent+"  ", &r.Node)
	}
	for _, c := range n.Calc {
		round := "none"
		if c.Round != nil {
			round = fmt.Sprint(*c.Round)
		}
		p("%scalc %s %s = %s(%s, %q, %q) round=%s", indent, c.Pos, c.Name, c.Func, c.Relation, c.Column, exprText(c.Expr), round)
	}
}
