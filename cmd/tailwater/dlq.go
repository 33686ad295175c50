package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/server"
)

// letter is a rejected document that no good version has replaced.
type letter struct {
	Sink  string          `json:"sink"`
	CSN   uint64          `json:"csn"`
	Time  string          `json:"time"`
	Key   json.RawMessage `json:"key"`   // view and id
	Value json.RawMessage `json:"value"` // reason and version
}

func (p *program) dlqCommand() *cobra.Command {
	list := &cobra.Command{
		Use:   "list [SINK]",
		Short: "List the documents that a sink has rejected",
		Args:  takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			topic := change.TopicDeadLetters + "*"
			if len(args) == 1 {
				topic = change.TopicDeadLetters + change.EscapeName(args[0])
			}
			return p.with(cmd, func(ctx context.Context, s store) error { return p.dlqList(ctx, s, topic) })
		},
	}
	p.addrFlag(list)
	return p.group("dlq", "Look at rejected documents", list)
}

func (p *program) dlqList(ctx context.Context, s store, topic string) error {
	letters, err := deadLetters(ctx, s, topic)
	if err != nil && !p.notFound(err) {
		return err
	}
	if p.json {
		for _, l := range letters {
			if err := p.printJSON(l); err != nil {
				return err
			}
		}
		return nil
	}
	if len(letters) == 0 {
		p.say("no document stands rejected")
		return nil
	}
	rows := [][]string{{"SINK", "TIME", "DOCUMENT", "REASON"}}
	for _, l := range letters {
		rows = append(rows, []string{l.Sink, l.Time, printable(string(l.Key)), printable(string(l.Value))})
	}
	return table(p.stdout, rows)
}

// sinkOf is the sink whose dead letters a topic holds.
func sinkOf(topic string) string {
	name := strings.TrimPrefix(topic, change.TopicDeadLetters)
	if plain, err := change.UnescapeName(name); err == nil {
		return plain
	}
	return name
}

// deadLetters reads the newest record of each key and leaves out those that
// were cleared, in the order in which they came.
func deadLetters(ctx context.Context, s store, topic string) ([]letter, error) {
	newest := map[string]letter{}
	var order []string
	q := server.RecordQuery{Topic: topic, FromOffset: -1, ToOffset: -1, Partition: -1}
	err := s.Records(ctx, q, func(line []byte) error {
		var r struct {
			Topic string          `json:"topic"`
			CSN   uint64          `json:"csn"`
			Op    string          `json:"op"`
			Time  string          `json:"ts_commit"`
			Key   json.RawMessage `json:"key"`
			After json.RawMessage `json:"after"`
		}
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("read a dead letter: %w", err)
		}
		id := r.Topic + " " + string(r.Key)
		if r.Op == "delete" || len(r.After) == 0 || string(r.After) == "null" {
			delete(newest, id)
			return nil
		}
		if _, ok := newest[id]; !ok {
			order = append(order, id)
		}
		newest[id] = letter{sinkOf(r.Topic), r.CSN, r.Time, r.Key, r.After}
		return nil
	})
	var out []letter
	for _, id := range order {
		if l, ok := newest[id]; ok {
			out = append(out, l)
			delete(newest, id)
		}
	}
	return out, err
}
