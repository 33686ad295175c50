package config

import (
	"strings"

	"github.com/goccy/go-yaml"
)

// YAML is the configuration as it was read, the files of a directory merged:
// comments gone, references unresolved, secrets masked.
func (c *Config) YAML() string {
	if c.root == nil {
		return ""
	}
	text, err := yaml.MarshalWithOptions(plain(c.root, false), yaml.Indent(2), yaml.IndentSequence(true))
	if err != nil {
		panic("config: a tree is no YAML: " + err.Error()) // it is made of maps, lists and texts
	}
	return string(text)
}

// plain is a tree for the YAML encoder.
func plain(n *node, secret bool) any {
	switch n.kind {
	case mapNode:
		out := yaml.MapSlice{}
		for _, e := range n.entries {
			out = append(out, yaml.MapItem{Key: e.key, Value: plain(e.value, secretKey(e.key))})
		}
		return out
	case listNode:
		out := []any{}
		for _, it := range n.items {
			out = append(out, plain(it, secret))
		}
		return out
	case scalarNode:
		return plainScalar(n, secret)
	}
	return nil
}

// raw is a scalar that needs no quotes where it stood without.
type raw string

func (r raw) MarshalYAML() ([]byte, error) { return []byte(r), nil }

func plainScalar(n *node, secret bool) any {
	text := n.text
	switch {
	case secret && !onlyRefs.MatchString(text) && !strings.Contains(text, "://"):
		return "***"
	case strings.Contains(text, "://"):
		text = secretParam.ReplaceAllString(urlPassword.ReplaceAllString(text, "${1}:***@"), "${1}***")
	}
	if !n.quoted && n.inset >= 0 && (decimalNumber.MatchString(text) || text == "true" || text == "false" || isWhole(text)) {
		return raw(text)
	}
	return text
}

func isWhole(text string) bool {
	text = strings.TrimPrefix(text, "-")
	for i := range len(text) {
		if !isDigit(text[i]) {
			return false
		}
	}
	return text != ""
}
