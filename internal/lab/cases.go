package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailwater/tailwater/internal/testkit"
)

// caseRow is a line of testdata/cases.tsv: kind, id, package, test, and what it
// shows; several tests of one id stand on lines of their own.
type caseRow struct {
	kind, id, pkg, test, shows string
}

// required lists the ids that a kind must have.
var required = map[string][]string{
	"correctness": {"V1", "V2", "V4", "V5", "V9", "V11", "V13", "V15", "V16", "V17", "V18", "V19", "V20", "V21", "V22", "V23", "V24", "V29", "V30", "V31", "V32"},
	"log": {
		"V17", "V18", "V19", "V20", "V21", "V22", "V23", "B082", "B083", "B085", "B086", "B088", "B089",
		"F3.4.1", "F3.4.2", "F3.4.3", "F3.4.4", "F3.4.5", "F3.4.6", "F3.4.7", "AT-01", "AT-06", "AT-07", "AT-08", "AT-31",
	},
}

// cases runs the tests of all rows of a kind; a missing row, a missing test, a
// skipped test and a failed one are faults.
func cases(args []string) error {
	f := flag.NewFlagSet("cases", flag.ExitOnError)
	kind := f.String("kind", "correctness", "rows to run")
	f.Parse(args)
	root, err := testkit.ModuleRoot()
	if err != nil {
		return err
	}
	rows, err := readCases(filepath.Join(root, "testdata", "cases.tsv"), *kind)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return fmt.Errorf("testdata/cases.tsv has no rows of kind %q", *kind)
	}
	faults := missingRows(*kind, rows)
	byPackage := map[string][]string{}
	for _, r := range rows {
		parent, _, _ := strings.Cut(r.test, "/") // a subtest runs with its test
		byPackage[r.pkg] = append(byPackage[r.pkg], parent)
	}
	results := map[string]string{} // package/test to pass, fail or skip
	for pkg, tests := range byPackage {
		if err := runTests(root, pkg, tests, results); err != nil {
			return err
		}
	}
	for _, r := range rows {
		got := results[r.pkg+"/"+r.test]
		if got == "" {
			got = "missing"
		}
		fmt.Printf("%s %s %s.%s\n", r.id, got, r.pkg, r.test)
		if got != "pass" {
			faults++
		}
	}
	fmt.Printf("cases kind=%s rows=%d faults=%d\n", *kind, len(rows), faults)
	if faults > 0 {
		return errors.New("not every case holds")
	}
	return nil
}

func missingRows(kind string, rows []caseRow) int {
	missing := 0
	for _, id := range required[kind] {
		if !slices.ContainsFunc(rows, func(r caseRow) bool { return r.id == id }) {
			fmt.Printf("%s has no row\n", id)
			missing++
		}
	}
	return missing
}

func readCases(name, kind string) ([]caseRow, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var rows []caseRow
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 5 {
			return nil, fmt.Errorf("%s:%d: %d fields, want kind, id, package, test, what it shows", name, i+1, len(f))
		}
		if f[0] == kind {
			rows = append(rows, caseRow{f[0], f[1], f[2], f[3], f[4]})
		}
	}
	return rows, nil
}

// runTests runs the named tests of one package and notes how each ended.
func runTests(root, pkg string, tests []string, results map[string]string) error {
	slices.Sort(tests)
	pattern := "^(" + strings.Join(slices.Compact(tests), "|") + ")$"
	cmd := exec.Command("go", "test", "-json", "-count=1", "-timeout", "10m", "-run", pattern, "./"+pkg)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "TAILWATER_TEST_REQUIRED=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("go test %s: %w", pkg, err)
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	for dec.More() {
		var e struct{ Action, Test, Output string }
		if err := dec.Decode(&e); err != nil {
			return fmt.Errorf("go test %s: %w: %s", pkg, err, stderr.String())
		}
		switch e.Action {
		case "pass", "fail", "skip":
			results[pkg+"/"+e.Test] = e.Action
		}
	}
	return nil
}
