package config

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// source is the text of one file, kept for excerpts.
type source struct {
	name   string   // as problems name it
	dir    string   // absolute; relative paths in the file start here
	lines  []string // without line ends
	secret map[int]bool
}

func newSource(name, dir, text string) *source {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	return &source{name: name, dir: dir, lines: lines, secret: secretLines(lines)}
}

var secretBlock = regexp.MustCompile(`(?i)^( *)(?:- +)*["']?(?:dsn|password|passwd|token|api_key|apikey|secret|hash)["']?\s*:\s*(?:[|>].*)?$`)

// secretLines finds the lines of block values of secret keys by indentation, so
// that they are masked also in a file that does not parse.
func secretLines(lines []string) map[int]bool {
	out := map[int]bool{}
	for i, line := range lines {
		m := secretBlock.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for j := i + 1; j < len(lines) && (strings.HasPrefix(lines[j], m[1]+" ") || strings.TrimSpace(lines[j]) == ""); j++ {
			out[j+1] = true
		}
	}
	return out
}

// maxExcerpt is how many characters of a line an excerpt shows.
const maxExcerpt = 160

// excerpt shows a line with the one before it and a mark below the column.
// Secrets are masked.
func (s *source) excerpt(line, col int) string {
	if s == nil || line < 1 || line > len(s.lines) {
		return ""
	}
	var b strings.Builder
	if line > 1 && strings.TrimSpace(s.lines[line-2]) != "" {
		fmt.Fprintf(&b, "%6d | %s\n", line-1, s.shown(line-1))
	}
	shown := s.shown(line)
	fmt.Fprintf(&b, "%6d | %s\n", line, shown)
	if n := utf8.RuneCountInString(shown); col >= 1 && col <= n {
		fmt.Fprintf(&b, "       | %s\n", mark(shown, col))
	}
	return b.String()
}

// shown is a line with tabs as one blank, secrets masked, and a bounded length.
func (s *source) shown(line int) string {
	text := maskLong(s.lines[line-1])
	if s.secret[line] && text == s.lines[line-1] {
		text = maskAll(text)
	}
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	if r := []rune(text); len(r) > maxExcerpt {
		text = string(r[:maxExcerpt]) + "…"
	}
	return text
}

// mark underlines the word that starts at col (from 1).
func mark(text string, col int) string {
	r := []rune(text)[col-1:]
	n := 0
	if r[0] == '"' || r[0] == '\'' {
		for n = 1; n < len(r) && r[n] != r[0]; n++ {
		}
		return strings.Repeat(" ", col-1) + strings.Repeat("^", min(n+1, len(r)))
	}
	for n < len(r) && !strings.ContainsRune(" \t,:{}[]#'\"", r[n]) {
		n++
	}
	return strings.Repeat(" ", col-1) + strings.Repeat("^", max(n, 1))
}

var (
	urlPassword = regexp.MustCompile(`(://[^:/@\s]*):(.*)@`)
	secretValue = regexp.MustCompile(`(?i)((?:password|passwd|token|secret|api_key|apikey|hash)["']?\s*:\s*)("[^"]*"?|'[^']*'?|[^\s,}#][^,}#]*)`)
	secretParam = regexp.MustCompile(`(?i)((?:password|passwd|token|secret)=)[^&\s"'}]+`)
	onlyRefs    = regexp.MustCompile(`^["']?\$\{[^}]*\}["']?\s*$`)
)

// maskLong is mask of a line that may be very long, of which it looks at the
// start only.
func maskLong(line string) string {
	const most = 4096
	if len(line) <= most {
		return mask(line)
	}
	return openPassword.ReplaceAllString(mask(strings.ToValidUTF8(line[:most], "")), "${1}:***")
}

// openPassword is a URL's user and what follows, whose end was cut off.
var openPassword = regexp.MustCompile(`(://[^:/@\s]*):[^@]*$`)

// mask hides what looks like a secret in a line of YAML; references stay.
func mask(line string) string {
	line = secretValue.ReplaceAllStringFunc(line, func(m string) string {
		parts := secretValue.FindStringSubmatch(m)
		if onlyRefs.MatchString(parts[2]) || strings.HasPrefix(strings.TrimLeft(parts[2], `"'`), "${") || parts[2][0] == '{' {
			return m
		}
		return parts[1] + "***"
	})
	line = secretParam.ReplaceAllString(line, "${1}***")
	return urlPassword.ReplaceAllString(line, "${1}:***@")
}

// maskAll hides a whole line of a secret's block scalar, keeping references.
func maskAll(line string) string {
	body := strings.TrimLeft(line, " ")
	indent := line[:len(line)-len(body)]
	if i := strings.Index(body, ": "); i >= 0 {
		indent, body = indent+body[:i+2], body[i+2:]
	}
	if onlyRefs.MatchString(body) {
		return line
	}
	return indent + "***"
}
