package daemon

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/connectors"
	"github.com/tailwater/tailwater/eventlog"
)

// recordPrinter turns records of the log into the lines of `log cat --json`.
type recordPrinter struct {
	log     eventlog.Log
	kinds   map[string]string // source name to its kind
	names   map[eventlog.TopicID]string
	schemas map[string]map[uint32]*change.Schema
	newest  map[string]*change.Schema
	values  []change.Value
}

func newRecordPrinter(log eventlog.Log, kinds map[string]string) *recordPrinter {
	return &recordPrinter{log: log, kinds: kinds, names: map[eventlog.TopicID]string{}}
}

func (p *recordPrinter) topicName(id eventlog.TopicID) string {
	if name, ok := p.names[id]; ok {
		return name
	}
	for _, t := range p.log.Topics() {
		p.names[t.ID] = t.Spec.Name
	}
	return p.names[id]
}

// schema returns a layout, reading _schemas again if it is a new one.
func (p *recordPrinter) schema(topic string, id uint32) (*change.Schema, error) {
	if s := p.schemas[topic][id]; s != nil {
		return s, nil
	}
	if err := p.readSchemas(); err != nil {
		return nil, err
	}
	if s := p.schemas[topic][id]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("schema %d of %s is not in the topic %s", id, topic, change.TopicSchemas)
}

func (p *recordPrinter) readSchemas() error {
	p.schemas, p.newest = map[string]map[uint32]*change.Schema{}, map[string]*change.Schema{}
	return connectors.ReadSchemas(p.log, func(s *change.Schema) {
		if p.schemas[s.Topic] == nil {
			p.schemas[s.Topic] = map[uint32]*change.Schema{}
		}
		p.schemas[s.Topic][s.ID], p.newest[s.Topic] = s, s
	})
}

func (p *recordPrinter) appendLine(dst []byte, tx *eventlog.Tx, r *eventlog.Record, current bool) ([]byte, error) {
	topic := p.topicName(r.Topic)
	dst = change.AppendJSONString(append(dst, `{"topic":`...), topic)
	dst = strconv.AppendInt(append(dst, `,"partition":`...), int64(r.Partition), 10)
	dst = strconv.AppendInt(append(dst, `,"offset":`...), int64(r.Offset), 10)
	dst = strconv.AppendUint(append(dst, `,"csn":`...), uint64(r.CSN), 10)
	dst = strconv.AppendUint(append(dst, `,"seq":`...), uint64(r.Seq), 10)
	var err error
	switch {
	case strings.HasPrefix(topic, change.TopicMessages) && r.Schema != 0:
		dst, err = p.appendRow(dst, topic, r, current)
	case strings.HasPrefix(topic, "_") || strings.HasPrefix(topic, change.TopicView):
		dst, err = p.appendOwn(dst, topic, r)
	default:
		dst, err = p.appendRow(dst, topic, r, current)
	}
	if err != nil {
		return nil, fmt.Errorf("%s partition %d offset %d: %w", topic, r.Partition, r.Offset, err)
	}
	return p.appendSource(dst, tx, r)
}

func (p *recordPrinter) appendSource(dst []byte, tx *eventlog.Tx, r *eventlog.Record) ([]byte, error) {
	dst = appendMicros(append(dst, `,"ts_commit":`...), tx.CommitTime)
	dst = appendMicros(append(dst, `,"ts_ingest":`...), tx.IngestTime)
	if r.Schema != 0 {
		dst = strconv.AppendUint(append(dst, `,"schema":`...), uint64(r.Schema), 10)
	}
	source := tx.Source
	if source == "" { // of our own, or older than _tx reaches: then the topic says whose it is
		if source = p.sourceOf(p.topicName(r.Topic)); source == "" {
			return append(dst, '}'), nil
		}
	}
	pos, err := change.DecodePosition(tx.Position)
	if err != nil {
		return nil, err
	}
	dst = change.AppendJSONString(append(dst, `,"source":{"name":`...), source)
	dst = append(dst, `,"kind":`...)
	dst = appendTextOrNull(dst, p.kinds[source])
	dst = appendTextOrNull(append(dst, `,"position":`...), pos.Name)
	dst = appendTextOrNull(append(dst, `,"tx":`...), tx.ID)
	return append(dst, "}}"...), nil
}

// sourceOf returns the source whose table or messages a topic is; "" for other topics.
func (p *recordPrinter) sourceOf(topic string) string {
	if source, ok := strings.CutPrefix(topic, change.TopicMessages); ok {
		return source
	}
	first, _, ok := strings.Cut(topic, ".")
	if !ok || strings.HasPrefix(topic, "_") || strings.HasPrefix(topic, change.TopicView) {
		return ""
	}
	name, err := change.UnescapeName(first)
	if err != nil {
		return ""
	}
	return name
}

func appendTextOrNull(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return change.AppendJSONString(dst, s)
}

func appendMicros(dst []byte, micros int64) []byte {
	if micros == 0 {
		return append(dst, "null"...)
	}
	dst = append(append(dst, '"'), timeText(micros)...)
	return append(dst, '"')
}

// timeText writes µs since 1970 as lines show times.
func timeText(micros int64) string {
	return time.UnixMicro(micros).UTC().Format("2006-01-02T15:04:05.999999Z07:00")
}

// appendRow writes op, key, before, after and unchanged of a table's record.
func (p *recordPrinter) appendRow(dst []byte, topic string, r *eventlog.Record, current bool) ([]byte, error) {
	dst = change.AppendJSONString(append(dst, `,"op":`...), change.Op(r.Op).String())
	if change.Flags(r.Flags)&change.FlagMoved != 0 {
		dst = append(dst, `,"moved":true`...)
	}
	if _, control := change.Key(r.Key).Control(); control {
		return append(dst, `,"key":null,"after":null`...), nil
	}
	s, err := p.schema(topic, r.Schema)
	if err != nil && r.Schema == 0 && r.Value == nil { // a delete that names no layout: its key has the newest one
		s, err = p.newest[topic], nil
	}
	if err != nil {
		return nil, err
	}
	if dst, err = appendKeyObject(append(dst, `,"key":`...), s, r.Key); err != nil {
		return nil, err
	}
	if r.Value == nil {
		return append(dst, `,"after":null`...), nil
	}
	before, after, err := change.DecodeRecordValue(r.Value)
	if err != nil {
		return nil, err
	}
	if before != nil {
		if dst, _, err = p.appendObject(append(dst, `,"before":`...), change.Row{Schema: s, Data: before}, current); err != nil {
			return nil, err
		}
	}
	dst, unchanged, err := p.appendObject(append(dst, `,"after":`...), change.Row{Schema: s, Data: after}, current)
	if err != nil {
		return nil, err
	}
	if len(unchanged) > 0 {
		dst = append(dst, `,"unchanged":[`...)
		for i, name := range unchanged {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = change.AppendJSONString(dst, name)
		}
		dst = append(dst, ']')
	}
	return dst, nil
}

// appendKeyObject writes {"id":1}; null for a table without a key.
func appendKeyObject(dst []byte, s *change.Schema, key []byte) ([]byte, error) {
	if len(key) == 0 {
		return append(dst, "null"...), nil
	}
	parts, err := change.DecodeKey(key)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return append(dst, "null"...), nil
	}
	if len(parts) != len(s.Key) {
		return nil, fmt.Errorf("the key has %d parts, its schema %d", len(parts), len(s.Key))
	}
	dst = append(dst, '{')
	for i, v := range parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(change.AppendJSONString(dst, s.Columns[s.Key[i]].Name), ':')
		dst = change.AppendJSON(dst, v)
	}
	return append(dst, '}'), nil
}

// appendObject writes a row; with current, in the newest layout of its table.
func (p *recordPrinter) appendObject(dst []byte, row change.Row, current bool) ([]byte, []string, error) {
	var err error
	if p.values, err = row.Values(p.values); err != nil {
		return nil, nil, err
	}
	columns, values := row.Schema.Columns, p.values
	if newest := p.newest[row.Schema.Topic]; current && newest != nil && newest != row.Schema {
		if columns, values, err = project(row.Schema, newest, values); err != nil {
			return nil, nil, err
		}
	}
	var unchanged []string
	dst = append(dst, '{')
	n := 0
	for i, v := range values {
		if v.IsUnchanged() {
			unchanged = append(unchanged, columns[i].Name)
			continue
		}
		if n++; n > 1 {
			dst = append(dst, ',')
		}
		dst = append(change.AppendJSONString(dst, columns[i].Name), ':')
		dst = change.AppendJSON(dst, v)
	}
	return append(dst, '}'), unchanged, nil
}

// project brings the values of a row to another layout: columns keep their number,
// added ones take their default. A column whose type has changed keeps its value as it was written.
func project(from, to *change.Schema, values []change.Value) ([]change.Column, []change.Value, error) {
	out := make([]change.Value, len(to.Columns))
	for i := range to.Columns {
		c := &to.Columns[i]
		if j := from.ByAnyGeneration(c.Number); j >= 0 {
			out[i] = values[j]
		} else if c.HasDefault {
			v, err := c.DefaultValue()
			if err != nil {
				return nil, nil, err
			}
			out[i] = v
		}
	}
	return to.Columns, out, nil
}

// appendOwn writes a record of a view's or a control topic.
func (p *recordPrinter) appendOwn(dst []byte, topic string, r *eventlog.Record) ([]byte, error) {
	op := change.Op(r.Op).String()
	if strings.HasPrefix(topic, change.TopicView) {
		op = "update"
		if r.Value == nil {
			op = "delete"
		}
	}
	dst = change.AppendJSONString(append(dst, `,"op":`...), op)
	parts, err := change.DecodeKey(r.Key)
	if err != nil {
		return nil, err
	}
	dst = append(dst, `,"key":[`...)
	for i, v := range parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = change.AppendJSON(dst, v)
	}
	dst = append(dst, `],"after":`...)
	switch {
	case r.Value == nil:
		return append(dst, "null"...), nil
	case strings.HasPrefix(topic, change.TopicView), strings.HasPrefix(topic, change.TopicDeadLetters):
		return append(dst, r.Value...), nil
	case topic == change.TopicSchemas:
		return appendSchemaJSON(dst, r)
	case strings.HasPrefix(topic, change.TopicSnapshots) && change.IsSnapshotMark(r.Key):
		return appendMarkJSON(dst, r)
	}
	return append(change.AppendText(append(dst, '"'), change.Bytes(r.Value)), '"'), nil
}

func appendSchemaJSON(dst []byte, r *eventlog.Record) ([]byte, error) {
	s, err := change.DecodeSchema(r.Key, r.Value)
	if err != nil {
		return nil, err
	}
	dst = append(dst, `{"columns":[`...)
	for i := range s.Columns {
		c := &s.Columns[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendUint(append(dst, `{"number":`...), uint64(c.Number), 10)
		dst = change.AppendJSONString(append(dst, `,"name":`...), c.Name)
		dst = change.AppendJSONString(append(dst, `,"kind":`...), c.Kind.String())
		dst = append(change.AppendJSONString(append(dst, `,"type":`...), c.SourceType), '}')
	}
	dst = append(dst, `],"key":[`...)
	for i, name := range s.KeyNames() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = change.AppendJSONString(dst, name)
	}
	return append(dst, "]}"...), nil
}

func appendMarkJSON(dst []byte, r *eventlog.Record) ([]byte, error) {
	m, err := change.DecodeSnapshotMark(r.Key, r.Value)
	if err != nil {
		return nil, err
	}
	states := map[change.SnapshotState]string{change.SnapshotBegun: "begun", change.SnapshotProgress: "progress", change.SnapshotDone: "done", change.SnapshotStopped: "stopped"}
	dst = change.AppendJSONString(append(dst, `{"state":`...), states[m.State])
	dst = strconv.AppendBool(append(dst, `,"floor":`...), m.Floor)
	dst = strconv.AppendInt(append(dst, `,"rows":`...), m.Rows, 10)
	dst = strconv.AppendInt(append(dst, `,"bytes":`...), m.Bytes, 10)
	return append(strconv.AppendInt(append(dst, `,"total":`...), m.Total, 10), '}'), nil
}
