package config

import (
	"fmt"
	"math"
	"strings"
	"time"
)

var sourceKinds = []string{string(Postgres), string(MySQL), string(MariaDB)}

func (d *decoder) sources(n *node, cfg *Config) []*Source {
	o := d.object(n, cfg.pos("sources"))
	if o.n == nil {
		return nil
	}
	var out []*Source
	for _, e := range o.n.entries {
		d.checkName("source", e.key, e.pos)
		if s := d.source(e, cfg); s != nil {
			out = append(out, s)
		}
	}
	return out
}

// source decodes { KIND: { … } }.
func (d *decoder) source(e entry, cfg *Config) *Source {
	kind, body, ok := d.oneOf(e, "a source", sourceKinds)
	if !ok {
		return nil
	}
	s := &Source{
		Name: e.key, Pos: e.pos, Kind: SourceKind(kind),
		Discover: 10 * time.Second, Heartbeat: 10 * time.Second, OnLimit: OnLimitAlert,
		InsecurePlaintext: cfg.InsecurePlaintext, Signals: SignalsTables,
		Snapshot: Snapshot{Mode: SnapshotInitial, ChunkRows: 10000, Workers: 1},
	}
	if s.Kind != Postgres {
		d.problem(body.pos, kind+" is not in this version yet", "only postgres sources can be captured so far")
	}
	o := d.object(body.value, body.pos)
	d.dsn(o, s)
	s.Tables = d.patterns(o, "tables", s)
	s.Exclude = d.patterns(o, "exclude", s)
	if !o.has("tables") {
		hint := "name them: tables: [public.*]"
		if s.Kind != Postgres {
			hint = "name them: tables: [DATABASE.*]"
		}
		d.problem(body.pos, "the source has no tables", hint)
	} else if n := o.child("tables"); n.kind == nullNode || n.kind == listNode && len(n.items) == 0 {
		d.problem(o.at("tables"), "the list of tables is empty", "name them: tables: [public.*]")
	}
	o.duration("discover", &s.Discover, time.Second)
	o.duration("heartbeat", &s.Heartbeat, 0)
	o.size("max_retained_wal", &s.MaxRetainedWAL, 1<<20)
	o.enum("on_limit", &s.OnLimit, OnLimitAlert, OnLimitResnapshot)
	o.boolean("insecure_plaintext", &s.InsecurePlaintext)
	d.slot(o, s)
	d.messages(o, s)
	d.sourceTLS(o, s)
	d.snapshot(o, s)
	d.columns(o, s)
	o.done()
	d.checkSourceTLS(s, o)
	return s
}

// oneOf opens a map of exactly one kind: its key and value.
func (d *decoder) oneOf(e entry, what string, kinds []string) (string, entry, bool) {
	hint := fmt.Sprintf("write %s: { %s: { … } }", e.key, kinds[0])
	if e.value.kind != mapNode {
		d.problem(e.pos, what+" must be a map with its kind: "+strings.Join(kinds, ", "), hint)
		return "", entry{}, false
	}
	var found *entry
	for i := range e.value.entries {
		k := &e.value.entries[i]
		if !contains(kinds, k.key) {
			continue
		}
		if found != nil {
			d.problem(k.pos, fmt.Sprintf("%s has two kinds, %s and %s", quote(e.key), found.key, k.key), "keep one")
			return "", entry{}, false
		}
		found = k
	}
	if found == nil {
		first := e.value.entries
		if len(first) == 1 {
			d.problem(first[0].pos, fmt.Sprintf("unknown kind %s of %s", quote(first[0].key), strings.TrimPrefix(what, "a ")), didYouMean(first[0].key, kinds))
		} else {
			d.problem(e.pos, fmt.Sprintf("%s %s has no kind", strings.TrimPrefix(what, "a "), quote(e.key)), hint)
		}
		return "", entry{}, false
	}
	return found.key, *found, true
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func (d *decoder) slot(o *object, s *Source) {
	s.SlotPos, s.PublicationPos = o.at("slot"), o.at("publication")
	if s.Kind != Postgres {
		for _, key := range []string{"slot", "publication", "max_retained_wal"} {
			if o.has(key) {
				o.child(key)
				d.problem(o.at(key), key+" is for postgres sources", "leave it out")
			}
		}
		id := 0
		o.integer("server_id", &id, 1, math.MaxUint32)
		s.ServerID = uint32(id)
		return
	}
	if o.has("server_id") {
		o.child("server_id")
		d.problem(o.at("server_id"), "server_id is for mysql and mariadb sources", "leave it out")
	}
	def := "tailwater_" + strings.ReplaceAll(s.Name, "-", "_")
	s.Slot, s.Publication = def, def
	o.str("slot", &s.Slot)
	o.str("publication", &s.Publication)
	if !legalSlot(s.Slot) {
		d.problem(s.SlotPos, fmt.Sprintf("%s cannot be the name of a replication slot", quote(s.Slot)), "use at most 63 of a-z, 0-9 and _")
	}
	if s.Publication == "" || len(s.Publication) > 63 || strings.ContainsRune(s.Publication, 0) {
		d.problem(s.PublicationPos, fmt.Sprintf("%s cannot be the name of a publication", quote(s.Publication)), "use at most 63 bytes")
	}
}

// messages takes what concerns logical messages and decoding.
func (d *decoder) messages(o *object, s *Source) {
	if s.Kind != Postgres {
		for _, key := range []string{"messages", "signals", "heartbeat_message", "decoding_memory"} {
			if o.has(key) {
				o.child(key)
				d.problem(o.at(key), key+" is for postgres sources", "leave it out")
			}
		}
		return
	}
	o.enum("signals", &s.Signals, SignalsOff, SignalsTables, SignalsConditions)
	o.duration("heartbeat_message", &s.HeartbeatMessage, 0)
	o.size("decoding_memory", &s.DecodingMemory, 64<<10)
	if s.DecodingMemory > 1<<40 {
		d.problem(o.at("decoding_memory"), fmt.Sprintf("decoding_memory must be at most 1TiB, not %s", s.DecodingMemory), "")
	}
	n := o.child("messages")
	for _, item := range d.list(n) {
		text, ok := d.value(item)
		if ok && item == n && text == "off" {
			s.NoMessages = true
			return
		}
		if ok {
			s.Messages = append(s.Messages, text)
		}
	}
	if n != nil && n.kind == listNode && len(n.items) == 0 {
		d.problem(o.at("messages"), "the list of prefixes is empty", "name them: messages: [app.*]; none: messages: off")
	}
}

func legalSlot(name string) bool {
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return name != "" && len(name) <= 63
}

func (d *decoder) patterns(o *object, key string, s *Source) []Pattern {
	var out []Pattern
	for _, n := range d.list(o.child(key)) {
		text, ok := d.value(n)
		if !ok {
			continue
		}
		p, err := parsePattern(text, s.DefaultSchema())
		if err != nil {
			d.problem(n.pos, err.Error(), "write schema.table; * stands for any characters")
			continue
		}
		p.Pos = n.pos
		out = append(out, p)
	}
	return out
}

// parsePattern reads "schema.table", "schema.*", "table" or "*".
func parsePattern(text, schema string) (Pattern, error) {
	p := Pattern{Text: text}
	parts, err := splitName(text)
	switch {
	case err != nil:
		return p, fmt.Errorf("%s names no table: %w", quote(text), err)
	case strings.Contains(text, "*"):
		p.full = strings.Join(parts, ".")
		if len(parts) == 1 && text != "*" {
			p.full = schema + "." + p.full
		}
	case len(parts) == 1:
		p.Schema, p.Table = schema, parts[0]
		p.full = schema + "." + parts[0]
	case len(parts) == 2:
		p.Schema, p.Table = parts[0], parts[1]
		p.full = parts[0] + "." + parts[1]
	default:
		return p, fmt.Errorf("%s has too many parts for a table of the source", quote(text))
	}
	return p, nil
}

func (d *decoder) sourceTLS(o *object, s *Source) {
	t := d.object(o.child("tls"), o.at("tls"))
	s.TLS = d.tlsFiles(t)
	t.enum("mode", &s.TLS.Mode, TLSDisable, TLSPrefer, TLSRequire, TLSVerifyCA, TLSVerifyFull)
	t.done()
}

func (d *decoder) tlsFiles(t *object) TLS {
	out := TLS{Pos: t.pos}
	t.path("ca", &out.CA)
	t.path("cert", &out.Cert)
	t.path("key", &out.Key)
	t.str("server_name", &out.ServerName)
	if (out.Cert == "") != (out.Key == "") {
		d.problem(t.pos, "tls needs both cert and key, or neither", "")
	}
	return out
}

func (d *decoder) snapshot(o *object, s *Source) {
	m := d.object(o.child("snapshot"), o.at("snapshot"))
	m.enum("mode", &s.Snapshot.Mode, SnapshotInitial, SnapshotNever)
	m.integer("chunk_rows", &s.Snapshot.ChunkRows, 1, 10_000_000)
	m.integer("workers", &s.Snapshot.Workers, 1, 64)
	m.integer("rate", &s.Snapshot.Rate, 0, math.MaxInt32)
	m.done()
}

// columns takes { "schema.table.column": drop | mask | { mask: TEXT } |
// { hash: KEY } | { truncate: N } }.
func (d *decoder) columns(o *object, s *Source) {
	m := d.object(o.child("columns"), o.at("columns"))
	if m.n == nil {
		return
	}
	for _, e := range m.n.entries {
		r := ColumnRule{Pattern: e.key, Pos: e.pos, Mask: "***"}
		if strings.Count(e.key, ".") < 2 && !strings.Contains(e.key, "*") {
			d.problem(e.pos, fmt.Sprintf("%s names no column", quote(e.key)), "write schema.table.column; * stands for any characters")
		}
		d.columnRule(e, &r)
		s.Columns = append(s.Columns, r)
	}
}

func (d *decoder) columnRule(e entry, r *ColumnRule) {
	const hint = "write drop, mask, { mask: TEXT }, { hash: \"${KEY}\" } or { truncate: N }"
	if e.value.kind != mapNode {
		text, ok := d.value(e.value)
		if !ok {
			return
		}
		if text != ColumnDrop && text != ColumnMask {
			d.problem(e.value.pos, "a column's rule cannot be "+shown(e.value, text), hint)
		}
		r.Action = text
		return
	}
	m := d.object(e.value, e.pos)
	for _, action := range []string{ColumnMask, ColumnHash, ColumnTruncate} {
		if !m.has(action) {
			continue
		}
		if r.Action != "" {
			d.problem(m.at(action), "a column takes one rule", "keep "+r.Action+" or "+action)
		}
		r.Action = action
	}
	m.str(ColumnMask, &r.Mask)
	m.secret(ColumnHash, &r.HashKey)
	m.integer(ColumnTruncate, &r.Length, 0, math.MaxInt32)
	m.done()
	if r.Action == "" && len(m.n.entries) == 0 {
		d.problem(e.pos, "the column's rule is empty", hint)
	}
	if r.Action == ColumnHash && r.HashKey.IsZero() && m.child(ColumnHash).kind == scalarNode {
		d.problem(m.at(ColumnHash), "the key of the hash is empty", "give it a secret text, as in { hash: \"${KEY}\" }")
	}
}
