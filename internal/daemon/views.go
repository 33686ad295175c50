package daemon

import (
	"fmt"
	"strings"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/derive/join"
)

// topicOf returns the topic of a table that a view names.
func topicOf(t config.TableRef) string { return change.TableTopic(t.Source, t.Schema, t.Table) }

// definition translates a view of the configuration.
func definition(v *config.View) join.Definition {
	return join.Definition{Name: v.Name, Node: node(&v.Node)}
}

func node(n *config.Node) join.Node {
	out := join.Node{Table: topicOf(n.Table), Where: exprText(n.Where)}
	if n.Fields != nil {
		out.Fields = make([]join.Field, 0, len(n.Fields))
	}
	for _, f := range n.Fields {
		out.Fields = append(out.Fields, join.Field{Name: f.Name, Column: f.Column, Expr: exprText(f.Expr)})
	}
	for _, r := range n.Nest {
		out.Nest = append(out.Nest, relation(r))
	}
	for _, c := range n.Calc {
		out.Calc = append(out.Calc, join.Calc{Name: c.Name, Func: string(c.Func), Relation: c.Relation, Column: c.Column, Expr: exprText(c.Expr),
			Where: exprText(c.Where), Round: c.Round, Approximate: c.Approximate})
	}
	return out
}

func relation(r *config.Relation) join.Relation {
	out := join.Relation{Name: r.Name, Kind: join.Kind(r.Kind), Node: node(&r.Node), By: by(r.By), Fold: r.Fold, Limit: r.Limit}
	if t := r.Through; t != nil {
		out.Through = &join.Through{Table: topicOf(t.Table), Near: by(t.Near), Far: by(t.Far), Where: exprText(t.Where)}
	}
	for _, o := range r.Order {
		out.Order = append(out.Order, join.Order{Column: o.Column, Desc: o.Desc, NullsFirst: o.NullsFirst})
	}
	return out
}

func by(list []config.ByColumn) []join.By {
	var out []join.By
	for _, b := range list {
		out = append(out, join.By{Column: b.Column, Refers: b.Refers})
	}
	return out
}

func exprText(e *config.Expr) string {
	if e == nil {
		return ""
	}
	return e.Text
}

// viewProblems brings what join found wrong to the places of the file.
func viewProblems(cfg *config.Config, view string, found []join.Problem) config.Problems {
	var out config.Problems
	for _, p := range found {
		path := append([]string{"views", view}, p.Path...)
		out = append(out, cfg.At(strings.Join(path, ".")).Problem(p.Message, p.Hint))
	}
	return out
}

// uncaptured reports the tables of a view that no source takes: the stream
// would never bring them.
func uncaptured(cfg *config.Config, v *config.View) config.Problems {
	var out config.Problems
	check := func(t config.TableRef) {
		s := cfg.Source(t.Source)
		if s != nil && !s.Captures(t.Schema, t.Table) {
			out = append(out, t.Pos.Problem(fmt.Sprintf("source %q does not capture the table %s.%s", t.Source, t.Schema, t.Table),
				fmt.Sprintf("add %s.%s to sources.%s.%s.tables", t.Schema, t.Table, s.Name, s.Kind)))
		}
	}
	var visit func(n *config.Node)
	visit = func(n *config.Node) {
		check(n.Table)
		for _, r := range n.Nest {
			if r.Through != nil {
				check(r.Through.Table)
			}
			visit(&r.Node)
		}
	}
	visit(&v.Node)
	return out
}
