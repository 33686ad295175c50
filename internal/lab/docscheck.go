package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/tailwater/tailwater/internal/demo"
	"github.com/tailwater/tailwater/internal/testkit"
)

// block is a fenced block of a page.
type block struct {
	file string
	line int
	lang string
	attr string // behind the language: "skip: reason"
	text string
}

// docsCheck runs each block of README and docs: a page's sh blocks in one shell
// in an empty directory, with the tailwater binary in the PATH and, as SHOP_DSN,
// a database with a small shop; yaml blocks through `tailwater check`. A block
// marked ```sh skip: REASON is only printed.
func docsCheck(args []string) error {
	f := flag.NewFlagSet("docs-check", flag.ExitOnError)
	only := f.String("only", "", "pages whose name contains this")
	f.Parse(args)
	var ran, skipped, faults int
	err := testkit.Program("docs-check", os.Stderr, func(t testkit.T) {
		c := docsChecker{dsn: testkit.Postgres(t)}
		var err error
		if err = demo.Load(context.Background(), c.dsn, demo.LoadOptions{Seed: 1, Size: demo.Size{Products: 300}}); err == nil {
			if c.root, err = testkit.ModuleRoot(); err == nil {
				err = c.pages(*only)
			}
		}
		if err != nil {
			t.Fatalf("%v", err)
		}
		ran, skipped, faults = c.ran, c.skipped, c.faults
	})
	if err != nil {
		return err
	}
	fmt.Printf("docs-check blocks=%d skipped=%d faults=%d\n", ran, skipped, faults)
	if faults > 0 {
		return errors.New("not every block runs")
	}
	return nil
}

type docsChecker struct {
	root, dsn            string
	ran, skipped, faults int
}

func (c *docsChecker) pages(only string) error {
	list, _ := filepath.Glob(filepath.Join(c.root, "docs", "*.md"))
	more, _ := filepath.Glob(filepath.Join(c.root, "examples", "*", "README.md"))
	for _, page := range append(append([]string{filepath.Join(c.root, "README.md")}, list...), more...) {
		if strings.Contains(page, only) {
			if err := c.page(page); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *docsChecker) page(page string) error {
	blocks, err := readBlocks(page)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tailwater-docs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	name, _ := filepath.Rel(c.root, page)
	var shell []block
	for _, b := range blocks {
		reason, skip := strings.CutPrefix(b.attr, "skip:")
		switch {
		case skip:
			fmt.Printf("%s:%d skipped:%s\n", name, b.line, reason)
			c.skipped++
		case b.lang == "yaml":
			out, err := c.yaml(dir, b)
			c.report(name, b.line, out, err)
		default:
			shell = append(shell, b)
		}
	}
	if len(shell) > 0 {
		c.shell(name, dir, shell)
	}
	return nil
}

func (c *docsChecker) report(name string, line int, out string, err error) {
	c.ran++
	if err == nil {
		fmt.Printf("%s:%d ok\n", name, line)
		return
	}
	c.faults++
	fmt.Printf("%s:%d %v\n%s\n", name, line, err, indent(out))
}

// marker precedes each block's output.
const marker = "@@ block "

// shell runs blocks in one shell; the block that fails is the last one that began.
func (c *docsChecker) shell(name, dir string, blocks []block) {
	var script strings.Builder
	script.WriteString("trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n")
	for i, b := range blocks {
		fmt.Fprintf(&script, "echo '%s%d'\n%s\n", marker, i, b.text)
	}
	out, err := c.run(dir, exec.Command("bash", "-euo", "pipefail", "-c", script.String()), "SHOP_DSN="+c.dsn)
	parts := strings.Split(out, marker)
	for i, b := range blocks {
		switch {
		case i+1 < len(parts)-1 || err == nil:
			c.report(name, b.line, "", nil)
		case i+1 == len(parts)-1:
			c.report(name, b.line, parts[i+1], err)
		default:
			c.report(name, b.line, "", errors.New("not reached"))
		}
	}
}

func (c *docsChecker) yaml(dir string, b block) (string, error) {
	name := filepath.Join(dir, "checked.yaml")
	if err := os.WriteFile(name, []byte(complete(b.text)), 0o600); err != nil {
		return "", err
	}
	var env []string // the file is only read: any value does, but a DSN must look like one
	for _, m := range reference.FindAllStringSubmatch(b.text, -1) {
		env = append(env, m[1]+"=value")
	}
	env = append(env, "SHOP_DSN=postgres://app@db.example.org/shop", "ES_URL=https://search.example.org", "REDIS_ADDR=127.0.0.1:6379")
	return c.run(dir, exec.Command(filepath.Join(c.root, "bin", "tailwater"), "check", "-c", name), env...)
}

func (c *docsChecker) run(dir string, cmd *exec.Cmd, env ...string) (string, error) {
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "PATH="+filepath.Join(c.root, "bin")+":"+os.Getenv("PATH"), "TAILWATER_ROOT="+c.root), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return "", err
	}
	late := time.AfterFunc(5*time.Minute, func() { cmd.Process.Kill() })
	defer late.Stop()
	err := cmd.Wait()
	return out.String(), err
}

var fence = regexp.MustCompile("^```([a-z]+) ?(.*)$")

// readBlocks returns the sh and yaml blocks of a page.
func readBlocks(page string) ([]block, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, err
	}
	var blocks []block
	var open *block
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case open != nil && line == "```":
			if open.lang == "sh" || open.lang == "yaml" {
				blocks = append(blocks, *open)
			}
			open = nil
		case open != nil:
			open.text += line + "\n"
		default:
			if m := fence.FindStringSubmatch(line); m != nil {
				open = &block{file: page, line: i + 1, lang: m[1], attr: m[2]}
			} else if line == "```" {
				open = &block{file: page, line: i + 1}
			}
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%s:%d: the block has no end", page, open.line)
	}
	return blocks, nil
}

var reference = regexp.MustCompile(`[$][{]([A-Z][A-Z0-9_]*)[}]`)

// complete gives a block that shows only views or sinks the shop's source.
func complete(text string) string {
	if regexp.MustCompile(`(?m)^sources:`).MatchString(text) {
		return text
	}
	return "sources: { shop: { postgres: { dsn: \"${SHOP_DSN}\", tables: [public.*] } } }\n" + text
}

func indent(s string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n    ")
}
