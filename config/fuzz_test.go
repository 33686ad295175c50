package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// FuzzParse wants no panic, a bounded time, and each problem in the text.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/errors/*.yaml")
	for _, name := range append(files, "testdata/shop.yaml") {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	for _, text := range hostile() {
		f.Add(text)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		cfg, err := Parse("f.yaml", dir, text, testEnv)
		if (cfg == nil) == (err == nil) {
			t.Fatalf("Parse = %v, %v", cfg, err)
		}
		if err == nil {
			for _, v := range cfg.Views {
				_ = v.Fingerprint()
			}
			return
		}
		lines := strings.Count(text, "\n") + 1
		for _, p := range err.(Problems) {
			if p.Line > lines || p.Message == "" {
				t.Fatalf("problem outside the text: %+v", p)
			}
		}
		if !strings.Contains(text, "ter2") {
			noSecret(t, err.Error()) // it can only come from the environment
		}
	})
}

// FuzzMeasures wants sizes and durations that print to themselves.
func FuzzMeasures(f *testing.F) {
	for _, s := range []string{"200GiB", "1.5MB", "512B", "24h", "7d", "1h30m", "0s", "9999999999999999999999d", ".5s", "1..5s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if v, err := ParseSize(text); err == nil {
			if again, err := ParseSize(v.String()); v < 0 || err != nil || again != v {
				t.Errorf("ParseSize(%q) = %d, prints as %s", text, v, v)
			}
		}
		if v, err := ParseDuration(text); err == nil {
			if again, err := ParseDuration(v.String()); v < 0 || err != nil || again != v {
				t.Errorf("ParseDuration(%q) = %d, prints as %s", text, v, v)
			}
		}
	})
}

// hostile are inputs that have brought YAML readers down.
func hostile() []string {
	laughs := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c <= 'j'; c++ {
		prev := string(c - 1)
		laughs += string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+prev+", ", 9), ", ") + "]\n"
	}
	return []string{
		"", "# only a comment\n", "---\n", "---\n---\n", "\ufeffsources: {}\n", "\xff\xfea\x00", "a\x00b: c", "sources: {}\r\nviews: {}\r\n",
		laughs, "a: &a\n  b: *a\n",
		strings.Repeat("[", 10000), strings.Repeat("{a: ", 10000), strings.Repeat("- ", 10000), strings.Repeat("? ", 10000), strings.Repeat("!a ", 10000),
		"0: [:!00 \xef", "a: 0: b", "? - a", ": :", "!!binary |", "!!python/object:x {}", "a: !!float x", "a: !!set {? b}", "'", "\"", "\"\\x", "a: |9\n x", "a: >-", "%YAML 9\n---", "&", "*", "- &a\n- *a", "a: .inf\nb: .nan\nc: 1_0\nd: 0o7\ne: -0\n",
		"sources:\n" + strings.Repeat("  ", 5000) + "a: b\n",
	}
}

// TestHostile wants each of them refused or read at once.
func TestHostile(t *testing.T) {
	inputs := append(hostile(), strings.Repeat("a", maxFile+1), "a: \""+strings.Repeat("x", maxFile-10)+"\"", strings.Repeat("a: b\n", 100000), deepBlock(5000),
		"a: ["+strings.Repeat("x,", 24000)+"]", "a: {"+strings.Repeat("x,", 24000)+"}", strings.Repeat("? a\n", 12000), strings.Repeat("a:\n - b:\n", 4900))
	for i, text := range inputs {
		start := time.Now()
		cfg, err := Parse("h.yaml", t.TempDir(), text, testEnv)
		if (cfg == nil) == (err == nil) {
			t.Errorf("input %d: Parse = %v, %v", i, cfg, err)
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("input %d, %d bytes, took %s", i, len(text), took)
		}
	}
}

func deepBlock(n int) string {
	var b strings.Builder
	for i := range n {
		if b.Len() > maxFile/2 {
			break
		}
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}
