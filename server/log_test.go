package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// logFake is a log with a damaged place.
type logFake struct {
	fake
	records RecordQuery
	batches BatchQuery
}

func (f *logFake) Records(_ context.Context, q RecordQuery, fn func([]byte) error) error {
	f.records = q
	if q.Topic == "none" {
		return fmt.Errorf("%w: no topic matches %q", ErrNotFound, q.Topic)
	}
	if q.Topic == "old" {
		return fmt.Errorf("%w: the first kept offset is 7", ErrGone)
	}
	if q.Begun != nil {
		q.Begun()
	}
	if err := fn([]byte(`{"offset":1}`)); err != nil || q.Topic != "broken" {
		return err
	}
	return errors.New("disk on \"fire\"\n")
}

func (f *logFake) Batches(_ context.Context, q BatchQuery, fn func([]byte) error) error {
	f.batches = q
	return fn([]byte(`{"byte":16}`))
}

func (f *logFake) LogStats(context.Context) (LogDetail, error) {
	return LogDetail{FrontierCSN: 7, Live: &LogCounters{Syncs: 3}, Topics: []TopicStatus{}}, nil
}

func (f *logFake) CheckLog(_ context.Context, fn func(Damage) error) (CheckResult, error) {
	return CheckResult{Damages: 1, Records: 5}, fn(Damage{File: "f", Byte: 9, Reason: "r", Fix: "x"})
}

func (f *logFake) Compact(_ context.Context, glob string, fn func(Compacted) error) error {
	if glob == "shop.none" {
		return fmt.Errorf("%w: only topics of cleanup compact", ErrBadRequest)
	}
	return fn(Compacted{Topic: glob, RecordsBefore: 9, RecordsAfter: 4})
}

func TestLogPaths(t *testing.T) {
	h := New(Options{Daemon: &logFake{}})
	for _, tt := range []struct {
		method, path string
		code         int
		want         string
	}{
		{"GET", "/v1/log", 200, `"frontier_csn":7,`},
		{"GET", "/v1/log", 200, `"live":{"appends":0,"appended_bytes":0,"syncs":3}`},
		{"GET", "/v1/log/check", 200, `{"file":"f","byte":9,"reason":"r","fix":"x"}` + "\n" + `{"ok":false,"damages":1,"records":5,"bytes":0,"files":0}` + "\n"},
		{"GET", "/v1/topics/t/batches?records=1", 200, `{"byte":16}` + "\n"},
		{"POST", "/v1/topics/shop.*/compact", 200, `{"topic":"shop.*","records_before":9,"records_after":4,"bytes_before":0,"bytes_after":0}` + "\n"},
		{"POST", "/v1/topics/shop.none/compact", 400, "only topics of cleanup compact"},
		{"GET", "/v1/topics/shop.a/compact", 404, "no such path"},
		{"GET", "/v1/topics/none/records", 404, "no topic matches"},
		{"GET", "/v1/topics/none/stream", 404, "no topic matches"},
		{"GET", "/v1/topics/old/records?from_offset=1", 410, "the first kept offset is 7"},
		{"GET", "/v1/topics/t/records?from-offset=1", 400, `unknown parameter \"from-offset\"; known here: from_offset`},
		{"GET", "/v1/topics/t/stream?records=1", 400, "unknown parameter"},
		{"GET", "/v1/topics/t/batches?key=1", 400, "unknown parameter"},
		{"GET", "/v1/topics/t/records?from_offset=-1", 400, "from_offset is a number from 0"},
		{"GET", "/v1/topics/t/records?to_offset=99999999999999999999", 400, "to_offset is a number"},
		{"GET", "/v1/topics/t/records?from_csn=9007199254740992", 400, "from_csn is a number from 0 to 9007199254740991"},
		{"GET", "/v1/topics/t/records?partition=two", 400, "partition is a number"},
		{"GET", "/v1/topics/t/records?limit=-3", 400, "limit is a number"},
		{"GET", "/v1/topics/t/stream?last=-1", 400, "last is a number"},
		{"GET", "/v1/topics/t/records?schema=curent", 400, "schema is one of written, current"},
		{"GET", "/v1/topics/t/records?from_time=now", 400, "from_time is a time like"},
		{"GET", "/v1/topics/t/records?limit=1&limit=2", 400, "limit is given 2 times"},
		{"GET", "/v1/topics/t/batches?records=yes", 400, "records is a number from 0 to 1"},
	} {
		code, text, header := request(t, h, tt.method, tt.path, "")
		if code != tt.code || !strings.Contains(text, tt.want) {
			t.Errorf("%s %s: %d %s, want %d with %s", tt.method, tt.path, code, text, tt.code, tt.want)
		}
		if code >= 400 && header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: an error of type %s", tt.method, tt.path, header.Get("Content-Type"))
		}
	}
}

func TestLogQueries(t *testing.T) {
	f := &logFake{}
	h := New(Options{Daemon: f})
	request(t, h, "GET", "/v1/topics/shop.%2A/records?from_offset=5&to_offset=9&from_csn=7&from_time=2026-01-02T03:04:05.5Z&partition=0&key=a%7Cb&limit=2&schema=current&last=0", "")
	want := RecordQuery{Topic: "shop.*", FromOffset: 5, ToOffset: 9, FromCSN: 7, FromTime: time.Date(2026, 1, 2, 3, 4, 5, 5e8, time.UTC), Key: "a|b", Limit: 2, CurrentSchema: true, Tail: true}
	if fmt.Sprintf("%+v", f.records) != fmt.Sprintf("%+v", want) {
		t.Errorf("asked %+v, want %+v", f.records, want)
	}
	request(t, h, "GET", "/v1/topics/t/records", "")
	if want := (RecordQuery{Topic: "t", FromOffset: -1, ToOffset: -1, Partition: -1}); fmt.Sprintf("%+v", f.records) != fmt.Sprintf("%+v", want) {
		t.Errorf("without parameters asked %+v", f.records)
	}
	request(t, h, "GET", "/v1/topics/t/batches?partition=3&records=1&limit=4&from_csn=1", "")
	if want := (BatchQuery{Topic: "t", FromOffset: -1, ToOffset: -1, FromCSN: 1, Partition: 3, Limit: 4, Records: true}); f.batches != want {
		t.Errorf("asked %+v, want %+v", f.batches, want)
	}
}

// TestBrokenLines: an error behind the first line breaks the answer off, and ends a stream with an event.
func TestBrokenLines(t *testing.T) {
	h := New(Options{Daemon: &logFake{}})
	func() {
		defer func() {
			if recover() != http.ErrAbortHandler {
				t.Error("an answer that broke off looks whole")
			}
		}()
		request(t, h, "GET", "/v1/topics/broken/records", "")
	}()
	_, text, _ := request(t, h, "GET", "/v1/topics/broken/stream", "")
	if want := "data: {\"offset\":1}\n\nevent: error\ndata: \"disk on \\\"fire\\\"\\n\"\n\n"; text != want {
		t.Errorf("a broken stream is %q, want %q", text, want)
	}
}
