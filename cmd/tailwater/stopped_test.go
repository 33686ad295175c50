package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tailwater/tailwater/server"
)

// TestStoppedNeedsNoSecrets: commands that connect to nothing work where no variable of the configuration is set.
func TestStoppedNeedsNoSecrets(t *testing.T) {
	c := newCLI(t)
	c.deps = wire()
	f := fillLog(t, c)
	c.write("tailwater.yaml", testConfig+"server: { listen: \"0.0.0.0:7171\", token: \"${TW_TOKEN}\" }\n")
	delete(c.env, "SHOP_DSN")
	for args, want := range map[string]string{
		"log topics": "shop.public.orders", "log stats": "shop.public.orders", "log check": "ok: ", "log dump shop.public.orders": "crc ok",
		"log cat shop.public.orders --json": `"source":{"name":"shop","kind":"postgres",`, "log tail shop.public.orders": `"amount":9`, "dlq list": "",
	} {
		if r := c.run(strings.Fields(args)...); r.code != exitDone || !strings.Contains(r.stdout, want) {
			t.Errorf("%s: exit code %d\n%s%s", args, r.code, r.stdout, r.stderr)
		}
	}
	c.closeLog(f)
	c.run("log", "compact", "shop.public.products").want(t, exitDone, "shop.public.products: ", "")
	c.run("check").want(t, exitMisuse, "", "SHOP_DSN is not set")
}

// closeLog ends the fixture's writing and makes its directory a whole data directory.
func (c *cli) closeLog(f *fixture) {
	c.t.Helper()
	f.must(f.log.Close())
	f.must(os.WriteFile(filepath.Join(c.dir, "data", "FORMAT"), []byte("tailwater data directory, format 1\n"), 0o600))
}

// TestCompactGlob: a glob takes the topics that are compacted; one that is not is an error only by its own name.
func TestCompactGlob(t *testing.T) {
	c := newCLI(t)
	c.deps = wire()
	f := fillLog(t, c)
	for _, mode := range []string{"live", "stopped"} {
		if mode == "stopped" {
			c = &cli{t: t, dir: c.dir, env: c.env, deps: c.deps}
			c.closeLog(f)
			if err := os.Remove(filepath.Join(c.dir, "data", "tailwater.sock")); err != nil {
				t.Fatal(err)
			}
		} else {
			c.serve(newLive(f))
		}
		r := c.run("log", "compact", "*")
		if r.code != exitDone || strings.Count(r.stdout, "\n") != 2 || !strings.Contains(r.stdout, "shop.public.products: ") || !strings.Contains(r.stdout, "view.products: ") || r.stderr != "" {
			t.Errorf("%s: compact *: exit code %d\n%s%s", mode, r.code, r.stdout, r.stderr)
		}
		c.run("log", "compact", "_*").want(t, exitDone, "", `none of the topics that "_*" matches is kept by compaction`)
		c.run("log", "compact", "shop.public.o*").want(t, exitDone, "", "nothing was done")
		c.run("log", "compact", "_tx").want(t, exitMisuse, "", `topic "_tx" is kept by cleanup delete`)
	}
}

// letters is a data directory with a dead letter of one sink.
type letters struct{ offlineFake }

func (l *letters) Records(_ context.Context, q server.RecordQuery, fn func([]byte) error) error {
	if q.Topic != "_dlq.*" && q.Topic != "_dlq.my-2dsink" {
		return server.ErrNotFound
	}
	return fn([]byte(`{"topic":"_dlq.my-2dsink","csn":1,"op":"insert","key":["orders","7"],"after":{"reason":"too long"}}`))
}

// TestDeadLettersOfASink: sinks are named as in the configuration, not as in the log.
func TestDeadLettersOfASink(t *testing.T) {
	c := newCLI(t)
	c.deps.offline = func(*cfgType) (store, error) { return &letters{}, nil }
	c.run("dlq", "list", "my-sink", "--json").want(t, exitDone, `{"sink":"my-sink","csn":1,`, "")
	c.run("dlq", "list").want(t, exitDone, "my-sink  ", "")
	c.run("dlq", "list", "other").want(t, exitDone, "", "no document stands rejected")
}

// TestHelpTellsNoEmptyDefault looks at the flags of all commands.
func TestHelpTellsNoEmptyDefault(t *testing.T) {
	c := newCLI(t)
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		r := c.run(args...)
		if r.code != exitDone || strings.Contains(r.stdout, "(default )") || strings.Contains(r.stdout, `(default "")`) {
			t.Errorf("%s: exit code %d\n%s", cmd.CommandPath(), r.code, r.stdout)
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit((&program{}).root())
}
