package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/server"
)

// maxCSN is the largest that a log gives.
const maxCSN = 1<<53 - 1

// rangeFlags choose a range of the log.
type rangeFlags struct {
	fromOffset, toOffset int64
	fromCSN              uint64
	fromTime             string
	partition, limit     int

	time time.Time // of fromTime
}

func (r *rangeFlags) add(c *cobra.Command, what string) {
	f := c.Flags()
	f.Int64Var(&r.fromOffset, "from-offset", 0, "first offset of each partition (default: the start)")
	f.Int64Var(&r.toOffset, "to-offset", 0, "offset behind the last one (default: the end)")
	f.Uint64Var(&r.fromCSN, "from-csn", 0, "first commit sequence number")
	f.StringVar(&r.fromTime, "from-time", "", "first commit time, as in 2026-01-02T03:04:05Z")
	f.IntVar(&r.partition, "partition", 0, "only this partition (default: all)")
	f.IntVar(&r.limit, "limit", 0, "stop after this many "+what+" (default: no limit)")
}

// check reads what was given; what was not is -1, or 0 where that means none.
func (r *rangeFlags) check(c *cobra.Command) error {
	set := c.Flags().Changed
	for _, flag := range []struct {
		name string
		n    int64
	}{{"from-offset", r.fromOffset}, {"to-offset", r.toOffset}, {"partition", int64(r.partition)}, {"limit", int64(r.limit)}} {
		if flag.n < 0 {
			return misuse("--%s must not be negative", flag.name)
		}
	}
	if set("limit") && r.limit == 0 {
		return misuse("--limit must be above zero")
	}
	if r.fromCSN > maxCSN {
		return misuse("--from-csn %d is beyond the largest, %d", r.fromCSN, uint64(maxCSN))
	}
	if set("from-time") {
		var err error
		if r.time, err = time.Parse(time.RFC3339Nano, r.fromTime); err != nil {
			return misuse("--from-time %q is no time like 2026-01-02T03:04:05Z", r.fromTime)
		}
	}
	if set("from-offset") && set("to-offset") && r.toOffset < r.fromOffset {
		return misuse("--to-offset %d is below --from-offset %d", r.toOffset, r.fromOffset)
	}
	if !set("from-offset") {
		r.fromOffset = -1
	}
	if !set("to-offset") {
		r.toOffset = -1
	}
	if !set("partition") {
		r.partition = -1
	}
	return nil
}

// recordFlags are the filters of cat and tail.
type recordFlags struct {
	rangeFlags
	key    string
	schema string
}

func (r *recordFlags) add(c *cobra.Command) {
	r.rangeFlags.add(c, "records")
	c.Flags().StringVar(&r.key, "key", "", "only this key, written like a document's id")
	c.Flags().StringVar(&r.schema, "schema", "written", `"current" projects rows to the latest layout of the table, "written" shows each as it was written`)
}

func (r *recordFlags) query(c *cobra.Command, topic string) (server.RecordQuery, error) {
	if err := r.check(c); err != nil {
		return server.RecordQuery{}, err
	}
	if err := checkGlob(topic); err != nil {
		return server.RecordQuery{}, err
	}
	if r.schema != "current" && r.schema != "written" {
		return server.RecordQuery{}, misuse("--schema %q is none of current, written", r.schema)
	}
	if c.Flags().Changed("key") && r.key == "" {
		return server.RecordQuery{}, misuse("--key is empty; an empty part is written \\e")
	}
	return server.RecordQuery{
		Topic: topic, FromOffset: r.fromOffset, ToOffset: r.toOffset, FromCSN: r.fromCSN, FromTime: r.time,
		Partition: r.partition, Key: r.key, Limit: r.limit, CurrentSchema: r.schema == "current",
	}, nil
}

// checkGlob reports a topic argument that can name none.
func checkGlob(topic string) error {
	switch {
	case topic == "":
		return misuse("%q is no topic and no glob of topics", topic)
	case strings.Contains(topic, "/"):
		return misuse("%q is no topic and no glob of topics; a byte that is no letter, digit or _ is written -hh in their names: %s",
			topic, strings.ReplaceAll(topic, "/", change.EscapeName("/")))
	}
	return nil
}
