package postgres

import (
	"io"
	"log/slog"
	"strings"
	"time"
)

// Options says what to capture and how.
type Options struct {
	Source string // the source's name, first part of its topics
	DSN    string // URL or keywords as libpq takes them; it is a secret
	// Tables are "schema.table"; * stands for any characters, dots included; a
	// name without a dot is in public. Case counts. Exclude wins.
	Tables  []string
	Exclude []string

	// Messages are the prefixes of logical messages to capture (PostgreSQL 14 and
	// later), * as in Tables; those that begin with "tailwater." and "tailwater"
	// itself are never captured. Default *; NoMessages: none.
	Messages   []string
	NoMessages bool
	// Signals says which signals are obeyed. Default: tables.
	Signals Signals

	Slot        string // default "tailwater_" and the source's name
	Publication string // default "tailwater_" and the source's name

	TLS TLS
	// InsecurePlaintext allows connections beyond this machine without TLS, or
	// without verifying who answers.
	InsecurePlaintext bool

	// StatusInterval is how often the server is told what is durable; at most a
	// third of its wal_sender_timeout. Default 1s.
	StatusInterval time.Duration
	// TickInterval is how often the position of an idle source is written to
	// the log, so that its slot can follow. Default 10s.
	TickInterval time.Duration
	// HeartbeatMessage is how often a logical message is written to the database,
	// so that it has a log of its own that moves. Default 0: never.
	HeartbeatMessage time.Duration
	// StatsInterval is how often the server is asked how much log it keeps. Default 5s.
	StatsInterval time.Duration
	// Discover is how often new tables are looked for. Default 10s; negative: never.
	Discover time.Duration
	// QueueBytes bounds the decoded transactions that wait for Next. Default 32 MiB.
	QueueBytes int
	// PartBytes is the size above which a transaction is handed over in parts. Default 8 MiB.
	PartBytes int
	// DecodingMemory is the server's logical_decoding_work_mem for this source, bytes:
	// a transaction that is larger comes while it is in progress. Default 0: as the server has it.
	DecodingMemory int
	// BusyTimeout is how long Open waits for a slot that is still held, as by a
	// predecessor whose end the server has not noticed. Default 20s.
	BusyTimeout time.Duration

	Snapshot SnapshotOptions

	Logger *slog.Logger     // default: none
	Clock  func() time.Time // default time.Now; for rates and status only
}

// Signals says what a logical message with the prefix "tailwater" may ask for.
type Signals string

// The kinds of Signals. Whoever may connect to the database may write messages,
// and a condition is SQL that the role of the source runs.
const (
	SignalsOff        Signals = "off"
	SignalsTables     Signals = "tables"     // snapshots of whole tables
	SignalsConditions Signals = "conditions" // also with a condition
)

// SnapshotOptions says how tables are read.
type SnapshotOptions struct {
	Never     bool // no first snapshot: only changes from now on
	ChunkRows int  // rows a chunk aims at. Default 10000
	Workers   int  // chunks read at the same time. Default 1
	Rate      int  // rows a second at most. 0: no limit
}

// TLS adds to the DSN; an empty field leaves what the DSN says.
type TLS struct {
	Mode       string // disable, prefer, require, verify-ca, verify-full
	CA         string // file of PEM certificates
	Cert       string // file with the client's certificate
	Key        string // file with its key
	ServerName string // name to verify; default the host's
}

func (o Options) withDefaults() Options {
	name := "tailwater_" + slotName(o.Source)
	setDefault(&o.Slot, name)
	setDefault(&o.Publication, "tailwater_"+o.Source)
	setDefault(&o.StatusInterval, time.Second)
	setDefault(&o.TickInterval, 10*time.Second)
	setDefault(&o.StatsInterval, 5*time.Second)
	setDefault(&o.Discover, 10*time.Second)
	setDefault(&o.QueueBytes, 32<<20)
	setDefault(&o.PartBytes, 8<<20)
	setDefault(&o.BusyTimeout, 20*time.Second)
	setDefault(&o.Signals, SignalsTables)
	if len(o.Messages) == 0 {
		o.Messages = []string{"*"}
	}
	setDefault(&o.Snapshot.ChunkRows, 10000)
	setDefault(&o.Snapshot.Workers, 1)
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return o
}

func setDefault[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

// slotName maps a name to what a slot may be called: a-z, 0-9 and _.
func slotName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}, name)
}
