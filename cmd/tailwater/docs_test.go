package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestReference finds every command and flag in docs/cli.md.
func TestReference(t *testing.T) {
	data, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(data)), " ")
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Name() == "help" || c.Name() == "completion" {
			return
		}
		if c.Runnable() && !c.HasSubCommands() && !strings.Contains(text, "`"+c.CommandPath()) {
			t.Errorf("docs/cli.md lacks %s", c.CommandPath())
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !strings.Contains(text, "`--"+f.Name) {
				t.Errorf("docs/cli.md lacks --%s of %s", f.Name, c.CommandPath())
			}
		})
		if c.Short == "" {
			t.Errorf("%s has no short text", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk((&program{}).root())
}
