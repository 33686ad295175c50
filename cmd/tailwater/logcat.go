package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tailwater/tailwater/server"
)

func (p *program) logCatCommand() *cobra.Command {
	var flags recordFlags
	c := &cobra.Command{
		Use:   "cat TOPIC",
		Short: "Print the records of a topic",
		Long: `Print the records of a topic, or of all topics that a glob matches (* crosses dots).
One partition comes in offset order, several in the order of their commits.`,
		Args: takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := flags.query(cmd, args[0])
			if err != nil {
				return err
			}
			return p.with(cmd, func(ctx context.Context, s store) error { return p.records(ctx, s, q) })
		},
	}
	flags.add(c)
	p.addrFlag(c)
	return c
}

// records prints what a query finds, at once where it follows the log.
func (p *program) records(ctx context.Context, s store, q server.RecordQuery) error {
	out := newLineWriter(p.stdout)
	err := s.Records(ctx, q, func(line []byte) error {
		if err := p.printRecord(out.w.Write, line); err != nil {
			return err
		}
		if q.Follow {
			return out.flush()
		}
		return nil
	})
	if ferr := out.flush(); err == nil {
		err = ferr
	}
	return p.topicError(err)
}

// printRecord prints a record's line: as it is, or for people.
func (p *program) printRecord(write func([]byte) (int, error), line []byte) error {
	if p.json {
		_, err := write(append(line[:len(line):len(line)], '\n'))
		return err
	}
	var r struct {
		Topic     string          `json:"topic"`
		Partition int32           `json:"partition"`
		Offset    int64           `json:"offset"`
		CSN       uint64          `json:"csn"`
		Seq       uint32          `json:"seq"`
		Op        string          `json:"op"`
		Key       json.RawMessage `json:"key"`
		After     json.RawMessage `json:"after"`
		Time      string          `json:"ts_commit"`
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return fmt.Errorf("read a record: %w", err)
	}
	_, err := write(fmt.Appendf(nil, "%s  %d.%d  %s/%d@%d  %s  %s  %s\n", r.Time, r.CSN, r.Seq, printable(r.Topic), r.Partition, r.Offset, r.Op,
		printable(orNull(r.Key)), printable(orNull(r.After))))
	return err
}

func orNull(text json.RawMessage) string {
	if len(text) == 0 {
		return "null"
	}
	return string(text)
}
