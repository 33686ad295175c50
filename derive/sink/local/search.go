package local

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/mapping"
	"github.com/blevesearch/bleve/v2/search"
	"github.com/blevesearch/bleve/v2/search/query"

	"github.com/tailwater/tailwater/derive/sink"
)

// ErrQuery matches a query that cannot be understood, or asks for too much.
var ErrQuery = errors.New("local: bad query")

// Bounds of one search.
const (
	defaultLimit = 20
	maxWindow    = 10_000 // limit + offset
)

// operators are the characters that make a query more than words.
const operators = `+-=&|><!(){}[]^"~*?:\/`

// Search returns the documents that match, by score and then by id. Plain
// words must all occur in some text of the document, the last one as the
// beginning of a word, so that results change while one types; words in the
// document's own fields count more than those in nested ones. A query with
// operators is read as bleve's query string: field:word, +must, -not,
// "a phrase", wor*, price:>10. An empty query matches everything.
func (t *target) Search(ctx context.Context, text string, limit, offset int) (hits []sink.Hit, total uint64, err error) {
	if limit <= 0 {
		limit = defaultLimit
	}
	if offset < 0 || limit+offset > maxWindow {
		return nil, 0, fmt.Errorf("%w: limit and offset together are at most %d", ErrQuery, maxWindow)
	}
	q, err := t.query(text)
	if err != nil {
		return nil, 0, err
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.reading()
	if g == nil {
		return nil, 0, fmt.Errorf("%w: view %q", ErrNotOpen, t.view)
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("search the local index of view %q: %v", t.view, r)
		}
	}()
	req := bleve.NewSearchRequestOptions(q, limit, offset, false)
	req.Fields = []string{fieldDoc}
	req.Sort = search.SortOrder{&search.SortScore{Desc: true}, &search.SortDocID{}}
	res, err := g.index.SearchInContext(ctx, req)
	if err != nil {
		return nil, 0, fmt.Errorf("search the local index of view %q: %w", t.view, err)
	}
	for _, h := range res.Hits {
		doc, _ := h.Fields[fieldDoc].(string)
		hits = append(hits, sink.Hit{ID: h.ID, Score: h.Score, Doc: []byte(doc)})
	}
	return hits, res.Total, nil
}

func (t *target) query(text string) (query.Query, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return bleve.NewMatchAllQuery(), nil
	case strings.ContainsAny(text, operators):
		q := bleve.NewQueryStringQuery(text)
		if err := q.Validate(); err == nil {
			return q, nil
		}
		// Half a query, as it is while one types: its words.
		text = strings.Map(func(r rune) rune {
			if strings.ContainsRune(operators, r) {
				return ' '
			}
			return r
		}, text)
	}
	return t.words(text)
}

// words asks for all words, the last one as a prefix.
func (t *target) words(text string) (query.Query, error) {
	m := t.mapping.bleve
	tokens, err := analyze(m, text)
	if err != nil {
		return nil, err
	}
	if len(tokens) == 0 {
		return bleve.NewMatchNoneQuery(), nil
	}
	all := bleve.NewBooleanQuery()
	for i, word := range tokens {
		exact := bleve.NewTermQuery(word)
		exact.SetField(fieldAll)
		if i < len(tokens)-1 {
			all.AddMust(exact)
			continue
		}
		prefix := bleve.NewPrefixQuery(word)
		prefix.SetField(fieldAll)
		exact.SetBoost(2)
		all.AddMust(bleve.NewDisjunctionQuery(exact, prefix))
	}
	for _, f := range t.mapping.boost {
		match := bleve.NewMatchQuery(text)
		match.SetField(f)
		match.SetBoost(2)
		all.AddShould(match)
	}
	return all, nil
}

func analyze(m *mapping.IndexMappingImpl, text string) ([]string, error) {
	stream, err := m.AnalyzeText(m.DefaultAnalyzer, []byte(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrQuery, err)
	}
	var words []string
	for _, tok := range stream {
		words = append(words, string(tok.Term))
	}
	return words, nil
}
