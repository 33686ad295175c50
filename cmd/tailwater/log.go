package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tailwater/tailwater/server"
)

func (p *program) logCommand() *cobra.Command {
	topics := &cobra.Command{
		Use: "topics", Short: "List the topics", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.with(cmd, p.logTopics) },
	}
	p.addrFlag(topics)
	return p.group("log", "Read the change log",
		topics, p.logCatCommand(), p.logTailCommand())
}

// recordFlags are the filters of cat and tail.
type recordFlags struct {
	q        server.RecordQuery
	fromTime string
	schema   string
	fromCSN  uint64
}

func (r *recordFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.Int64Var(&r.q.FromOffset, "from-offset", -1, "first offset of each partition (default: the start)")
	f.Int64Var(&r.q.ToOffset, "to-offset", -1, "offset behind the last one (default: the end)")
	f.Uint64Var(&r.fromCSN, "from-csn", 0, "first commit sequence number")
	f.StringVar(&r.fromTime, "from-time", "", "first commit time, as in 2026-01-02T03:04:05Z")
	f.IntVar(&r.q.Partition, "partition", -1, "only this partition")
	f.StringVar(&r.q.Key, "key", "", "only this key, written like a document's id")
	f.IntVar(&r.q.Limit, "limit", 0, "stop after this many records (default: no limit)")
	f.StringVar(&r.schema, "schema", "written", `"current" projects rows to the latest layout of the table, "written" shows each as it was written`)
}

func (r *recordFlags) query(topic string) (server.RecordQuery, error) {
	q := r.q
	q.Topic, q.FromCSN = topic, r.fromCSN
	switch r.schema {
	case "current":
		q.CurrentSchema = true
	case "written":
	default:
		return q, misuse("--schema %q is none of current, written", r.schema)
	}
	if r.fromTime != "" {
		t, err := time.Parse(time.RFC3339Nano, r.fromTime)
		if err != nil {
			return q, misuse("--from-time %q is no time like 2026-01-02T03:04:05Z", r.fromTime)
		}
		q.FromTime = t
	}
	for flag, v := range map[string]int64{"--from-offset": q.FromOffset, "--to-offset": q.ToOffset, "--partition": int64(q.Partition)} {
		if v < -1 {
			return q, misuse("%s must not be negative", flag)
		}
	}
	if q.Limit < 0 {
		return q, misuse("--limit must not be negative")
	}
	return q, nil
}

func (p *program) logCatCommand() *cobra.Command {
	var flags recordFlags
	c := &cobra.Command{
		Use:   "cat TOPIC",
		Short: "Print the records of a topic",
		Long: `Print the records of a topic, or of all topics that a glob matches (* crosses dots).
One partition comes in offset order, several in the order of their commits.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := flags.query(args[0])
			if err != nil {
				return err
			}
			return p.with(cmd, func(ctx context.Context, s store) error { return p.records(ctx, s, q, false) })
		},
	}
	flags.add(c)
	p.addrFlag(c)
	return c
}

func (p *program) logTailCommand() *cobra.Command {
	var flags recordFlags
	var follow bool
	var last int
	c := &cobra.Command{
		Use:   "tail TOPIC",
		Short: "Print the last records of a topic, and with -f those that come",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := flags.query(args[0])
			if err != nil {
				return err
			}
			if last < 0 {
				return misuse("-n must not be negative")
			}
			return p.with(cmd, func(ctx context.Context, s store) error { return p.tail(ctx, s, q, last, follow) })
		},
	}
	flags.add(c)
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with the records that come, until Ctrl-C")
	c.Flags().IntVarP(&last, "lines", "n", 10, "how many records")
	p.addrFlag(c)
	return c
}

// tail prints the last records and then, if asked, those that come.
func (p *program) tail(ctx context.Context, s store, q server.RecordQuery, last int, follow bool) error {
	ring := make([][]byte, 0, last)
	seen := uint64(0)
	next := 0
	err := s.Records(ctx, q, func(line []byte) error {
		var r struct {
			CSN uint64 `json:"csn"`
		}
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("read a record: %w", err)
		}
		seen = max(seen, r.CSN)
		switch {
		case last == 0:
		case len(ring) < last:
			ring = append(ring, append([]byte(nil), line...))
		default:
			ring[next] = append(ring[next][:0], line...)
			next = (next + 1) % last
		}
		return nil
	})
	if err != nil {
		return p.topicError(q.Topic, err)
	}
	for i := range ring {
		if err := p.printRecord(p.stdout.Write, ring[(next+i)%len(ring)]); err != nil {
			return err
		}
	}
	if !follow {
		return nil
	}
	if _, online := s.(*client); !online {
		return &exitError{exitUnreachable, fmt.Errorf("no daemon runs on this data directory, so no records will come; start it with: tailwater run")}
	}
	q.FromCSN = max(q.FromCSN, seen+1)
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	err = p.records(ctx, s, q, true)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (p *program) records(ctx context.Context, s store, q server.RecordQuery, follow bool) error {
	q.Follow = follow
	out := newLineWriter(p.stdout)
	err := s.Records(ctx, q, func(line []byte) error {
		if err := p.printRecord(out.w.Write, line); err != nil {
			return err
		}
		if follow {
			return out.flush()
		}
		return nil
	})
	if ferr := out.flush(); err == nil {
		err = ferr
	}
	return p.topicError(q.Topic, err)
}

func (p *program) topicError(topic string, err error) error {
	if err != nil && p.notFound(err) {
		return &exitError{exitFailed, fmt.Errorf("topic %s: %w; tailwater log topics lists them", topic, err)}
	}
	return err
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
	_, err := write(fmt.Appendf(nil, "%s  %d.%d  %s/%d@%d  %s  %s  %s\n", r.Time, r.CSN, r.Seq, r.Topic, r.Partition, r.Offset, r.Op, orNull(r.Key), orNull(r.After)))
	return err
}

func orNull(text json.RawMessage) string {
	if len(text) == 0 {
		return "null"
	}
	return string(text)
}

func (p *program) logTopics(ctx context.Context, s store) error {
	topics, err := s.Topics(ctx)
	if err != nil {
		return err
	}
	if p.json {
		for _, t := range topics {
			if err := p.printJSON(t); err != nil {
				return err
			}
		}
		return nil
	}
	if len(topics) == 0 {
		p.say("there are no topics")
		return nil
	}
	rows := [][]string{{"TOPIC", "PARTITIONS", "RECORDS", "SIZE"}}
	for _, t := range topics {
		rows = append(rows, []string{printable(t.Name), fmt.Sprint(t.Partitions), countText(t.Records), bytesText(t.Bytes)})
	}
	return table(p.stdout, rows)
}
