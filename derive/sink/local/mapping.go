package local

import (
	"fmt"
	"slices"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/custom"
	_ "github.com/blevesearch/bleve/v2/analysis/analyzer/keyword" // registers it
	_ "github.com/blevesearch/bleve/v2/analysis/analyzer/simple"
	_ "github.com/blevesearch/bleve/v2/analysis/analyzer/web"
	"github.com/blevesearch/bleve/v2/mapping"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/sink"
)

// Fields of every index beside the view's.
const (
	fieldDoc = "_doc" // the document's JSON
	fieldAll = "_all" // the words of all text fields
)

// wordsAnalyzer splits at word boundaries and folds case; unlike bleve's
// standard it has no stop words, so that "the who" is found.
const wordsAnalyzer = "tailwater_words"

func analyzerName(name string) (string, error) {
	switch name {
	case "", "standard":
		return wordsAnalyzer, nil
	case "simple", "web", "keyword":
		return name, nil
	}
	return "", fmt.Errorf("local index: unknown analyzer %q; there are standard, simple, web and keyword", name)
}

// shape says how a field of the document is indexed.
type shape uint8

const (
	shapeNone shape = iota
	shapeText
	shapeKeyword
	shapeNumber
	shapeDate
	shapeBool
	shapeObject
	shapeAnyText // JSON of any form: the words of its texts
)

// node is a field of the mapping tree.
type node struct {
	shape   shape
	keyword bool
	fields  map[string]*node
}

// indexMapping is bleve's mapping and the tree by which documents are prepared for it.
type indexMapping struct {
	bleve *mapping.IndexMappingImpl
	root  *node
	boost []string // text fields of the root, which count more than nested ones
}

func newMapping(fields []sink.Field, overrides []MappingField, analyzer string) (*indexMapping, error) {
	name, err := analyzerName(analyzer)
	if err != nil {
		return nil, err
	}
	m := &indexMapping{bleve: bleve.NewIndexMapping()}
	if err := m.bleve.AddCustomAnalyzer(wordsAnalyzer, map[string]any{
		"type": custom.Name, "tokenizer": "unicode", "token_filters": []string{"to_lower"},
	}); err != nil {
		return nil, fmt.Errorf("local index: analyzer: %w", err)
	}
	m.bleve.DefaultAnalyzer = name
	m.bleve.IndexDynamic, m.bleve.StoreDynamic, m.bleve.DocValuesDynamic = false, false, false
	byPath := map[string]MappingField{}
	for _, o := range overrides {
		byPath[o.Field] = o
	}
	root := bleve.NewDocumentStaticMapping()
	if m.root, err = addFields(root, fields, "", byPath); err != nil {
		return nil, err
	}
	for path := range byPath {
		return nil, fmt.Errorf("mapping of %q: the view has no such field", path)
	}
	stored := bleve.NewTextFieldMapping()
	stored.Index, stored.IncludeInAll, stored.DocValues, stored.IncludeTermVectors = false, false, false, false
	root.AddFieldMappingsAt(fieldDoc, stored)
	m.bleve.DefaultMapping = root
	for _, f := range fields {
		if n := m.root.fields[f.Name]; n != nil && n.shape == shapeText {
			m.boost = append(m.boost, f.Name)
		}
	}
	return m, nil
}

// addFields maps the fields below a path and takes their overrides out of byPath.
func addFields(doc *mapping.DocumentMapping, fields []sink.Field, path string, byPath map[string]MappingField) (*node, error) {
	n := &node{shape: shapeObject, fields: map[string]*node{}}
	for _, f := range fields {
		full := path + f.Name
		if full == fieldDoc || full == fieldAll {
			return nil, fmt.Errorf("the local index keeps %q for itself: give the view's field another name", full)
		}
		o, has := byPath[full]
		delete(byPath, full)
		if f.Kind == change.KindNull {
			sub := bleve.NewDocumentStaticMapping()
			child, err := addFields(sub, f.Fields, full+".", byPath)
			if err != nil {
				return nil, err
			}
			if has && o.Type == "none" {
				child.shape = shapeNone
			} else {
				doc.AddSubDocumentMapping(f.Name, sub)
			}
			n.fields[f.Name] = child
			continue
		}
		child := &node{shape: shapeOf(f.Kind), keyword: o.Keyword}
		if o.Type != "" {
			s, ok := shapeNames[o.Type]
			if !ok {
				return nil, fmt.Errorf("mapping of %q: type %q is none of text, keyword, number, date, boolean, none", full, o.Type)
			}
			child.shape = s
		}
		n.fields[f.Name] = child
		if mappings := child.mappings(f.Name); len(mappings) > 0 {
			doc.AddFieldMappingsAt(f.Name, mappings...)
		}
	}
	return n, nil
}

var shapeNames = map[string]shape{
	"text": shapeText, "keyword": shapeKeyword, "number": shapeNumber, "date": shapeDate, "boolean": shapeBool, "none": shapeNone,
}

func shapeOf(k change.Kind) shape {
	switch k {
	case change.KindBool:
		return shapeBool
	case change.KindInt, change.KindUint, change.KindDecimal, change.KindFloat32, change.KindFloat64:
		return shapeNumber
	case change.KindDate, change.KindTimestamp, change.KindTimestampTZ:
		return shapeDate
	case change.KindText:
		return shapeText
	case change.KindJSON:
		return shapeAnyText
	case change.KindBytes:
		return shapeNone
	}
	return shapeKeyword
}

// mappings are bleve's for one field, in order.
func (n *node) mappings(name string) []*mapping.FieldMapping {
	var ms []*mapping.FieldMapping
	switch n.shape {
	case shapeText, shapeAnyText:
		ms = append(ms, bleve.NewTextFieldMapping())
	case shapeKeyword, shapeBool: // a query string finds no boolean fields
		ms = append(ms, bleve.NewKeywordFieldMapping())
	case shapeNumber:
		ms = append(ms, bleve.NewNumericFieldMapping())
	case shapeDate:
		ms = append(ms, bleve.NewDateTimeFieldMapping())
	}
	if n.keyword && n.shape == shapeText {
		k := bleve.NewKeywordFieldMapping()
		k.Name, k.IncludeInAll = name+".keyword", false
		ms = append(ms, k)
	}
	for _, m := range ms {
		m.Store = false
		m.DocValues = n.shape != shapeText && n.shape != shapeAnyText
		m.IncludeInAll = m.IncludeInAll && slices.Contains([]shape{shapeText, shapeAnyText, shapeKeyword}, n.shape)
	}
	return ms
}
