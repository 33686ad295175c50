package expr

import (
	"math"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/internal/sqldriver"
)

func (c *compiler) numeric(t *sqldriver.Node, n *node) *Error {
	if !n.kind.Numeric() && n.kind != change.KindNull {
		return c.fail(n.offset, t.Name+" wants a number, not "+n.describe(), "bring it to a number with CAST(x AS decimal)")
	}
	return nil
}

func (c *compiler) abs(t *sqldriver.Node, args []*node) (*node, *Error) {
	n := args[0]
	if err := c.numeric(t, n); err != nil {
		return nil, err
	}
	text := callText(t.Name, args)
	failed := c.operationFaults(t.Offset, text)
	return strict(t.Offset, n.kind, text, args, func(v []change.Value) (change.Value, error) {
		switch x := &v[0]; x.Kind() {
		case change.KindUint:
			return *x, nil
		case change.KindFloat32:
			return change.Float32(float32(math.Abs(float64(x.Float32())))), nil
		case change.KindFloat64:
			return change.Float64(math.Abs(x.Float64())), nil
		case change.KindInt:
			if x.Int64() >= 0 {
				return *x, nil
			}
		default:
			if toDecimal(x).sign() >= 0 {
				return *x, nil
			}
		}
		m, ok := negated(&v[0])
		if !ok {
			return failed(faultRange)
		}
		return m, nil
	}), nil
}

// round is ROUND(x [, digits]): half away from zero with the digits kept, "4.50".
// Floats round to a whole number, halves to the even one, as in PostgreSQL.
func (c *compiler) round(t *sqldriver.Node, args []*node) (*node, *Error) {
	n := args[0]
	if err := c.numeric(t, n); err != nil {
		return nil, err
	}
	digits := 0
	if len(args) == 2 {
		d := args[1]
		if !d.literal || d.kind != change.KindInt || d.value.Int64() > 1000 || d.value.Int64() < -1000 {
			return nil, c.fail(d.offset, "ROUND wants the number of digits as a constant from -1000 to 1000", "")
		}
		if isFloat(n.kind) {
			return nil, c.fail(n.offset, "ROUND to digits wants a decimal, not "+n.describe(), "write ROUND(CAST(x AS decimal), n)")
		}
		digits = int(d.value.Int64())
	}
	kind := n.kind
	if len(args) == 2 {
		kind = change.KindDecimal
	}
	text := callText(t.Name, args)
	failed := c.operationFaults(t.Offset, text)
	return strict(t.Offset, kind, text, args[:1], func(v []change.Value) (change.Value, error) {
		switch x := &v[0]; {
		case x.Kind() == change.KindFloat32:
			return change.Float32(float32(math.RoundToEven(float64(x.Float32())))), nil
		case x.Kind() == change.KindFloat64:
			return change.Float64(math.RoundToEven(x.Float64())), nil
		case kind != change.KindDecimal:
			return *x, nil
		}
		r, ok := toDecimal(&v[0]).rounded(digits).value()
		if !ok {
			return failed(faultRange)
		}
		return r, nil
	}), nil
}

func (c *compiler) floorCeil(t *sqldriver.Node, args []*node) (*node, *Error) {
	n := args[0]
	if err := c.numeric(t, n); err != nil {
		return nil, err
	}
	text, ceil := callText(t.Name, args), t.Name == "CEIL"
	of := math.Floor
	if ceil {
		of = math.Ceil
	}
	failed := c.operationFaults(t.Offset, text)
	return strict(t.Offset, n.kind, text, args, func(v []change.Value) (change.Value, error) {
		x := &v[0]
		switch x.Kind() {
		case change.KindInt, change.KindUint:
			return *x, nil
		case change.KindFloat32:
			return change.Float32(float32(of(float64(x.Float32())))), nil
		case change.KindFloat64:
			return change.Float64(of(x.Float64())), nil
		}
		d := toDecimal(x)
		if ceil {
			d = d.negated().floor().negated()
		} else {
			d = d.floor()
		}
		r, ok := d.value()
		if !ok {
			return failed(faultRange)
		}
		return r, nil
	}), nil
}
