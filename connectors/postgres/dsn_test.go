package postgres

import (
	"errors"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/connectors"
)

var errRewound = connectors.ErrRewound

func TestTLSPolicy(t *testing.T) {
	t.Setenv("PGSSLMODE", "")
	t.Setenv("PGHOST", "")
	for _, tt := range []struct {
		name, dsn string
		tls       TLS
		insecure  bool
		refused   bool
		verified  bool
	}{
		{name: "loopback", dsn: "postgres://u:p@127.0.0.1/d"},
		{name: "loopback off", dsn: "postgres://u:p@localhost/d?sslmode=disable"},
		{name: "socket", dsn: "postgres:///d?host=/tmp"},
		{name: "keywords", dsn: "host=localhost user=u dbname=d"},
		{name: "remote", dsn: "postgres://u:p@db.example/d", verified: true},
		{name: "remote keywords", dsn: "host=db.example user=u", verified: true},
		{name: "remote off", dsn: "postgres://u:p@db.example/d?sslmode=disable", refused: true},
		{name: "remote unverified", dsn: "postgres://u:p@db.example/d?sslmode=require", refused: true},
		{name: "remote unverified by option", dsn: "postgres://u:p@db.example/d", tls: TLS{Mode: "require"}, refused: true},
		{name: "one of two remote", dsn: "postgres://u:p@localhost,db.example/d?sslmode=prefer", refused: true},
		{name: "allowed", dsn: "postgres://u:p@db.example/d?sslmode=disable", insecure: true},
	} {
		cfg, err := connConfig(&Options{Source: "s", DSN: tt.dsn, TLS: tt.tls, InsecurePlaintext: tt.insecure})
		if (err != nil) != tt.refused {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if err != nil {
			if !errors.Is(err, connectors.ErrPrerequisite) {
				t.Errorf("%s: %v does not match ErrPrerequisite", tt.name, err)
			}
			continue
		}
		if tt.verified && (cfg.TLSConfig == nil || cfg.TLSConfig.InsecureSkipVerify || cfg.TLSConfig.ServerName != "db.example" || len(cfg.Fallbacks) != 0) {
			t.Errorf("%s: the server is not verified: %+v", tt.name, cfg.TLSConfig)
		}
	}
}

// TestNoSecretInErrors makes every kind of bad DSN and looks for its password.
func TestNoSecretInErrors(t *testing.T) {
	const secret = "s3cr%25t-Pw"
	for _, dsn := range []string{
		"postgres://u:" + secret + "@127.0.0.1:1/d",
		"postgres://u:" + secret + "@127.0.0.1:notaport/d",
		"postgres://u:" + secret + "@127.0.0.1:1/d?sslmode=nonsense",
		"postgres://u:" + secret + "#x@127.0.0.1:1/d",
		"postgres://u:" + secret + " x@127.0.0.1:1/d",
		"postgres://u:%zz" + secret + "@127.0.0.1:1/d",
		"host=127.0.0.1 port=1 password='" + secret + " x' user=u",
		"host=127.0.0.1 port=1 password='" + secret + " user=u",
		"host=127.0.0.1 port=abc password=" + secret,
		"mysql://u:" + secret + "@127.0.0.1:1/d",
		secret,
	} {
		_, err := connect(t.Context(), &Options{Source: "s", DSN: dsn}, false)
		if err == nil {
			t.Errorf("%q connects", dsn)
			continue
		}
		text := err.Error()
		for _, s := range []string{secret, "s3cr%t-Pw", "s3cr"} {
			if strings.Contains(text, s) {
				t.Errorf("%q: the error holds the password: %s", dsn, text)
			}
		}
		if strings.Contains(text, "\n") {
			t.Errorf("%q: the error has several lines: %q", dsn, text)
		}
		t.Log(text)
	}
}
