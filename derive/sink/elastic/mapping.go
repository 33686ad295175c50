package elastic

import (
	"fmt"
	"strings"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/sink"
)

// Bounds of keywords: the one beside a text, and the longest that Lucene takes
// in any script (32,766 bytes).
const (
	keywordBeside = 256
	keywordLimit  = 8191
)

// dateFormats are the spellings of TYPES.md K4 and K5. Others (infinity, years
// beyond 9999, partial dates) are kept in the document and not indexed.
const dateFormats = "strict_date_optional_time||strict_date"

// buildMapping derives the mapping of a view's documents: {"dynamic":"strict","properties":…}.
func buildMapping(fields []sink.Field, overrides []MappingField, info *serverInfo) (map[string]any, error) {
	byPath := map[string]MappingField{}
	for _, o := range overrides {
		if _, twice := byPath[o.Field]; twice {
			return nil, fmt.Errorf("mapping of %q is given twice", o.Field)
		}
		byPath[o.Field] = o
	}
	b := mappingBuilder{info: info, overrides: byPath}
	m := map[string]any{"dynamic": "strict", "properties": b.properties(fields, "")}
	for path := range byPath {
		return nil, fmt.Errorf("mapping of %q: the view has no such field", path)
	}
	return m, nil
}

type mappingBuilder struct {
	info      *serverInfo
	overrides map[string]MappingField // those not yet used
}

func (b *mappingBuilder) properties(fields []sink.Field, path string) map[string]any {
	props := map[string]any{}
	for _, f := range fields {
		full := path + f.Name
		o := b.overrides[full]
		delete(b.overrides, full)
		var m map[string]any
		if f.Kind == change.KindNull {
			m = map[string]any{"properties": b.properties(f.Fields, full+".")}
			if o.Type != "" {
				m["type"] = o.Type // nested, mostly
			}
			if o.Type != "" && o.Type != "nested" && o.Type != "object" {
				delete(m, "properties")
			}
		} else {
			m = b.leaf(f, o)
		}
		for k, v := range o.Params {
			m[k] = v
		}
		props[f.Name] = m
	}
	return props
}

func (b *mappingBuilder) leaf(f sink.Field, o MappingField) map[string]any {
	switch {
	case o.Type == "text" && o.Keyword:
		return textWithKeyword()
	case o.Type != "":
		return map[string]any{"type": o.Type}
	case f.Kind == change.KindJSON:
		return b.json(f.SourceType)
	}
	return b.kind(f.Kind)
}

func textWithKeyword() map[string]any {
	return map[string]any{"type": "text", "fields": map[string]any{"keyword": map[string]any{"type": "keyword", "ignore_above": keywordBeside}}}
}

// kind is the mapping of one column kind. Where a database has values that the
// type has not (NaN, infinity), they are left out of the index and stay in the document.
func (b *mappingBuilder) kind(k change.Kind) map[string]any {
	switch k {
	case change.KindBool:
		return map[string]any{"type": "boolean"}
	case change.KindInt:
		return map[string]any{"type": "long"}
	case change.KindUint:
		if b.info.unsignedLong() {
			return map[string]any{"type": "unsigned_long"}
		}
		return keyword()
	case change.KindDecimal, change.KindFloat64:
		return map[string]any{"type": "double", "ignore_malformed": true}
	case change.KindFloat32:
		return map[string]any{"type": "float", "ignore_malformed": true}
	case change.KindText:
		return textWithKeyword()
	case change.KindBytes:
		return map[string]any{"type": "binary"}
	case change.KindDate, change.KindTimestamp, change.KindTimestampTZ:
		return map[string]any{"type": "date", "format": dateFormats, "ignore_malformed": true}
	}
	return keyword() // uuid, time, timetz, interval
}

func keyword() map[string]any {
	return map[string]any{"type": "keyword", "ignore_above": keywordLimit}
}

// arrayKinds are element types of arrays as the databases name them.
var arrayKinds = map[string]change.Kind{
	"bool": change.KindBool, "boolean": change.KindBool,
	"int2": change.KindInt, "int4": change.KindInt, "int8": change.KindInt, "smallint": change.KindInt, "integer": change.KindInt, "bigint": change.KindInt,
	"numeric": change.KindDecimal, "float4": change.KindFloat32, "float8": change.KindFloat64, "real": change.KindFloat32, "double precision": change.KindFloat64,
	"date": change.KindDate, "timestamp": change.KindTimestamp, "timestamptz": change.KindTimestampTZ,
	"text": change.KindText, "varchar": change.KindText, "character varying": change.KindText, "bpchar": change.KindText, "uuid": change.KindUUID,
}

// json is the mapping of JSON. Arrays of a known element type are indexed as
// that; everything else may be of any form, which no type but a disabled object takes.
func (b *mappingBuilder) json(sourceType string) map[string]any {
	element, array := strings.CutSuffix(sourceType, "[]")
	if !array {
		element, array = strings.CutPrefix(sourceType, "_")
	}
	if i := strings.IndexByte(element, '('); i >= 0 {
		element = element[:i]
	}
	if k, ok := arrayKinds[strings.ToLower(strings.TrimSpace(element))]; array && ok {
		return b.kind(k)
	}
	return map[string]any{"type": "object", "enabled": false}
}
