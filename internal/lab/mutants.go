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
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tailwater/tailwater/internal/testkit"
)

// mutant is a protection taken out of the code, and the tests that must notice.
type mutant struct {
	name  string
	file  string // from the module's root
	old   string // occurs there exactly once
	new   string
	pkg   string // of the tests
	tests string // names, separated by |
}

// mutantTimeout ends a test that a mutant lets hang: it failed.
const mutantTimeout = 2 * time.Minute

// mutants builds each mutant beside the tree and runs its tests, which must
// fail. Without any mutant all of them must pass, else their failing says nothing.
func mutants(args []string) error {
	f := flag.NewFlagSet("mutants", flag.ExitOnError)
	run := f.String("run", "", "only mutants whose names match this expression")
	f.Parse(args)
	pattern, err := regexp.Compile(*run)
	if err != nil {
		return err
	}
	root, err := testkit.ModuleRoot()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tailwater-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	chosen := slices.DeleteFunc(slices.Concat(logMutants, cleanMutants), func(m mutant) bool { return !pattern.MatchString(m.name) })
	if len(chosen) == 0 {
		return fmt.Errorf("no mutant matches %q", *run)
	}
	lab := mutantLab{root, dir}
	if err := lab.healthy(chosen); err != nil {
		return err
	}
	survived, stale := 0, 0
	for _, m := range chosen {
		killed, err := lab.kills(m)
		switch {
		case err != nil:
			fmt.Printf("mutant %s STALE: %v\n", m.name, err)
			stale++
		case killed:
			fmt.Printf("mutant %s killed\n", m.name)
		default:
			fmt.Printf("mutant %s SURVIVED: %s passes without it\n", m.name, m.tests)
			survived++
		}
	}
	fmt.Printf("mutants rounds=%d killed=%d survived=%d stale=%d\n", len(chosen), len(chosen)-survived-stale, survived, stale)
	if survived+stale > 0 {
		return errors.New("not every mutant was killed")
	}
	return nil
}

type mutantLab struct{ root, dir string }

// healthy runs the tests of all mutants on the code as it is.
func (l mutantLab) healthy(all []mutant) error {
	tests := map[string][]string{}
	for _, m := range all {
		tests[m.pkg] = append(tests[m.pkg], strings.Split(m.tests, "|")...)
	}
	for pkg, names := range tests {
		slices.Sort(names)
		names = slices.Compact(names)
		bin, err := l.build(pkg, "")
		if err != nil {
			return err
		}
		out, err := l.runTests(bin, pkg, names)
		if err != nil {
			return fmt.Errorf("%s fails without any mutant: %w\n%s", pkg, err, out)
		}
		for _, name := range names {
			if !bytes.Contains(out, []byte("--- PASS: "+name+" ")) {
				return fmt.Errorf("%s has no test %s", pkg, name)
			}
		}
	}
	return nil
}

// kills reports whether a mutant's tests fail. An error means that there is no such mutant any more.
func (l mutantLab) kills(m mutant) (bool, error) {
	path := filepath.Join(l.root, filepath.FromSlash(m.file))
	text, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		return false, fmt.Errorf("%s has its text %d times", m.file, n)
	}
	mutated := filepath.Join(l.dir, "mutant.go")
	if err := os.WriteFile(mutated, []byte(strings.Replace(string(text), m.old, m.new, 1)), 0o600); err != nil {
		return false, err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: mutated}})
	if err != nil {
		return false, err
	}
	file := filepath.Join(l.dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return false, err
	}
	bin, err := l.build(m.pkg, file)
	if err != nil {
		return false, err
	}
	_, err = l.runTests(bin, m.pkg, strings.Split(m.tests, "|"))
	return err != nil, nil
}

// build compiles a package's tests.
func (l mutantLab) build(pkg, overlay string) (string, error) {
	bin := filepath.Join(l.dir, "mutant.test")
	args := []string{"test", "-c", "-vet=off", "-o", bin}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.Command("go", append(args, "./"+pkg)...)
	cmd.Dir = l.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the tests of %s: %w\n%s", pkg, err, out)
	}
	return bin, nil
}

func (l mutantLab) runTests(bin, pkg string, names []string) ([]byte, error) {
	cmd := exec.Command(bin, "-test.v", "-test.timeout", mutantTimeout.String(), "-test.run", "^("+strings.Join(names, "|")+")$")
	cmd.Dir = filepath.Join(l.root, filepath.FromSlash(pkg))
	return cmd.CombinedOutput()
}
