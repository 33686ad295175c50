package postgres

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/connectors"
)

// signalMessage is a logical message with the prefix "tailwater": a request from inside the database.
type signalMessage struct {
	at      LSN // end of its record
	content string
}

const (
	signalBytes  = 16 << 10 // most content that is read
	signalShown  = 200      // bytes of it that people see
	signalsShown = 8        // of a source, newest last
)

// signalRequest is the content of a signal.
type signalRequest struct {
	Snapshot string `json:"snapshot"` // the table, as schema.table
	Where    string `json:"where"`    // SQL condition on its rows
}

func (sig *signalMessage) parse(allowed Signals) (signalRequest, error) {
	var q signalRequest
	if len(sig.content) > signalBytes {
		return q, fmt.Errorf("it has %d bytes; %d are read", len(sig.content), signalBytes)
	}
	d := json.NewDecoder(bytes.NewReader([]byte(sig.content)))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		return q, fmt.Errorf(`it is not of the form {"snapshot":"schema.table","where":"condition"}: %w`, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return q, errors.New("something follows its JSON object")
	}
	switch {
	case q.Snapshot == "":
		return q, errors.New("it names no table to snapshot")
	case q.Where != "" && allowed != SignalsConditions:
		return q, errors.New("conditions are not taken from signals; `signals: conditions` allows them")
	}
	return q, nil
}

// obey takes a signal of the transaction whose last batch is b: what it begins
// is recorded in b, so that it is begun once. What cannot be obeyed is told and left.
func (s *source) obey(b *change.Batch, sig *signalMessage) {
	q, err := sig.parse(s.o.Signals)
	if err == nil {
		err = s.coordinator.Signal(b, q.Snapshot, q.Where)
	}
	shown := connectors.Signal{Position: sig.at.String(), Time: time.UnixMicro(b.CommitTime), Content: shorten(sig.content)}
	if err != nil {
		shown.Refused = err.Error()
		s.o.Logger.Warn("signal refused", "source", s.o.Source, "position", shown.Position, "content", shown.Content, "err", err)
	} else {
		s.o.Logger.Info("signal obeyed", "source", s.o.Source, "position", shown.Position, "table", q.Snapshot)
	}
	s.connector.signalled(shown)
}

// shorten cuts text at a character for people.
func shorten(text string) string {
	if len(text) <= signalShown {
		return text
	}
	cut := signalShown
	for cut > 0 && text[cut]&0xC0 == 0x80 {
		cut--
	}
	return text[:cut] + "…"
}

// signalled keeps the newest signals; one that is sent again after a reconnect replaces itself.
func (c *Connector) signalled(sig connectors.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := slices.DeleteFunc(c.signals, func(old connectors.Signal) bool { return old.Position == sig.Position })
	if list = append(list, sig); len(list) > signalsShown {
		list = list[len(list)-signalsShown:]
	}
	c.signals = list
}

func (c *Connector) shownSignals() []connectors.Signal {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.signals)
}
