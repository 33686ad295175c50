package change

import (
	"fmt"
	"strings"
)

// Control topics, and the prefixes of those that exist once a source, view or sink.
const (
	TopicSchemas     = "_schemas"
	TopicTx          = "_tx"
	TopicSnapshots   = "_snapshots." // and the source's name
	TopicMessages    = "_messages."
	TopicDeadLetters = "_dlq." // and the sink's name
	TopicView        = "view." // and the view's name
)

// TableTopic returns the topic of a table: SOURCE.SCHEMA.TABLE.
func TableTopic(source, schema, table string) string {
	return EscapeName(source) + "." + EscapeName(schema) + "." + EscapeName(table)
}

// EscapeName writes each byte outside [A-Za-z0-9_] as -hh, so that names are unambiguous and legal on Kafka.
func EscapeName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "-%02x", c)
		}
	}
	return b.String()
}

// UnescapeName is the inverse of EscapeName.
func UnescapeName(name string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] != '-' {
			b.WriteByte(name[i])
			continue
		}
		var c byte
		if i+2 >= len(name) {
			return "", fmt.Errorf("name %q: short escape at byte %d", name, i)
		}
		if _, err := fmt.Sscanf(name[i+1:i+3], "%02x", &c); err != nil {
			return "", fmt.Errorf("name %q: bad escape at byte %d", name, i)
		}
		b.WriteByte(c)
		i += 2
	}
	return b.String(), nil
}
