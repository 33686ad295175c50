package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/tailwater/tailwater/server"
)

// Topics implements store.
func (c *client) Topics(ctx context.Context) (t []server.TopicStatus, err error) {
	return t, c.decode(ctx, "/v1/topics", &t)
}

// LogStats implements store.
func (c *client) LogStats(ctx context.Context) (d server.LogDetail, err error) {
	return d, c.decode(ctx, "/v1/log", &d)
}

// Records implements store.
func (c *client) Records(ctx context.Context, q server.RecordQuery, fn func(line []byte) error) error {
	path := "/v1/topics/" + escape(q.Topic)
	if !q.Follow {
		return c.lines(ctx, path+"/records"+recordParams(q), fn)
	}
	return c.lines(ctx, path+"/stream"+recordParams(q), func(line []byte) error {
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			return nil
		}
		if len(data) > 0 && data[0] == '"' {
			var text string
			if err := json.Unmarshal(data, &text); err == nil {
				return c.streamError(text)
			}
		}
		return fn(data)
	})
}

// streamError is what ended a stream of records.
func (c *client) streamError(text string) error {
	err := fmt.Errorf("%s ended the stream: %s", c.where, text)
	if text == server.Stopping {
		return unreachable(err)
	}
	return err
}

// params collects the parameters that are not what they are without.
type params struct{ v url.Values }

func (p params) number(name string, n, none int64) {
	if n != none {
		p.v.Set(name, strconv.FormatInt(n, 10))
	}
}

func (p params) time(name string, t time.Time) {
	if !t.IsZero() {
		p.v.Set(name, t.UTC().Format(time.RFC3339Nano))
	}
}

func (p params) String() string {
	if len(p.v) == 0 {
		return ""
	}
	return "?" + p.v.Encode()
}

func recordParams(q server.RecordQuery) string {
	p := params{url.Values{}}
	p.number("from_offset", q.FromOffset, -1)
	p.number("to_offset", q.ToOffset, -1)
	p.number("from_csn", int64(q.FromCSN), 0)
	p.number("partition", int64(q.Partition), -1)
	p.number("limit", int64(q.Limit), 0)
	p.time("from_time", q.FromTime)
	if q.Tail {
		p.number("last", int64(q.Last), -1)
	}
	if q.Key != "" {
		p.v.Set("key", q.Key)
	}
	if q.CurrentSchema {
		p.v.Set("schema", "current")
	}
	return p.String()
}

// Batches implements store.
func (c *client) Batches(ctx context.Context, q server.BatchQuery, fn func(line []byte) error) error {
	p := params{url.Values{}}
	p.number("from_offset", q.FromOffset, -1)
	p.number("to_offset", q.ToOffset, -1)
	p.number("from_csn", int64(q.FromCSN), 0)
	p.number("partition", int64(q.Partition), -1)
	p.number("limit", int64(q.Limit), 0)
	p.time("from_time", q.FromTime)
	if q.Records {
		p.v.Set("records", "1")
	}
	return c.lines(ctx, "/v1/topics/"+escape(q.Topic)+"/batches"+p.String(), fn)
}

// CheckLog asks for a check of the log. Its last line is the result.
func (c *client) CheckLog(ctx context.Context, fn func(server.Damage) error) (r server.CheckResult, err error) {
	whole := false
	err = c.lines(ctx, "/v1/log/check", func(line []byte) error {
		var kind struct {
			OK *bool `json:"ok"`
		}
		if err := json.Unmarshal(line, &kind); err != nil {
			return fmt.Errorf("read the result of the check: %w", err)
		}
		if kind.OK != nil {
			whole = true
			return json.Unmarshal(line, &r)
		}
		var d server.Damage
		if err := json.Unmarshal(line, &d); err != nil {
			return fmt.Errorf("read the result of the check: %w", err)
		}
		return fn(d)
	})
	if err == nil && !whole {
		err = unreachable(fmt.Errorf("%s broke the check off", c.where))
	}
	return r, err
}

// Compact asks for the compaction of topics.
func (c *client) Compact(ctx context.Context, glob string, fn func(server.Compacted) error) error {
	return c.linesOf(ctx, http.MethodPost, "/v1/topics/"+escape(glob)+"/compact", func(line []byte) error {
		var r server.Compacted
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("read what was compacted: %w", err)
		}
		return fn(r)
	})
}
