package daemon

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/eventlog"
)

// keyPartitions returns the partitions in which the query's key can be; nil
// where that cannot be told: no key, no table, or a kind of key that is not read from text.
func (r *recordRun) keyPartitions(t eventlog.Topic) ([]int32, error) {
	if r.q.Key == "" || r.p.sourceOf(t.Spec.Name) == "" {
		return nil, nil
	}
	if r.p.schemas == nil {
		if err := r.p.readSchemas(); err != nil {
			return nil, err
		}
	}
	parts, ok := splitID(r.q.Key)
	if !ok {
		return nil, nil
	}
	var found []int32
	for _, s := range r.p.schemas[t.Spec.Name] { // the key may have had other types before
		if len(s.Key) != len(parts) {
			continue
		}
		key, ok := keyOf(s, parts)
		if !ok {
			return nil, nil
		}
		if id, err := change.DocumentID(key); err != nil || id != r.q.Key {
			return nil, nil // written otherwise than it is printed
		}
		if p := eventlog.PartitionOf(key, t.Spec.Partitions); !slices.Contains(found, p) {
			found = append(found, p)
		}
	}
	return found, nil
}

// splitID takes a document's id apart; false for one that ends in a hash.
func splitID(id string) (parts []string, ok bool) {
	if hashed.MatchString(id) {
		return nil, false
	}
	var b strings.Builder
	for i := 0; i < len(id); i++ {
		switch c := id[i]; {
		case c == '|':
			parts = append(parts, b.String())
			b.Reset()
		case c == '\\' && i+1 < len(id):
			if i++; id[i] != 'e' { // \e is an empty part
				b.WriteByte(id[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return append(parts, b.String()), true
}

var (
	hashed = regexp.MustCompile(`~[0-9a-f]{64}$`)
	number = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)
)

// keyOf makes a key of the kinds of a layout; false where a part is of a kind that is not read from text.
func keyOf(s *change.Schema, parts []string) (change.Key, bool) {
	var key change.Key
	for i, text := range parts {
		c := &s.Columns[s.Key[i]]
		var v change.Value
		switch c.Kind {
		case change.KindText:
			v = change.Text(text)
		case change.KindBool:
			v = change.Bool(text == "true")
		case change.KindInt, change.KindUint, change.KindDecimal, change.KindFloat32, change.KindFloat64:
			if !number.MatchString(text) {
				return nil, false
			}
			v = change.Decimal([]byte(text)) // numbers of all kinds are written alike
		case change.KindUUID:
			var ok bool
			if v, ok = uuidOf(text); !ok {
				return nil, false
			}
		default:
			return nil, false
		}
		key = change.AppendKeyPart(key, v, false) // folded keys are printed folded
	}
	return key, true
}

func uuidOf(text string) (change.Value, bool) {
	digits := strings.ReplaceAll(text, "-", "")
	var u [16]byte
	if len(digits) != 32 {
		return change.Value{}, false
	}
	for i := range u {
		hi, lo := strings.IndexByte(hexDigits, digits[2*i]), strings.IndexByte(hexDigits, digits[2*i+1])
		if hi < 0 || lo < 0 {
			return change.Value{}, false
		}
		u[i] = byte(hi<<4 | lo)
	}
	return change.UUID(u), true
}

const hexDigits = "0123456789abcdef"
