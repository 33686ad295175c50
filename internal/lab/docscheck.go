package main

import (
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

// docsCheck runs each block of README and docs in an empty directory: sh blocks
// as scripts with the tailwater binary in the PATH, yaml blocks through
// `tailwater check`. A page's blocks share one directory, so that a later block
// may use an earlier one's files. A block marked ```sh skip: REASON is only printed.
func docsCheck(args []string) error {
	f := flag.NewFlagSet("docs-check", flag.ExitOnError)
	only := f.String("only", "", "pages whose name contains this")
	f.Parse(args)
	root, err := testkit.ModuleRoot()
	if err != nil {
		return err
	}
	pages, _ := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	more, _ := filepath.Glob(filepath.Join(root, "examples", "*", "README.md"))
	pages = append(append([]string{filepath.Join(root, "README.md")}, pages...), more...)
	ran, skipped, faults := 0, 0, 0
	for _, page := range pages {
		if !strings.Contains(page, *only) {
			continue
		}
		r, s, bad, err := checkPage(root, page)
		if err != nil {
			return err
		}
		ran, skipped, faults = ran+r, skipped+s, faults+bad
	}
	fmt.Printf("docs-check blocks=%d skipped=%d faults=%d\n", ran, skipped, faults)
	if faults > 0 {
		return errors.New("not every block runs")
	}
	return nil
}

func checkPage(root, page string) (ran, skipped, faults int, err error) {
	blocks, err := readBlocks(page)
	if err != nil {
		return 0, 0, 0, err
	}
	dir, err := os.MkdirTemp("", "tailwater-docs-")
	if err != nil {
		return 0, 0, 0, err
	}
	defer os.RemoveAll(dir)
	name, _ := filepath.Rel(root, page)
	for _, b := range blocks {
		if reason, skip := strings.CutPrefix(b.attr, "skip:"); skip {
			fmt.Printf("%s:%d skipped:%s\n", name, b.line, reason)
			skipped++
			continue
		}
		ran++
		if out, err := runBlock(root, dir, b); err != nil {
			fmt.Printf("%s:%d %v\n%s\n", name, b.line, err, indent(out))
			faults++
		} else {
			fmt.Printf("%s:%d ok\n", name, b.line)
		}
	}
	return ran, skipped, faults, nil
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

func runBlock(root, dir string, b block) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var cmd *exec.Cmd
	if b.lang == "yaml" {
		name := filepath.Join(dir, "tailwater.yaml")
		if err := os.WriteFile(name, []byte(b.text), 0o600); err != nil {
			return "", err
		}
		cmd = exec.CommandContext(ctx, filepath.Join(root, "bin", "tailwater"), "check", "-c", name)
	} else {
		cmd = exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", b.text)
	}
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"), "TAILWATER_ROOT="+root,
		"SHOP_DSN="+os.Getenv("TAILWATER_TEST_POSTGRES15"), "ES_URL="+os.Getenv("TAILWATER_TEST_OPENSEARCH"), "REDIS_ADDR="+strings.TrimPrefix(os.Getenv("TAILWATER_TEST_REDIS"), "redis://"))
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func indent(s string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n    ")
}
