package expr

import (
	"math"
	"math/bits"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/sqldriver"
)

var arithmeticText = map[sqldriver.Op]string{sqldriver.OpAdd: "+", sqldriver.OpSubtract: "-", sqldriver.OpMultiply: "*",
	sqldriver.OpDivide: "/", sqldriver.OpModulo: "%"}

// arithmetic: int with int is int; a float with anything float64; all else decimal.
func (c *compiler) arithmetic(offset int, op sqldriver.Op, l, r *node) (*node, *Error) {
	for _, n := range []*node{l, r} {
		if !n.kind.Numeric() && n.kind != change.KindNull {
			return nil, c.fail(n.offset, arithmeticText[op]+" wants numbers, not "+n.describe(), arithmeticHint(op, n))
		}
	}
	text := "(" + l.text + " " + arithmeticText[op] + " " + r.text + ")"
	kind := numberKind(l.kind, r.kind)
	var run func(a, b change.Value) (change.Value, string)
	switch kind {
	case change.KindInt:
		run = intArithmetic(op)
	case change.KindFloat64:
		run = floatArithmetic(op)
	default:
		run = decimalArithmetic(op)
	}
	le, re := l.eval, r.eval
	failed := c.operationFaults(offset, text)
	return computed(offset, kind, text, func(row []change.Value) (change.Value, error) {
		a, err := le(row)
		if err != nil {
			return change.Null, err
		}
		b, err := re(row)
		if err != nil || a.IsNull() || b.IsNull() {
			return change.Null, err
		}
		v, fault := run(a, b)
		if fault != "" {
			return failed(fault)
		}
		return v, nil
	}), nil
}

func arithmeticHint(op sqldriver.Op, n *node) string {
	switch {
	case op == sqldriver.OpAdd && n.kind == change.KindText:
		return "to join strings write ||, and put sums beside it in parentheses"
	case n.kind == change.KindText:
		return "bring it to a number with CAST(x AS decimal)"
	case n.kind == change.KindDate, n.kind == change.KindTimestamp, n.kind == change.KindTimestampTZ:
		return "compute with EXTRACT(EPOCH FROM x)"
	}
	return ""
}

const (
	faultRange = "the result is out of range"
	faultZero  = "division by zero"
)

// operationFaults makes the faults of an operation ahead, so that a row costs none.
func (c *compiler) operationFaults(offset int, text string) func(message string) (change.Value, error) {
	const most = 80
	if len(text) > most {
		text = near(text, 0)
	}
	zero, other := c.fault(offset, faultZero+" in "+text), c.fault(offset, faultRange+" in "+text)
	return func(message string) (change.Value, error) {
		if message == faultZero {
			return zero()
		}
		return other()
	}
}

// numberKind is the kind of an operation over two numbers.
func numberKind(a, b change.Kind) change.Kind {
	if a == change.KindNull {
		a = b
	}
	if b == change.KindNull {
		b = a
	}
	switch {
	case isFloat(a) || isFloat(b):
		return change.KindFloat64
	case a == change.KindInt && b == change.KindInt:
		return change.KindInt
	}
	return change.KindDecimal
}

func intArithmetic(op sqldriver.Op) func(a, b change.Value) (change.Value, string) {
	return func(av, bv change.Value) (change.Value, string) {
		a, b := av.Int64(), bv.Int64()
		var n int64
		ok := true
		switch op {
		case sqldriver.OpAdd:
			n = a + b
			ok = (n > a) == (b > 0)
		case sqldriver.OpSubtract:
			n = a - b
			ok = (n < a) == (b > 0)
		case sqldriver.OpMultiply:
			n, ok = multiplyInts(a, b)
		default:
			if b == 0 {
				return change.Null, faultZero
			}
			if op == sqldriver.OpModulo {
				if b != -1 { // MinInt64 % -1 is 0
					n = a % b
				}
				break
			}
			n, ok = a/b, a != math.MinInt64 || b != -1
		}
		if !ok {
			return change.Null, faultRange
		}
		return change.Int(n), ""
	}
}

func multiplyInts(a, b int64) (int64, bool) {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	if (a < 0) != (b < 0) {
		return int64(-lo), hi == 0 && lo <= 1<<63
	}
	return int64(lo), hi == 0 && lo < 1<<63
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

func floatArithmetic(op sqldriver.Op) func(a, b change.Value) (change.Value, string) {
	return func(av, bv change.Value) (change.Value, string) {
		a, b := toFloat(&av), toFloat(&bv)
		var f float64
		switch op {
		case sqldriver.OpAdd:
			f = a + b
		case sqldriver.OpSubtract:
			f = a - b
		case sqldriver.OpMultiply:
			f = a * b
		default:
			if b == 0 && !math.IsNaN(a) {
				return change.Null, faultZero
			}
			if f = a / b; op == sqldriver.OpModulo {
				f = math.Mod(a, b)
			}
		}
		v, ok := floatResult(f, a, b)
		if !ok {
			return change.Null, faultRange
		}
		return v, ""
	}
}

func decimalArithmetic(op sqldriver.Op) func(a, b change.Value) (change.Value, string) {
	return func(av, bv change.Value) (change.Value, string) {
		a, b := toDecimal(&av), toDecimal(&bv)
		ok := true
		switch op {
		case sqldriver.OpAdd:
			a = a.add(b)
		case sqldriver.OpSubtract:
			a = a.add(b.negated())
		case sqldriver.OpMultiply:
			a = a.multiply(b)
		case sqldriver.OpDivide:
			a, ok = a.divide(b)
		default:
			a, ok = a.modulo(b)
		}
		if !ok {
			return change.Null, faultZero
		}
		v, ok := a.value()
		if !ok {
			return change.Null, faultRange
		}
		return v, ""
	}
}

func (c *compiler) negate(t *sqldriver.Node, n *node) (*node, *Error) {
	if !n.kind.Numeric() && n.kind != change.KindNull {
		return nil, c.fail(t.Offset, "- wants a number, not "+n.describe(), arithmeticHint(sqldriver.OpSubtract, n))
	}
	text := "(- " + n.text + ")"
	if n.literal && n.kind != change.KindNull {
		v, ok := negated(&n.value)
		if !ok {
			return nil, c.fail(t.Offset, faultRange, "")
		}
		return constant(t.Offset, v, "(- "+n.text+")"), nil
	}
	kind, eval := n.kind, n.eval
	if kind == change.KindUint {
		kind = change.KindDecimal
	}
	failed := c.operationFaults(t.Offset, text)
	return computed(t.Offset, kind, text, func(row []change.Value) (change.Value, error) {
		v, err := eval(row)
		if err != nil || v.IsNull() {
			return v, err
		}
		m, ok := negated(&v)
		if !ok {
			return failed(faultRange)
		}
		if kind == change.KindDecimal && m.Kind() == change.KindInt {
			m, _ = decimal.value(toDecimal(&m))
		}
		return m, nil
	}), nil
}

// negated is -v; a uint that fits becomes an int, so that -9223372036854775808 is one.
func negated(v *change.Value) (change.Value, bool) {
	switch v.Kind() {
	case change.KindInt:
		if v.Int64() == math.MinInt64 {
			return change.Null, false
		}
		return change.Int(-v.Int64()), true
	case change.KindUint:
		if v.Uint64() <= 1<<63 {
			return change.Int(-int64(v.Uint64())), true
		}
	case change.KindFloat32:
		return change.Float32(-v.Float32()), true
	case change.KindFloat64:
		return change.Float64(-v.Float64()), true
	}
	return toDecimal(v).negated().value()
}
