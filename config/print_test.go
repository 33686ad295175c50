package config

import (
	"fmt"
	"testing"
)

// TestYAML prints a configuration, reads what was printed, and finds the same.
func TestYAML(t *testing.T) {
	cfg, err := Load("testdata/shop.yaml", testEnv)
	if err != nil {
		t.Fatal(err)
	}
	text := cfg.YAML()
	golden(t, "testdata/shop.yaml.golden", text)
	noSecret(t, text)
	again, err := Parse("again.yaml", "/", text, testEnv)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, v := range cfg.Views {
		w := again.View(v.Name)
		if w.Fingerprint() != v.Fingerprint() || w.Definition() != v.Definition() {
			t.Errorf("view %s changed:\n%s\n%s", v.Name, v.Definition(), w.Definition())
		}
		for _, x := range v.To {
			if got := w.Target(x.Sink).Fingerprint(); got != x.Fingerprint() {
				t.Errorf("target %s changed", x.Sink)
			}
		}
	}
}

func TestYAMLHidesSecrets(t *testing.T) {
	cfg := mustParse(t, `
sources: { shop: { postgres: { dsn: "postgres://u:hunter2@127.0.0.1/shop?password=hunter2", tables: [public.*] } } }
sinks: { s: { elasticsearch: { url: "http://127.0.0.1:9200", username: u, password: hunter2 } }, c: { redis: { addr: "redis://:hunter2@127.0.0.1" } } }
server: { token: hunter2 }
`)
	noSecret(t, cfg.YAML())
	for _, v := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		noSecret(t, sprintf(v, cfg.Server.Token))
		noSecret(t, sprintf(v, cfg.Sources[0].DSN))
	}
}

func sprintf(format string, args ...any) string { return fmt.Sprintf(format, args...) }
