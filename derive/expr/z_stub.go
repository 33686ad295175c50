package expr

import "github.com/tailwater/tailwater/internal/sqldriver"

func (c *compiler) later(t *sqldriver.Node) (*node, *Error) {
	return nil, c.fail(t.Offset, "not supported", "")
}
func (c *compiler) like(t *sqldriver.Node, a []*node) (*node, *Error) { return c.later(t) }
func (c *compiler) negate(t *sqldriver.Node, a *node) (*node, *Error) { return c.later(t) }
func (c *compiler) arithmetic(o int, op sqldriver.Op, a, b *node) (*node, *Error) {
	return nil, c.fail(o, "not supported", "")
}
func (c *compiler) concat(t *sqldriver.Node, a []*node) (*node, *Error)      { return c.later(t) }
func (c *compiler) jsonAccess(t *sqldriver.Node, a, b *node) (*node, *Error) { return c.later(t) }
func (c *compiler) caseOf(t *sqldriver.Node, a []*node) (*node, *Error)      { return c.later(t) }
func (c *compiler) cast(t *sqldriver.Node, a *node) (*node, *Error)          { return c.later(t) }
func (c *compiler) call(t *sqldriver.Node, a []*node) (*node, *Error)        { return c.later(t) }
