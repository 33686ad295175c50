package config

import (
	"os"
	"regexp"
	"sort"
	"strings"
	"testing"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestReference loads every block of the reference, and finds every key that
// the decoder knows in it.
func TestReference(t *testing.T) {
	text, err := os.ReadFile("../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	vars := func(name string) (string, bool) {
		if v, ok := testEnv(name); ok {
			return v, true
		}
		return "hunter2", true
	}
	blocks := yamlBlock.FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 5 {
		t.Fatalf("only %d blocks", len(blocks))
	}
	keys := map[string]bool{}
	for _, b := range blocks {
		d := &decoder{env: vars, file: "docs/config.md", keys: keys}
		if _, err := d.finish(d.parse("docs/config.md", t.TempDir(), b[1])); err != nil {
			t.Errorf("%v in:\n%s", err, b[1])
		}
	}
	delete(keys, "history") // said to be for later
	var missing []string
	for k := range keys {
		if !regexp.MustCompile("[`{ ,]" + regexp.QuoteMeta(k) + "[`:, }]").Match(text) {
			missing = append(missing, k)
		}
	}
	sort.Strings(missing)
	if len(keys) < 60 || len(missing) > 0 {
		t.Errorf("of %d keys the reference lacks: %s", len(keys), strings.Join(missing, ", "))
	}
}
