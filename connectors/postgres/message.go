package postgres

import (
	"fmt"
	"strings"

	"github.com/tailwater/tailwater/change"
)

// Prefixes of our own logical messages; what begins like the last two is ours too
// and is never captured.
const (
	prefixSignal    = "tailwater"
	prefixHeartbeat = "tailwater.heartbeat"
	prefixNudge     = "tailwater.nudge"
)

// messageRules says what becomes of a logical message.
type messageRules struct {
	schema  *change.Schema // of the topic _messages.SOURCE
	capture []pattern      // prefixes
	signals bool
}

func newMessageRules(o *Options) messageRules {
	m := messageRules{schema: change.MessageSchema(o.Source), signals: o.Signals != SignalsOff}
	if !o.NoMessages {
		for _, p := range o.Messages {
			m.capture = append(m.capture, pattern{text: p, literal: !strings.Contains(p, "*")})
		}
	}
	return m
}

// takes reports whether a message is captured, or is a signal.
func (r *messageRules) takes(m *logicalMessage) (captured, signal bool) {
	if m.prefix == prefixSignal {
		return false, r.signals && len(m.content) > 0 // earlier versions wrote empty ones
	}
	return !strings.HasPrefix(m.prefix, prefixSignal+".") && matchAny(r.capture, m.prefix), false
}

// logical takes a message. One that is no part of a transaction stands at the end
// of its record, between transactions: all that committed before it has come.
func (a *assembler) logical(m logicalMessage, r *wireReader) error {
	if err := r.end(); err != nil {
		return err
	}
	if m.transactional != a.inTx {
		return fmt.Errorf("%w: a logical message at %s that is transactional=%v, inside a transaction=%v", errMessage, m.lsn, m.transactional, a.inTx)
	}
	captured, isSignal := a.messages.takes(&m)
	if !captured && !isSignal || a.holds(&m) {
		return nil
	}
	b, err := a.messageBatch(&m)
	if err != nil {
		return err
	}
	if !isSignal {
		b.AddMessage(a.messages.schema, m.prefix, m.transactional, m.content)
	}
	if a.block != nil {
		a.block.messages = true
	}
	sig := signalMessage{at: m.lsn, content: string(m.content)}
	switch {
	case isSignal && a.block != nil:
		a.block.signals = append(a.block.signals, sig)
	case isSignal && m.transactional:
		a.signals = append(a.signals, sig)
	case isSignal:
		return a.emit(b, m.lsn, []signalMessage{sig})
	case !m.transactional:
		return a.emit(b, m.lsn, nil)
	}
	return nil
}

// holds reports whether the log has the message already.
func (a *assembler) holds(m *logicalMessage) bool {
	if m.transactional {
		return a.skip
	}
	return m.lsn <= a.held
}

// messageBatch returns the batch of a message: its transaction's, or one of its own,
// which has no transaction id and the time at which the server sent it.
func (a *assembler) messageBatch(m *logicalMessage) (*change.Batch, error) {
	if m.transactional {
		return a.events()
	}
	at := place{a.system, a.timeline, m.lsn, m.lsn}
	return &change.Batch{Source: a.source, Kind: change.Transaction, Pos: at.position(), CommitTime: change.UnixMicros(a.sent)}, nil
}
