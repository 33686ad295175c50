package expr

import (
	"bytes"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/sqldriver"
)

// target is a type that CAST brings values to.
type target struct {
	name             string // canonical
	kind             change.Kind
	low, high        int64 // ints
	length           int   // text: characters kept; -1 all
	precision, scale int   // decimals; precision 0: any
}

var targets = map[string]target{
	"SMALLINT": {kind: change.KindInt, low: math.MinInt16, high: math.MaxInt16},
	"INTEGER":  {kind: change.KindInt, low: math.MinInt32, high: math.MaxInt32},
	"BIGINT":   {kind: change.KindInt, low: math.MinInt64, high: math.MaxInt64},
	"UNSIGNED": {kind: change.KindUint}, "DECIMAL": {kind: change.KindDecimal},
	"REAL": {kind: change.KindFloat32}, "DOUBLE PRECISION": {kind: change.KindFloat64},
	"TEXT": {kind: change.KindText, length: -1}, "VARCHAR": {kind: change.KindText, length: -1},
	"BOOLEAN": {kind: change.KindBool}, "DATE": {kind: change.KindDate}, "TIME": {kind: change.KindTime},
	"TIMESTAMP": {kind: change.KindTimestamp}, "TIMESTAMPTZ": {kind: change.KindTimestampTZ}, "UUID": {kind: change.KindUUID},
}

var typeAliases = map[string]string{
	"INT": "INTEGER", "INT4": "INTEGER", "INT2": "SMALLINT", "INT8": "BIGINT", "SIGNED": "BIGINT", "SIGNED INTEGER": "BIGINT",
	"BIGINT UNSIGNED": "UNSIGNED", "UNSIGNED INTEGER": "UNSIGNED", "NUMERIC": "DECIMAL", "DEC": "DECIMAL", "FLOAT4": "REAL",
	"FLOAT8": "DOUBLE PRECISION", "DOUBLE": "DOUBLE PRECISION", "FLOAT": "DOUBLE PRECISION", "CHARACTER VARYING": "VARCHAR",
	"CHAR": "VARCHAR", "CHARACTER": "VARCHAR", "STRING": "TEXT", "BOOL": "BOOLEAN", "DATETIME": "TIMESTAMP",
	"TIMESTAMP WITHOUT TIME ZONE": "TIMESTAMP", "TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ", "TIME WITHOUT TIME ZONE": "TIME",
}

func (c *compiler) target(t *sqldriver.Type) (target, *Error) {
	name := t.Name
	if a, ok := typeAliases[name]; ok {
		name = a
	}
	to, ok := targets[name]
	if !ok {
		return to, c.fail(t.Offset, "CAST has no type "+strings.ToLower(t.Name), "types: smallint integer bigint unsigned decimal(p,s) real double precision text varchar(n) boolean date time timestamp timestamptz uuid")
	}
	to.name = name
	switch n := len(t.Params); {
	case n == 0:
		return to, nil
	case name == "VARCHAR" && n == 1 && t.Params[0] > 0:
		to.length = t.Params[0]
		to.name += "(" + strconv.Itoa(to.length) + ")"
		return to, nil
	case name == "DECIMAL" && n <= 2 && t.Params[0] > 0 && t.Params[0] <= 1000 && t.Params[n-1] <= 1000:
		if to.precision = t.Params[0]; n == 2 {
			to.scale = t.Params[1]
		}
		to.name += "(" + strconv.Itoa(to.precision) + ", " + strconv.Itoa(to.scale) + ")"
		return to, nil
	}
	return to, c.fail(t.Offset, "the type "+strings.ToLower(t.Name)+" does not take this length", "for example decimal(10, 2) or varchar(20)")
}

// castable says which kinds go to a kind, besides text, NULL and the kind itself.
func castable(from, to change.Kind) bool {
	switch to {
	case change.KindInt, change.KindUint:
		return from.Numeric() || from == change.KindBool
	case change.KindDecimal, change.KindFloat32, change.KindFloat64:
		return from.Numeric()
	case change.KindText:
		return from != change.KindBytes
	case change.KindBool:
		return from == change.KindInt || from == change.KindUint
	case change.KindDate, change.KindTimestamp, change.KindTimestampTZ:
		return from == change.KindDate || from == change.KindTimestamp || from == change.KindTimestampTZ
	case change.KindTime:
		return from == change.KindTimestamp || from == change.KindTimestampTZ
	}
	return false
}

func (c *compiler) cast(t *sqldriver.Node, n *node) (*node, *Error) {
	to, err := c.target(&t.Type)
	if err != nil {
		return nil, err
	}
	if n.kind != to.kind && n.kind != change.KindText && n.kind != change.KindNull && !castable(n.kind, to.kind) {
		hint := ""
		if n.kind == change.KindJSON {
			hint = "take a value out of the json with ->> 'key' first"
		}
		return nil, c.fail(n.offset, "a "+n.describe()+" cannot become a "+strings.ToLower(to.name), hint)
	}
	text := "CAST(" + n.text + " AS " + to.name + ")"
	if n.literal && !n.value.IsNull() {
		v, ok := convert(&n.value, &to)
		if !ok {
			return nil, c.fail(n.offset, n.text+" is no "+strings.ToLower(to.name), "")
		}
		return constant(t.Offset, v, text), nil
	}
	n = trimmed(n)
	failed := c.fault(t.Offset, "a value cannot become a "+strings.ToLower(to.name))
	return foldLike(strict(t.Offset, to.kind, text, []*node{n}, func(v []change.Value) (change.Value, error) {
		w, ok := convert(&v[0], &to)
		if !ok {
			return failed()
		}
		return w, nil
	}), []*node{n}), nil
}

// convert brings a value to the target; ok is false if it has no place there.
func convert(v *change.Value, to *target) (w change.Value, ok bool) {
	switch to.kind {
	case change.KindInt, change.KindUint:
		return toInteger(v, to)
	case change.KindDecimal:
		return castDecimal(v, to)
	case change.KindFloat32, change.KindFloat64:
		return castFloat(v, to.kind)
	case change.KindText:
		b := v.Raw()
		if v.Kind() != change.KindText {
			b = change.AppendText(nil, *v)
		}
		if to.length >= 0 {
			b = characters(b, 0, int64(to.length))
		}
		return change.TextBytes(b), true
	case change.KindBool:
		return castBool(v)
	case change.KindDate, change.KindTimestamp, change.KindTimestampTZ, change.KindTime:
		if v.Kind() != change.KindText {
			return castDate(v, to.kind)
		}
	}
	if v.Kind() == to.kind {
		return *v, true
	}
	return readText(v.TextValue(), to.kind)
}

func toInteger(v *change.Value, to *target) (change.Value, bool) {
	var n *big.Int
	switch v.Kind() {
	case change.KindBool, change.KindInt:
		n = big.NewInt(v.Int64())
	case change.KindUint:
		n = new(big.Int).SetUint64(v.Uint64())
	case change.KindFloat32, change.KindFloat64:
		f := toFloat(v)
		if math.IsNaN(f) || math.Abs(f) > 1e20 {
			return change.Null, false
		}
		n, _ = big.NewFloat(math.RoundToEven(f)).Int(nil)
	case change.KindDecimal:
		d := toDecimal(v).rounded(0)
		if n = d.coef; d.form != finite {
			return change.Null, false
		}
	default:
		text := strings.TrimSpace(v.TextValue())
		var ok bool
		if n, ok = new(big.Int).SetString(text, 10); !ok || len(text) > 40 {
			return change.Null, false
		}
	}
	if to.kind == change.KindUint {
		return change.Uint(n.Uint64()), n.IsUint64()
	}
	if !n.IsInt64() || n.Int64() < to.low || n.Int64() > to.high {
		return change.Null, false
	}
	return change.Int(n.Int64()), true
}

// numeral checks that text is a number as parseDecimal reads it, and returns its canonical spelling.
func numeral(text []byte) ([]byte, bool) {
	s := bytes.TrimSpace(text)
	body := bytes.TrimLeft(s, "+-")
	switch strings.ToLower(string(body)) {
	case "nan":
		return []byte("NaN"), len(body) == len(s)
	case "inf", "infinity":
		if len(s) > 0 && s[0] == '-' {
			return []byte("-Infinity"), len(s)-len(body) == 1
		}
		return []byte("Infinity"), len(s)-len(body) <= 1
	}
	if len(s)-len(body) > 1 {
		return nil, false
	}
	v, ok := parseNumber(string(body))
	if !ok || !digitsOnly(body) {
		return nil, false
	}
	out := change.AppendText(nil, v)
	if s[0] == '-' && len(bytes.Trim(out, "0.")) > 0 {
		out = append([]byte{'-'}, out...)
	}
	return out, true
}

// digitsOnly checks digits[.digits][e[±]digits] with at least one digit before the exponent.
func digitsOnly(b []byte) bool {
	mantissa, exponent := b, []byte("0")
	if i := bytes.IndexAny(b, "eE"); i >= 0 {
		mantissa, exponent = b[:i], b[i+1:]
		if len(exponent) > 0 && (exponent[0] == '+' || exponent[0] == '-') {
			exponent = exponent[1:]
		}
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	for _, part := range [][]byte{whole, fraction, exponent} {
		for _, c := range part {
			if c < '0' || c > '9' {
				return false
			}
		}
	}
	return len(whole)+len(fraction) > 0 && len(exponent) > 0
}

func castDecimal(v *change.Value, to *target) (change.Value, bool) {
	text := v.Raw()
	switch {
	case v.Kind() == change.KindText:
		var ok bool
		if text, ok = numeral(text); !ok {
			return change.Null, false
		}
	case v.Kind() != change.KindDecimal:
		text = change.AppendText(nil, *v)
	}
	d := parseDecimal(text)
	if to.precision > 0 {
		if d.form == negInf || d.form == posInf {
			return change.Null, false
		}
		d = d.rounded(to.scale)
		if d.form == finite && d.coef.CmpAbs(pow10(to.precision)) >= 0 {
			return change.Null, false
		}
	}
	return d.value()
}

func castFloat(v *change.Value, kind change.Kind) (change.Value, bool) {
	text := v.Raw()
	switch {
	case v.Kind() == kind:
		return *v, true
	case v.Kind() == change.KindText:
		var ok bool
		if text, ok = numeral(text); !ok {
			return change.Null, false
		}
	case v.Kind() != change.KindDecimal:
		text = change.AppendText(nil, *v)
		if v.Kind() == change.KindFloat32 {
			return change.Float64(float64(v.Float32())), true
		}
	}
	bits := 64
	if kind == change.KindFloat32 {
		bits = 32
	}
	f, err := strconv.ParseFloat(string(text), bits)
	if kind == change.KindFloat32 {
		return change.Float32(float32(f)), err == nil
	}
	return change.Float64(f), err == nil
}

func castBool(v *change.Value) (change.Value, bool) {
	if v.Kind() != change.KindText {
		return change.Bool(v.Int64() != 0), true
	}
	switch strings.ToLower(strings.TrimSpace(v.TextValue())) {
	case "t", "tr", "tru", "true", "y", "ye", "yes", "on", "1":
		return change.Bool(true), true
	case "f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0":
		return change.Bool(false), true
	}
	return change.Null, false
}

// castDate converts between dates and timestamps; a timestamptz counts in UTC.
func castDate(v *change.Value, kind change.Kind) (change.Value, bool) {
	if v.Kind() == kind {
		return *v, true
	}
	n := v.Int64()
	if v.Kind() == change.KindDate {
		if n = dateMicros(n); n == change.TimestampInfinity-1 {
			return change.Null, false
		}
	}
	switch kind {
	case change.KindDate:
		return change.Date(timestampDate(n)), true
	case change.KindTimestamp:
		return change.Timestamp(n), true
	case change.KindTimestampTZ:
		return change.TimestampTZ(n), true
	}
	at := change.Timestamp(n)
	_, micros, ok := clock(&at)
	return change.Time(micros), ok
}
