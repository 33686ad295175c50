package config

import (
	"strings"
	"time"
)

// SourceKind says which database a source is.
type SourceKind string

// The kinds of sources.
const (
	Postgres SourceKind = "postgres"
	MySQL    SourceKind = "mysql"
	MariaDB  SourceKind = "mariadb"
)

// What happens when a source's limit is reached.
const (
	OnLimitAlert      = "alert"      // keep the slot; say it in status and metrics
	OnLimitResnapshot = "resnapshot" // release the slot; snapshot again
)

// Source is one database to capture.
type Source struct {
	Name string
	Pos  Pos
	Kind SourceKind

	DSN      Secret // as resolved; Address is its printable part
	DSNPos   Pos
	Address  Address
	Tables   []Pattern     // at least one
	Exclude  []Pattern     // wins over Tables
	Discover time.Duration // how soon a new table that matches is captured; default 10s

	Slot           string // PostgreSQL; default "tailwater_" + name
	SlotPos        Pos
	Publication    string // PostgreSQL; default "tailwater_" + name
	PublicationPos Pos
	ServerID       uint32 // MySQL and MariaDB; 0 = derived from the name

	TLS               TLS
	InsecurePlaintext bool // outside loopback without verified TLS; default false

	Snapshot Snapshot
	Columns  []ColumnRule

	Heartbeat        time.Duration // 0 = off. Default 10s
	HeartbeatMessage time.Duration // PostgreSQL: how often a message is written to the database; 0 = never (default)
	MaxRetainedWAL   Size          // 0 = no limit (default)
	OnLimit          string        // OnLimitAlert (default) or OnLimitResnapshot

	DecodingMemory Size // PostgreSQL: logical_decoding_work_mem; 0 = the server's (default)

	Messages   []string // PostgreSQL: prefixes of logical messages to capture, with *; default *
	NoMessages bool     // messages: off
	Signals    string   // PostgreSQL: SignalsOff, SignalsTables (default) or SignalsConditions
}

// What a source's signals may ask for.
const (
	SignalsOff        = "off"
	SignalsTables     = "tables"     // snapshots of whole tables
	SignalsConditions = "conditions" // also of the rows with a condition
)

// Captures tells whether the patterns take a table.
func (s *Source) Captures(schema, table string) bool {
	return matchAny(s.Tables, schema, table) && !matchAny(s.Exclude, schema, table)
}

// DefaultSchema is the schema of a table that is named without one: public on
// PostgreSQL, the DSN's database elsewhere.
func (s *Source) DefaultSchema() string {
	if s.Kind == Postgres {
		return "public"
	}
	return s.Address.Database
}

// Address is the printable part of a DSN.
type Address struct {
	User     string
	Hosts    []HostPort // more than one = tried in turn (PostgreSQL)
	Database string     // "" = the server's default
	SSLMode  string     // the DSN's sslmode or tls parameter; "" = not given
}

// HostPort is one server. A Host that starts with / is a unix socket's directory.
type HostPort struct {
	Host string
	Port int // 0 = the default port
}

// Loopback tells whether every host is this machine.
func (a Address) Loopback() bool {
	for _, h := range a.Hosts {
		if !isLoopback(h.Host) {
			return false
		}
	}
	return true
}

// String is user@host:port/database.
func (a Address) String() string {
	var b strings.Builder
	if a.User != "" {
		b.WriteString(a.User + "@")
	}
	for i, h := range a.Hosts {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(h.String())
	}
	if a.Database != "" {
		b.WriteString("/" + a.Database)
	}
	return b.String()
}

// Pattern names tables: "schema.table" in which * stands for any characters,
// dots included. Case counts.
type Pattern struct {
	Text   string // as written
	Schema string // a literal's schema, "" if the pattern has a *
	Table  string // a literal's table, "" if the pattern has a *
	Pos    Pos

	full string // with the default schema filled in
}

// Literal tells a pattern that names exactly one table.
func (p Pattern) Literal() bool { return p.Table != "" }

// Full is the pattern with the default schema filled in and without quotes.
func (p Pattern) Full() string { return p.full }

// Match tells whether the pattern takes a table.
func (p Pattern) Match(schema, table string) bool {
	if p.Literal() {
		return p.Schema == schema && p.Table == table
	}
	return glob(p.full, schema+"."+table)
}

func matchAny(ps []Pattern, schema, table string) bool {
	for _, p := range ps {
		if p.Match(schema, table) {
			return true
		}
	}
	return false
}

// glob matches text against a pattern in which * is any run of characters.
func glob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	text = text[len(parts[0]):]
	last := parts[len(parts)-1]
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(text, p)
		if i < 0 {
			return false
		}
		text = text[i+len(p):]
	}
	return strings.HasSuffix(text, last)
}

// Modes of TLS, in libpq's words.
const (
	TLSDisable    = "disable"
	TLSPrefer     = "prefer"  // if the server has it; not verified
	TLSRequire    = "require" // not verified
	TLSVerifyCA   = "verify-ca"
	TLSVerifyFull = "verify-full"
)

// TLS says how a connection is protected.
type TLS struct {
	// Mode of a source: as given, else the DSN's, else prefer on loopback and
	// with insecure_plaintext, else verify-full. Not used by sinks.
	Mode       string
	CA         string // file of PEM certificates; "" = the system's
	Cert       string // file with the client's certificate; "" = none
	Key        string // file with its key
	ServerName string // to verify; "" = the host's name
	Pos        Pos
}

// Modes of a source's snapshot.
const (
	SnapshotInitial = "initial" // what is not in the log yet is read
	SnapshotNever   = "never"   // only changes from now on
)

// Snapshot says how a source's tables are read.
type Snapshot struct {
	Mode      string // SnapshotInitial (default) or SnapshotNever
	ChunkRows int    // rows a chunk aims at; default 10000
	Workers   int    // chunks read at the same time; default 1
	Rate      int    // rows a second at most; 0 = no limit (default)
}

// Actions of a ColumnRule.
const (
	ColumnDrop     = "drop"     // the column does not exist
	ColumnMask     = "mask"     // a fixed text instead of the value
	ColumnHash     = "hash"     // HMAC-SHA-256 of the value
	ColumnTruncate = "truncate" // the first Length characters
)

// ColumnRule changes the values of columns before anything is stored.
type ColumnRule struct {
	Pattern string // "schema.table.column", * as in Pattern
	Pos     Pos
	Action  string
	Mask    string // ColumnMask; default "***"
	HashKey Secret // ColumnHash
	Length  int    // ColumnTruncate, in characters
}

// Match tells whether the rule takes a column.
func (r ColumnRule) Match(schema, table, column string) bool {
	return glob(r.Pattern, schema+"."+table+"."+column)
}
