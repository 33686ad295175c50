package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", shopSource+"log: { quota: 1GiB, topics: { a: { partitions: 2 } } }\nviews:\n")
	write(t, dir, "b.yaml", "views: { v: { from: shop.public.v, to: s } }\nlog: { journal: 2GiB, topics: { b: { partitions: 3 } } }\n")
	write(t, dir, "c.yml", "sinks: { s: { local: {} } }\nserver: { listen: 127.0.0.1:1 }\n")
	write(t, dir, "notes.txt", "not: [yaml")
	write(t, dir, ".hidden.yaml", "not: [yaml")
	cfg, err := Load(dir, testEnv)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.View("v") == nil || cfg.Sink("s") == nil || cfg.Source("shop") == nil || cfg.Log.Journal != 2<<30 || len(cfg.Log.Topics) != 2 {
		t.Errorf("parts are missing: %s", dump(cfg))
	}
	if got := cfg.View("v").Pos; filepath.Base(got.File) != "b.yaml" || got.Line != 1 {
		t.Errorf("view is at %s", got)
	}

	write(t, dir, "d.yaml", "views: { v: { from: shop.public.w } }\nserver: { listen: 127.0.0.1:2 }\n")
	_, err = Load(dir, testEnv)
	for _, want := range []string{"d.yaml:1:10: views.v: views.v is in two files", "b.yaml:1:10; keep one", "server.listen is in two files"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Load = %v\nwant %q", err, want)
		}
	}
}

func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		filepath.Join(dir, "none.yaml"): "does not exist; name it with -c",
		dir:                             "has no *.yaml file",
		"/dev/null":                     "neither a file nor a directory",
	} {
		_, err := Load(path, testEnv)
		if err == nil || errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("Load(%s) = %v, want %q", path, err, want)
		}
	}
	_, err := Load(write(t, dir, "empty.yaml", "# nothing\n"), testEnv)
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "the configuration is empty") {
		t.Errorf("Load = %v", err)
	}
}

// TestRelativePaths starts each path at the directory of the file it is in.
func TestRelativePaths(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "sub/x.yaml", shopSource+"data_dir: ../d\nserver: { tls: { cert: c.pem, key: /k.pem } }\n")
	cfg, err := Load(filepath.Join(dir, "sub", "x.yaml"), testEnv)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.DataDir != filepath.Join(dir, "d") || cfg.Server.TLSCert != filepath.Join(dir, "sub", "c.pem") || cfg.Server.TLSKey != "/k.pem" {
		t.Errorf("paths are %q %q %q", cfg.DataDir, cfg.Server.TLSCert, cfg.Server.TLSKey)
	}
	if got, want := cfg.SocketPath(), filepath.Join(dir, "d", "tailwater.sock"); got != want {
		t.Errorf("socket is %q, want %q", got, want)
	}
}

func TestReferences(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "secret", "hunter2\n\n")
	write(t, dir, "open", "x\r\n")
	if err := os.Chmod(filepath.Join(dir, "open"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := &resolver{dir: dir, env: env(map[string]string{"A": "a", "EMPTY": "", "YAML": "{x: [1", "NESTED": "${A}"})}
	for _, tt := range []struct{ in, want, err string }{
		{"plain", "plain", ""},
		{"${A}", "a", ""},
		{"x${A}y${A}z", "xayaz", ""},
		{"${EMPTY}", "", ""},
		{"${NO:-d}", "d", ""},
		{"${EMPTY:-d}", "d", ""},
		{"${A:-d}", "a", ""},
		{"${NO:-}", "", ""},
		{"${NO:-a:-b}", "a:-b", ""},
		{"${YAML}", "{x: [1", ""},
		{"${NESTED}", "${A}", ""},
		{"$${A}", "${A}", ""},
		{"$$${A}", "$${A}", ""},
		{"cost $5 $ $$ $A", "cost $5 $ $$ $A", ""},
		{"${file:secret}", "hunter2\n", ""},
		{"${file:" + dir + "/secret}", "hunter2\n", ""},
		{"${file:open}", "x", ""},
		{"${NO}", "", "NO is not set"},
		{"${A", "", "without its }"},
		{"${}", "", "is not a reference"},
		{"${1A}", "", "is not a reference"},
		{"${A-B}", "", "is not a reference"},
		{"${A${A}}", "", "a reference inside a reference"},
		{"${NO:-${A}}", "", "a reference inside a reference"},
		{"${file:nothing}", "", "no such file"},
		{"${file:.}", "", "not a regular file"},
	} {
		got, err := r.resolve(tt.in)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("resolve(%q) = %q, %v; want %q, %q", tt.in, got, err, tt.want, tt.err)
		}
	}
	if len(r.worldReadable) != 1 || r.worldReadable[0] != "open" {
		t.Errorf("world readable: %v", r.worldReadable)
	}
}

// TestReferencesTakeTheFieldsType gives numbers, durations and booleans by
// reference; a value never becomes YAML.
func TestReferencesTakeTheFieldsType(t *testing.T) {
	vars := env(map[string]string{
		"SHOP_DSN": "postgres://u@localhost/x", "N": "77", "D": "5m", "B": "true", "S": "3GiB", "W": "a = 'b' # c: {d", "I": "idx",
	})
	cfg, err := Parse("t.yaml", "/", `
sources: { shop: { postgres: { dsn: "${SHOP_DSN}", tables: [public.*], discover: "${D}", snapshot: { chunk_rows: "${N}" } } } }
views: { v: { from: shop.public.v, where: "${W}", nest: { a: { has_many: as, limit: "${N}" } }, to: { s: { index: "${I}", mapping: { f: { type: text, ignore_above: "${N}" } } } } } }
sinks: { s: { elasticsearch: { url: "http://127.0.0.1:9200" } } }
log: { quota: "${S}" }
server: { insecure_no_auth: "${B}" }
`, vars)
	if err != nil {
		t.Fatal(err)
	}
	v, s := cfg.View("v"), cfg.Source("shop")
	if s.Snapshot.ChunkRows != 77 || s.Discover != 5*time.Minute || cfg.Log.Quota != 3<<30 || !cfg.Server.InsecureNoAuth {
		t.Errorf("%s", dump(cfg))
	}
	if v.Where.Text != "a = 'b' # c: {d" || v.Nest[0].Limit != 77 || v.To[0].Index != "idx" || v.To[0].Mapping[0].Params["ignore_above"] != "77" {
		t.Errorf("%s", dump(cfg))
	}
	if !strings.Contains(v.Definition(), "${W}") || !strings.Contains(v.To[0].Definition(), "${I}") {
		t.Errorf("definitions are resolved: %s %s", v.Definition(), v.To[0].Definition())
	}
	if p := v.Where.At(3); p.Col != v.Where.Pos.Col {
		t.Errorf("a referenced expression maps into the file: %s", p)
	}
}

// TestLocate finds the daemon in a file that Load refuses.
func TestLocate(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "t.yaml", "data_dir: d\nsources: { shop: { postgres: { dsn: \"${MISSING}\" } } }\nviewz: {}\nserver: { listen: \"0.0.0.0:7171\", insecure_plaintext: true, token: \"${T}\" }\n")
	if _, err := Load(path, testEnv); !errors.Is(err, ErrInvalid) {
		t.Errorf("Load = %v", err)
	}
	cfg, err := Locate(path, env(map[string]string{"T": "secret"}))
	if err != nil || cfg.DataDir != filepath.Join(dir, "d") || cfg.Server.Token.Reveal() != "secret" || cfg.Server.Listen != "0.0.0.0:7171" {
		t.Errorf("Locate = %+v, %v", cfg, err)
	}
	if cfg, err := Locate(path, testEnv); err != nil || !cfg.Server.Token.IsZero() {
		t.Errorf("Locate without the token = %+v, %v; the socket needs none", cfg, err)
	}
	path = write(t, dir, "u.yaml", "data_dir: \"${MISSING}\"\n")
	if _, err := Locate(path, testEnv); !errors.Is(err, ErrInvalid) {
		t.Errorf("Locate without the data directory = %v", err)
	}
}

// TestLoadStopped needs no secret of a source, a sink or the server.
func TestLoadStopped(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "t.yaml", `data_dir: d
sources: { shop: { postgres: { dsn: "${MISSING}", tables: [a] } }, old: { mysql: { dsn: "${MISSING}" } }, odd: [1], none: }
sinks: { search: { opensearch: { url: "${MISSING}" } } }
log: { quota: 1GiB, topics: { "shop.*": { cleanup: none } } }
server: { token: "${MISSING}" }
`)
	cfg, err := LoadStopped(path, testEnv)
	if err != nil || cfg.DataDir != filepath.Join(dir, "d") || cfg.Log.Quota != 1<<30 || cfg.Log.Topic("shop.x").Cleanup != CleanupNone {
		t.Fatalf("LoadStopped = %+v, %v", cfg, err)
	}
	if s, o := cfg.Source("shop"), cfg.Source("old"); len(cfg.Sources) != 2 || s.Kind != Postgres || o.Kind != MySQL {
		t.Errorf("sources %+v", cfg.Sources)
	}
	path = write(t, dir, "u.yaml", "log: { quota: much }\n")
	if _, err := LoadStopped(path, testEnv); !errors.Is(err, ErrInvalid) {
		t.Errorf("LoadStopped of a wrong quota = %v", err)
	}
}
