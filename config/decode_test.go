package config

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tailwater/tailwater/internal/keytemplate"
)

func TestDSN(t *testing.T) {
	for _, tt := range []struct {
		dsn, want, err string
	}{
		{"postgres://u:p@h:5432/db", "u@h:5432/db", ""},
		{"postgresql://h/db", "h/db", ""},
		{"postgres://u:p%40%2F@[::1]:5432/db?sslmode=disable", "u@[::1]:5432/db", ""},
		{"postgres://u:a@b:c@h/db", "u@h/db", ""},
		{"postgres://u@h1:1,h2:2/db", "u@h1:1,h2:2/db", ""},
		{"postgres:///db?host=/var/run/postgresql&user=u", "u@/var/run/postgresql/db", ""},
		{"postgres://u@%2Fvar%2Frun/db", "", "its host is no name"},
		{"postgres://u@h", "u@h", ""},
		{"mysql://root@h:3306/shop", "root@h:3306/shop", ""},
		{"mariadb://root@h", "root@h", ""},
		{"", "", "it is empty"},
		{"host=x user=y", "", "it is no URL"},
		{"http://h/db", "", "its scheme is none of"},
		{"postgres://u:hunter2%@h/db", "", "its password has a %"},
		{"postgres://u:hun/ter2@h/db", "", "its database is not one name"},
		{"postgres://u:hunter2@h:0/db", "", "its port"},
		{"postgres://u:hunter2@h:70000/db", "", "its port"},
		{"postgres://u:hunter2@h /db", "", "it has a blank"},
		{"postgres://u:hunter2@h/db?%", "", "its parameters"},
		{"postgres://u:hun^ter2@h/db", "", "must be percent-encoded"},
		{"postgres://u:hunter2@a:b:1/db", "", "its host is no name"},
	} {
		_, a, err := parseDSN(tt.dsn)
		if err != nil && tt.err != "" && strings.Contains(err.Error(), tt.err) {
			noSecret(t, err.Error())
			continue
		}
		if err != nil || tt.err != "" || a.String() != tt.want {
			t.Errorf("parseDSN(%q) = %q, %v; want %q, %q", tt.dsn, a, err, tt.want, tt.err)
		}
	}
}

func TestTLSMode(t *testing.T) {
	for _, tt := range []struct{ dsn, options, mode, err string }{
		{"postgres://localhost/x", "", TLSPrefer, ""},
		{"postgres://[::1]/x", "", TLSPrefer, ""},
		{"postgres://127.0.0.2/x?sslmode=disable", "", TLSDisable, ""},
		{"postgres://db/x", "", TLSVerifyFull, ""},
		{"postgres://db/x?sslmode=verify-ca", "", TLSVerifyCA, ""},
		{"postgres://db/x", "tls: { mode: verify-ca, ca: ca.pem },", TLSVerifyCA, ""},
		{"postgres://db/x", "insecure_plaintext: true,", TLSPrefer, ""},
		{"postgres://db/x?sslmode=require", "insecure_plaintext: true,", TLSRequire, ""},
		{"postgres://db/x?sslmode=require", "", "", "sslmode=require does not verify"},
		{"postgres://127.0.0.1,db/x?sslmode=prefer", "", "", "sslmode=prefer does not verify"},
		{"postgres://db/x?sslmode=yes", "", "", "none of disable"},
		{"postgres://db/x?sslmode=verify-ca", "tls: { mode: verify-full },", "", "keep one"},
	} {
		cfg, err := parse(t, "sources: { s: { postgres: { dsn: \""+tt.dsn+"\", "+tt.options+" tables: [public.*] } } }\n")
		switch {
		case tt.err != "":
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v, want %q", tt.dsn, err, tt.err)
			}
		case err != nil || cfg.Sources[0].TLS.Mode != tt.mode:
			t.Errorf("%s: %v, want %s", tt.dsn, err, tt.mode)
		}
	}
}

func TestPatterns(t *testing.T) {
	for _, tt := range []struct {
		pattern       string
		literal       bool
		match, differ string
	}{
		{"public.*", false, "public.a", "Public.a"},
		{"products", true, "public.products", "x.products"},
		{"audit_*", false, "public.audit_log", "x.audit_log"},
		{"*", false, "x.y", ""},
		{"*_log", false, "public.a_log", "x.a_log"},
		{"*.orders", false, "x.orders", "x.orders2"},
		{`"my schema"."my.table"`, true, "my schema.my.table", "my schema.x"},
		{"a*z.*_log", false, "abz.x_log", "abz.log"},
	} {
		p, err := parsePattern(tt.pattern, "public")
		if err != nil || p.Literal() != tt.literal {
			t.Errorf("parsePattern(%q) = %+v, %v", tt.pattern, p, err)
			continue
		}
		match := func(name string) bool {
			schema, table, _ := strings.Cut(name, ".")
			return p.Match(schema, table)
		}
		if !match(tt.match) || tt.differ != "" && match(tt.differ) {
			t.Errorf("%q matches %q: %v, %q: %v", tt.pattern, tt.match, match(tt.match), tt.differ, match(tt.differ))
		}
	}
	for _, bad := range []string{"", "a.b.c", ".a", "a.", `"a`, "a b", "a;b", `"a"b`} {
		if p, err := parsePattern(bad, "public"); err == nil {
			t.Errorf("parsePattern(%q) = %+v, want an error", bad, p)
		}
	}
}

func TestTableNames(t *testing.T) {
	cfg := mustParse(t, `
sources:
  a: { postgres: { dsn: "${SHOP_DSN}", tables: ["*"] } }
  b: { postgres: { dsn: "${SHOP_DSN}", tables: ["*"], slot: b } }
views:
  v:
    from: a.x.t
    nest:
      same: { has_many: u }
      schema: { has_many: y.u }
      other: { has_many: b.y.u, nest: { deeper: { belongs_to: w } } }
      link: { has_many: b.y.u, through: l }
  short: { from: b.t }
`)
	v := cfg.View("v")
	for name, want := range map[string]string{
		v.Table.String(): "a.x.t", v.Relation("same").Table.String(): "a.x.u", v.Relation("schema").Table.String(): "a.y.u",
		v.Relation("other").Table.String(): "b.y.u", v.Relation("other").Nest[0].Table.String(): "b.y.w",
		v.Relation("link").Through.Table.String(): "a.x.l", cfg.View("short").From().String(): "b.public.t",
	} {
		if name != want {
			t.Errorf("table %s, want %s", name, want)
		}
	}
}

func TestFields(t *testing.T) {
	cfg := mustParse(t, shopSource+`
views:
  v:
    from: shop.public.t
    fields: [id, '"Odd Name"', { title: name, total: "qty * price" }, { flag: true }, { one: 1 }, { q: '"a""b"' }]
  all: { from: shop.public.t }
  star: { from: shop.public.t, fields: "*" }
  none: { from: shop.public.t, fields: [] }
`)
	var got []string
	for _, f := range cfg.View("v").Fields {
		got = append(got, f.Name+"="+f.Column+"/"+exprText(f.Expr))
	}
	want := []string{"id=id/", "Odd Name=Odd Name/", "title=name/", "total=/qty * price", "flag=/true", "one=/1", `q=a"b/`}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("fields %q, want %q", got, want)
	}
	if cfg.View("all").Fields != nil || cfg.View("star").Fields != nil || cfg.View("none").Fields == nil || len(cfg.View("none").Fields) != 0 {
		t.Error("nil means all columns, empty means none")
	}
}

func TestRelations(t *testing.T) {
	cfg := mustParse(t, shopSource+`
views:
  v:
    from: shop.public.t
    nest:
      a: { belongs_to: a, by: [x, y], fold: true }
      b: { has_many: b, by: { order_id: id, region: region }, order: name desc nulls first, limit: 3 }
      c: { has_one: c, order: ['"Odd Name" desc', 'd nulls last'] }
      d: { has_many: d, through: { table: l, near: p, far: { q: r }, where: active } }
    calc:
      n: { count: b }
      m: { count: b.x }
      s: { sum: "qty * price", of: b, where: qty > 0, round: 0, approximate: true }
      q: { max: 'b."Odd.Name"' }
`)
	v := cfg.View("v")
	a, b, c, d := v.Nest[0], v.Nest[1], v.Nest[2], v.Nest[3]
	if !a.Fold || !reflect.DeepEqual(canonBy(a.By), [][2]string{{"x", ""}, {"y", ""}}) {
		t.Errorf("a = %+v", a)
	}
	if !reflect.DeepEqual(canonBy(b.By), [][2]string{{"order_id", "id"}, {"region", "region"}}) || b.Limit != 3 || !b.Order[0].Desc || !b.Order[0].NullsFirst {
		t.Errorf("b = %+v", b)
	}
	if c.Kind != HasOne || c.Order[0].Column != "Odd Name" || !c.Order[0].Desc || c.Order[1].NullsFirst || c.By != nil {
		t.Errorf("c = %+v", c)
	}
	if d.Through.Table.Table != "l" || d.Through.Near[0].Column != "p" || d.Through.Far[0].Refers != "r" || d.Through.Where.Text != "active" {
		t.Errorf("d = %+v", d.Through)
	}
	if n := v.Calc[0]; n.Column != "" || n.Relation != "b" || n.Round != nil {
		t.Errorf("n = %+v", n)
	}
	if m, s, q := v.Calc[1], v.Calc[2], v.Calc[3]; m.Column != "x" || s.Expr.Text != "qty * price" || *s.Round != 0 || !s.Approximate || s.Where == nil || q.Column != "Odd.Name" {
		t.Errorf("m, s, q = %+v %+v %+v", m, s, q)
	}
}

func TestSinks(t *testing.T) {
	cfg := mustParse(t, shopSource+`
views:
  V_1:
    from: shop.public.t
    to:
      e: { settings: { number_of_shards: 3, refresh: "1s", deep: { a: [1, 1.5, true, x, ~] } }, mapping: { a: nested, "b.c": { type: text, boost: 1.10 } } }
      r: {}
sinks:
  e: { opensearch: { url: ["https://u:hunter2@a:9200/", "https://b:9200"], timeout: 5s }, on_reject: stop, batch: { docs: 10, bytes: 1MiB, wait: 1s, in_flight: 2 } }
  r: { redis: { addr: ["rediss://u:hunter2@c:6380", "d:6379"], on_reject: stop } }
`)
	e, r := cfg.Sink("e"), cfg.Sink("r")
	if !reflect.DeepEqual(e.Elastic.URLs, []string{"https://a:9200", "https://b:9200"}) || e.Elastic.Username != "u" || e.Elastic.Password.Reveal() != "hunter2" {
		t.Errorf("e = %+v", e.Elastic)
	}
	if e.OnReject != OnRejectStop || e.Batch != (Batch{10, 1 << 20, time.Second, 2}) || e.Elastic.Timeout != 5*time.Second {
		t.Errorf("e = %+v", e)
	}
	if !reflect.DeepEqual(r.Redis.Addrs, []string{"c:6380", "d:6379"}) || !r.Redis.UseTLS || r.Redis.Username != "u" || r.OnReject != OnRejectStop || r.Batch.InFlight != 1 {
		t.Errorf("r = %+v", r.Redis)
	}
	te, tr := cfg.View("V_1").Target("e"), cfg.View("V_1").Target("r")
	if te.Index != "v_1" || te.Settings["number_of_shards"] != int64(3) || te.Settings["refresh"] != "1s" {
		t.Errorf("target e = %+v", te)
	}
	if te.Mapping[0].Type != "nested" || sprintf("%v", te.Mapping[1].Params["boost"]) != "1.10" {
		t.Errorf("mapping = %+v", te.Mapping)
	}
	if want := []TemplatePart{{Text: "V_1:"}, {Field: "id"}}; !reflect.DeepEqual(tr.Key.Parts, want) {
		t.Errorf("key = %+v", tr.Key)
	}
}

func TestTemplate(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []TemplatePart
	}{
		{"p:{id}", []TemplatePart{{Text: "p:"}, {Field: "id"}}},
		{"{a}{b}", []TemplatePart{{Field: "a"}, {Field: "b"}}},
		{"{{x}}:{id}", []TemplatePart{{Text: "{x}:"}, {Field: "id"}}},
		{`{"odd name"}`, []TemplatePart{{Field: "odd name"}}},
		{"", nil},
		{"{", nil}, {"}", nil}, {"{}", nil}, {"{a b}", nil}, {"{{{id}", []TemplatePart{{Text: "{"}, {Field: "id"}}},
	} {
		got, _ := keytemplate.Parse(tt.in, columnName)
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("Parse(%q) = %+v, want %+v", tt.in, got, tt.want)
		}
	}
}

func TestColumns(t *testing.T) {
	d := &decoder{env: testEnv, file: "t.yaml"}
	root := d.parse("t.yaml", t.TempDir(), `
public.users.password: drop
public.users.phone: mask
"*.note": { truncate: 10 }
public.users.email: { hash: "${WORD}" }
public.users.card: { mask: "XXXX" }
`)
	s := &Source{}
	d.columns(d.object(&node{kind: mapNode, entries: []entry{{key: "columns", value: root}}}, Pos{}), s)
	cs := s.Columns
	if len(d.problems) > 0 || len(cs) != 5 || cs[0].Action != ColumnDrop || cs[1].Mask != "***" || cs[2].Length != 10 || cs[3].HashKey.Reveal() != "hunter2" || cs[4].Mask != "XXXX" {
		t.Errorf("columns = %+v, %v", cs, d.problems)
	}
	if !cs[2].Match("public", "orders", "note") || cs[0].Match("public", "users", "name") {
		t.Error("wrong match")
	}
	_, err := parse(t, "sources: { s: { postgres: { dsn: \"${SHOP_DSN}\", tables: [public.*], on_limit: resnapshot, columns: { a.b.c: drop } } } }\n")
	for _, want := range []string{"column rules are not in this version yet", "on_limit: resnapshot is not in this version yet"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	_, err = parse(t, "sources: { s: { postgres: { dsn: \"${SHOP_DSN}\", tables: [public.*], snapshot: { mode: never } } } }\nviews: { v: { from: s.public.a, emit: transactional } }\n")
	for _, want := range []string{"emit: transactional is not in this version yet", "snapshot.mode: never"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestUnenforced warns of what is read and has no effect yet.
func TestUnenforced(t *testing.T) {
	cfg := mustParse(t, "sources: { s: { postgres: { dsn: \"${SHOP_DSN}\", tables: [public.*], snapshot: { workers: 2 } } } }\nlog: { quota: 1GiB, topics: { \"s.*\": { cleanup: delete, retention: 30d } } }\n")
	if !strings.Contains(cfg.Warnings.Error(), "snapshot.workers") || strings.Contains(cfg.Warnings.Error(), "log.") {
		t.Errorf("%v, want one of snapshot.workers", cfg.Warnings)
	}
}

// TestCleanup refuses what would delete nothing, or what a view needs.
func TestCleanup(t *testing.T) {
	const source = "sources: { s: { postgres: { dsn: \"${SHOP_DSN}\", tables: [public.*] } } }\n"
	for topics, want := range map[string]string{
		`{ "s.*": { cleanup: delete } }`:                    "cleanup: delete without a retention",
		`{ "s.*": { retention: 30d } }`:                     "retention has an effect with cleanup: delete only",
		`{ "s.*": { cleanup: compact, retention: 10GiB } }`: "retention has no effect with cleanup: compact",
		`{ "s.*": { cleanup: delete, retention: 30d } }`:    "log.topics deletes old records of s.public.a",
	} {
		_, err := parse(t, source+"log: { topics: "+topics+" }\nviews: { v: { from: s.public.b, nest: { a: { has_many: a, by: b_id } } } }\n")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", topics, err, want)
		}
	}
	cfg := mustParse(t, source+`log: { topics: { "s.public.events": { cleanup: delete, retention: { time: 30d, size: 10GiB } } } }`+"\nviews: { v: { from: s.public.a } }\n")
	if o := cfg.Log.Topic("s.public.events"); o.Cleanup != CleanupDelete || o.Retention != 30*24*time.Hour || o.RetentionBytes != 10<<30 {
		t.Errorf("%+v", o)
	}
}

// TestFingerprints wants equal ones for equal meanings, and others for others.
func TestFingerprints(t *testing.T) {
	view := func(body string) *View { return mustParse(t, shopSource+"views: { v: "+body+" }\n").View("v") }
	base := view("{ from: shop.public.t, where: a, nest: { r: { has_many: r, by: t_id, order: [x, y] } } }")
	for _, same := range []string{
		"{ nest: { r: { order: [x asc, \"y nulls last\"], has_many: shop.public.r, by: [t_id] } }, where: ' a ', from: t }",
		"{ from: shop.public.t, where: \"${X:-a}\", nest: { r: { has_many: r, by: t_id, order: [x, y] } }, emit: coalesced, partitions: 2 }",
	} {
		if got := view(same); got.Fingerprint() != base.Fingerprint() {
			t.Errorf("%s has another fingerprint", same)
		}
	}
	for _, other := range []string{
		"{ from: shop.public.t2, where: a, nest: { r: { has_many: r, by: t_id, order: [x, y] } } }",
		"{ from: shop.public.t, where: b, nest: { r: { has_many: r, by: t_id, order: [x, y] } } }",
		"{ from: shop.public.t, where: a, nest: { r: { has_many: r, by: t_id, order: [y, x] } } }",
		"{ from: shop.public.t, where: a, nest: { r: { has_many: r, by: u_id, order: [x, y] } } }",
		"{ from: shop.public.t, where: a, nest: { r: { has_one: r, by: t_id, order: [x, y] } } }",
		"{ from: shop.public.t, where: a, nest: { r: { has_many: r, by: t_id, order: [x, y], limit: 1 } } }",
		"{ from: shop.public.t, where: a, fields: [], nest: { r: { has_many: r, by: t_id, order: [x, y] } } }",
		"{ from: shop.public.t, where: a, nest: { r: { has_many: r, by: t_id, order: [x, y] } }, calc: { n: { count: r } } }",
	} {
		if got := view(other); got.Fingerprint() == base.Fingerprint() {
			t.Errorf("%s has the same fingerprint", other)
		}
	}
	// Golden: kept state of released versions has these.
	if got, want := base.Fingerprint(), "63906176fc3d84fe9582583100063d89"; got != want {
		t.Errorf("fingerprint %s, want %s", got, want)
	}
}

// TestAt gives places to others, which report there.
func TestAt(t *testing.T) {
	cfg, err := Load("testdata/shop.yaml", testEnv)
	if err != nil {
		t.Fatal(err)
	}
	if got := cfg.At("views.product_search.nest.brand.by").String(); got != "testdata/shop.yaml:23:9" {
		t.Errorf("At = %s", got)
	}
	if got := cfg.At(`log.topics."shop.*".partitions`).String(); got != "testdata/shop.yaml:13:17" {
		t.Errorf("At = %s", got)
	}
	if got := cfg.At("views.product_search.nest.brand.limit").String(); got != "testdata/shop.yaml:21:7" {
		t.Errorf("At of a missing key = %s", got)
	}
	if got := cfg.At("x.y[3].z"); got.Line != 1 || got.Path != "x.y[3].z" {
		t.Errorf("At of nothing = %+v", got)
	}
	where := cfg.View("product_search").Where
	p := where.At(strings.Index(where.Text, "'draft'")).Problem("there is no such value", "look again")
	want := `testdata/shop.yaml:18:22: views.product_search.where: there is no such value
    17 |     from: shop.public.products            # root: one document per row
    18 |     where: status != 'draft'
       |                      ^^^^^^^
       = look again
`
	if p.Text() != want {
		t.Errorf("Text = \n%s\nwant\n%s", p.Text(), want)
	}
	if err := (Problems{p}).Err(); !errors.Is(err, ErrInvalid) || (Problems{}).Err() != nil {
		t.Errorf("Err = %v", err)
	}
	if got := (Pos{}).Problemf("odd %d", 1).Text(); got != "odd 1\n" {
		t.Errorf("a problem nowhere is %q", got)
	}
}

func TestServer(t *testing.T) {
	for _, tt := range []struct{ server, err string }{
		{"listen: 127.0.0.1:0", ""},
		{"listen: '[::1]:7171'", ""},
		{"listen: localhost:7171", ""},
		{"listen: 0.0.0.0:7171, insecure_no_auth: true, insecure_plaintext: true", ""},
		{"listen: 0.0.0.0:7171, token: x, tls: { cert: c, key: k }", ""},
		{"listen: ':7171', token: x", "without TLS"},
		{"listen: '[::]:7171', tls: { cert: c, key: k }", "without a token"},
		{"listen: host", "is not host:port"},
		{"listen: 'h:99999'", "is not host:port"},
	} {
		_, err := parse(t, shopSource+"server: { "+tt.server+" }\n")
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v, want %q", tt.server, err, tt.err)
		}
	}
}

func TestMeasures(t *testing.T) {
	for in, want := range map[string]Size{"200GiB": 200 << 30, "1.5 MB": 1500000, "512B": 512, "1kib": 1024, "0B": 0} {
		if got, err := ParseSize(in); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v", in, got, err)
		}
	}
	for _, bad := range []string{"", "5", "-1GiB", "1e3MB", "10 mib b", "99999999TiB", "0.3B", "1_000B", "１B"} {
		if got, err := ParseSize(bad); err == nil {
			t.Errorf("ParseSize(%q) = %d", bad, got)
		}
	}
	for in, want := range map[string]time.Duration{"24h": 24 * time.Hour, "7d": 168 * time.Hour, "2w": 336 * time.Hour, "1h30m": 90 * time.Minute, "1.5s": 1500 * time.Millisecond, "200ms": 200 * time.Millisecond, "0s": 0} {
		if got, err := ParseDuration(in); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %s, %v", in, got, err)
		}
	}
	for _, bad := range []string{"", "5", "-5s", "1y", "s", "1h30", "1e3s", "300000w"} {
		if got, err := ParseDuration(bad); err == nil {
			t.Errorf("ParseDuration(%q) = %s", bad, got)
		}
	}
}

func TestSuggest(t *testing.T) {
	known := []string{"tables", "exclude", "has_many", "has_one", "belongs_to", "where", "to", "by"}
	for word, want := range map[string]string{
		"tabels": "tables", "Tables": "tables", "hasMany": "has_many", "has-one": "has_one", "wher": "where", "too": "to", "belong_to": "belongs_to", "zzz": "", "x": "", "": "",
	} {
		if got := Suggest(word, known); got != want {
			t.Errorf("Suggest(%q) = %q, want %q", word, got, want)
		}
	}
}
