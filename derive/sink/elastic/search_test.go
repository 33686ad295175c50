package elastic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/tailwater/tailwater/change"
	"github.com/tailwater/tailwater/derive/sink"
	"github.com/tailwater/tailwater/internal/testkit"
)

// Tests against real servers: OpenSearch and Elasticsearch 7.10.

var testFields = []sink.Field{
	{Name: "id", Kind: change.KindInt}, {Name: "name", Kind: change.KindText}, {Name: "price", Kind: change.KindDecimal},
	{Name: "big", Kind: change.KindUint}, {Name: "f", Kind: change.KindFloat64}, {Name: "at", Kind: change.KindTimestampTZ},
	{Name: "day", Kind: change.KindDate}, {Name: "ok", Kind: change.KindBool}, {Name: "u", Kind: change.KindUUID},
	{Name: "raw", Kind: change.KindBytes}, {Name: "took", Kind: change.KindInterval},
	{Name: "attrs", Kind: change.KindJSON, SourceType: "jsonb"}, {Name: "tags", Kind: change.KindJSON, SourceType: "text[]"},
	{Name: "brand", Fields: []sink.Field{{Name: "name", Kind: change.KindText}}},
	{Name: "reviews", List: true, Fields: []sink.Field{{Name: "rating", Kind: change.KindInt}}},
}

// cluster is a real server with a prefix of its own for indexes.
type cluster struct {
	t      *testing.T
	url    string
	prefix string
}

func onServers(t *testing.T, f func(t *testing.T, c *cluster)) {
	t.Run("opensearch", func(t *testing.T) {
		url, prefix := testkit.OpenSearch(t)
		f(t, &cluster{t, url, prefix})
	})
	t.Run("elasticsearch7", func(t *testing.T) {
		url, prefix := testkit.Elasticsearch7(t)
		f(t, &cluster{t, url, prefix})
	})
}

// call speaks to the server directly.
func (c *cluster) call(method, path, body string) (int, string) {
	c.t.Helper()
	req, err := http.NewRequest(method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func (c *cluster) view() sink.View {
	return sink.View{Name: "products", Fingerprint: "f1", Fields: testFields, Options: ViewOptions{
		Index: c.prefix, Mapping: []MappingField{{Field: "reviews", Type: "nested"}, {Field: "brand.name", Type: "text", Keyword: true}},
		Settings: map[string]any{"index.number_of_replicas": 0},
	}}
}

func (c *cluster) open(log byte, change ...func(*sink.View)) *target {
	c.t.Helper()
	t, err := c.tryOpen(log, change...)
	if err != nil {
		c.t.Fatalf("Open: %v", err)
	}
	return t
}

func (c *cluster) tryOpen(log byte, change ...func(*sink.View)) (*target, error) {
	s := New(Options{URLs: []string{c.url}, Frontier: func() uint64 { return 1000 }})
	c.t.Cleanup(func() { s.Close() })
	v := c.view()
	for _, f := range change {
		f(&v)
	}
	t, err := s.Open(context.Background(), v, [16]byte{log})
	if err != nil {
		return nil, err
	}
	return t.(*target), nil
}

func stampAt(log byte, csn uint64) sink.Stamp {
	return sink.Stamp{Log: [16]byte{log}, CSN: csn, Fingerprint: "f1", Complete: true, Time: 1}
}

func up(id, doc string, version uint64) sink.Update {
	u := sink.Update{ID: id, Version: version}
	if doc != "" {
		u.Doc = []byte(doc)
	}
	return u
}

func write(t *testing.T, target *target, ups ...sink.Update) []sink.Result {
	t.Helper()
	r, err := target.Write(context.Background(), ups, sink.Stamp{})
	if err != nil {
		t.Fatalf("Write: %v", err)
	}
	return r
}

func build(t *testing.T, target *target, log byte, ups ...sink.Update) {
	t.Helper()
	ctx := context.Background()
	must(t, target.Begin(ctx, stampAt(log, 0)))
	write(t, target, ups...)
	keep := map[string]bool{}
	for _, u := range ups {
		keep[u.ID] = true
	}
	must(t, target.Finish(ctx, stampAt(log, 1), func(id string) (bool, error) { return keep[id], nil }))
}

func contents(t *testing.T, target *target) map[string]string {
	t.Helper()
	docs := map[string]string{}
	must(t, target.Scan(context.Background(), func(id string, doc []byte) error { docs[id] = string(doc); return nil }))
	return docs
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const richDoc = `{"id":9223372036854775807,"name":"a <b> é\u0000","price":12345678901234567890.10,"big":18446744073709551615,"f":5e-324,` +
	`"at":"2016-11-04T11:51:30.123456Z","day":"2020-02-29","ok":true,"u":"aaaaaaaa-0000-0000-0000-000000000001","raw":"AP8Q","took":"P1Y2M",` +
	`"attrs":{"a":[1.10,{"b":null}]},"tags":["x",null,"y"],"brand":null,"reviews":[{"rating":5},{"rating":4}]}`

const oddDoc = `{"id":1,"price":"NaN","f":"-Infinity","at":"infinity","day":"0000-00-00","attrs":[1,"x"],"tags":[],"brand":{"name":"B"},"reviews":[]}`

func TestDocumentsAndMapping(t *testing.T) {
	onServers(t, func(t *testing.T, c *cluster) {
		target := c.open(1)
		docs := map[string]string{"1": richDoc, "2|x": oddDoc, "3": `{"attrs":"text","day":"+10000-01-01","price":1` + strings.Repeat("0", 400) + `}`, `\e`: `{}`}
		var ups []sink.Update
		for id, d := range docs {
			ups = append(ups, up(id, d, 1))
		}
		ups = append(ups, up("4", "{\n\"name\":\r\n\"lines\"}", 1))
		build(t, target, 1, ups...)
		docs["4"] = "{ \"name\":  \"lines\"}"
		got := contents(t, target)
		if !maps.Equal(got, docs) {
			t.Errorf("documents come back as %v; want %v", got, docs)
		}
		_, settings := c.call("GET", "/"+c.prefix+"/_settings", "")
		if !strings.Contains(settings, `"gc_deletes":"1h"`) {
			t.Errorf("settings %s", settings)
		}
		for query, want := range map[string]int{
			`{"term":{"name.keyword":"lines"}}`: 1, `{"range":{"price":{"gt":5}}}`: 1, `{"term":{"tags.keyword":"y"}}`: 1,
			`{"nested":{"path":"reviews","query":{"term":{"reviews.rating":4}}}}`: 1, `{"range":{"at":{"gte":"2016-01-01"}}}`: 1, `{"match":{"brand.name":"b"}}`: 1,
		} {
			_, answer := c.call("POST", "/"+c.prefix+"/_count", `{"query":`+query+`}`)
			if !strings.Contains(answer, fmt.Sprintf(`"count":%d,`, want)) {
				t.Errorf("%s: %s; want %d", query, answer, want)
			}
		}
	})
}

func TestVersionsAndRejections(t *testing.T) {
	onServers(t, func(t *testing.T, c *cluster) {
		target := c.open(1)
		build(t, target, 1, up("1", `{"name":"v5"}`, 5), up("2", `{"name":"x"}`, 5))
		r := write(t, target,
			up("1", `{"name":"v4"}`, 4),         // older
			up("2", `{"name":"y"}`, 5),          // equal: written again
			up("3", "", 6),                      // deletes nothing
			up("4", `{"id":"not a number"}`, 6), // rejected by the mapping
			up("5", `{"unknown":1}`, 6),         // rejected by dynamic: strict
			up("6", `{"name":`, 6),              // no JSON
			up("7", `{"name":"fine"}`, 6),
		)
		var got []sink.Outcome
		for _, x := range r {
			got = append(got, x.Outcome)
			if strings.Contains(x.Reason, "not a number") {
				t.Errorf("a reason holds a value: %s", x.Reason)
			}
		}
		want := fmt.Sprint([]sink.Outcome{sink.Stale, sink.Written, sink.Written, sink.Rejected, sink.Rejected, sink.Rejected, sink.Written})
		if fmt.Sprint(got) != want {
			t.Errorf("outcomes %v; want %v; results %+v", got, want, r)
		}
		if !strings.Contains(r[3].Reason, "[id]") || !strings.Contains(r[4].Reason, "[unknown]") {
			t.Errorf("reasons do not name the field: %q, %q", r[3].Reason, r[4].Reason)
		}
		if docs := contents(t, target); docs["1"] != `{"name":"v5"}` || docs["7"] == "" || len(docs) != 3 {
			t.Errorf("documents %v", docs)
		}
	})
}

// V32: a write against a deleted document with a higher version is done, not retried.
func TestV32DeletedDocumentConflict(t *testing.T) {
	onServers(t, func(t *testing.T, c *cluster) {
		target := c.open(1)
		build(t, target, 1, up("1", `{"name":"a"}`, 1))
		write(t, target, up("1", "", 10))
		if r := write(t, target, up("1", `{"name":"late"}`, 9)); r[0].Outcome != sink.Stale {
			t.Errorf("a late write after the delete: %+v", r[0])
		}
		c.call("PUT", "/"+target.current.name+"/_doc/2?version=5000&version_type=external", `{"name":"theirs"}`)
		if _, err := target.Write(context.Background(), []sink.Update{up("2", `{"name":"x"}`, 20)}, sink.Stamp{}); !errors.Is(err, sink.ErrAhead) {
			t.Errorf("a version above the frontier: %v", err)
		}
		if docs := contents(t, target); len(docs) != 1 {
			t.Errorf("documents %v", docs)
		}
	})
}

// V29: a target of a lost directory gets a new generation without the old one's documents.
func TestV29NewGeneration(t *testing.T) {
	onServers(t, func(t *testing.T, c *cluster) {
		build(t, c.open(1), 1, up("1", `{"name":"a"}`, 500), up("7", `{"name":"old"}`, 500))
		target := c.open(2)
		if s, ok := target.Stamp(); !ok || s.Log != [16]byte{1} {
			t.Fatalf("stamp %+v, %v; want the foreign one", s, ok)
		}
		ctx := context.Background()
		must(t, target.Begin(ctx, stampAt(2, 0)))
		write(t, target, up("1", `{"name":"new"}`, 2))
		if _, n := c.call("GET", "/"+c.prefix+"/_count", ""); !strings.Contains(n, `"count":2,`) {
			t.Errorf("during the build people search %s; want the old generation's 2 documents", n)
		}
		must(t, target.Finish(ctx, stampAt(2, 2), func(string) (bool, error) { return true, nil }))
		target = c.open(2)
		if docs := contents(t, target); !maps.Equal(docs, map[string]string{"1": `{"name":"new"}`}) {
			t.Errorf("documents %v", docs)
		}
		if code, _ := c.call("GET", "/"+c.prefix+"-000001", ""); code != 404 {
			t.Errorf("the old generation is still there (%d)", code)
		}
		if s, _ := target.Stamp(); s.Log != [16]byte{2} || s.CSN != 2 || !s.Complete {
			t.Errorf("stamp %+v", s)
		}
	})
}

func TestBuildGoesOnAndIsSwept(t *testing.T) {
	onServers(t, func(t *testing.T, c *cluster) {
		ctx := context.Background()
		target := c.open(1)
		must(t, target.Begin(ctx, stampAt(1, 0)))
		write(t, target, up("1", `{"name":"a"}`, 1), up("7", `{"name":"gone meanwhile"}`, 1))
		target = c.open(1) // killed
		if s, ok := target.Stamp(); !ok || s.Complete {
			t.Fatalf("stamp %+v, %v; want an unfinished build", s, ok)
		}
		must(t, target.Begin(ctx, stampAt(1, 0)))
		write(t, target, up("2", `{"name":"b"}`, 1))
		must(t, target.Finish(ctx, stampAt(1, 1), func(id string) (bool, error) { return id != "7", nil }))
		if docs := contents(t, target); len(docs) != 2 || target.current.number != 1 {
			t.Errorf("documents %v in generation %d", docs, target.current.number)
		}
	})
}

// V33: a stamp is compared before it is replaced.
func TestV33StampIsCompared(t *testing.T) {
	onServers(t, func(t *testing.T, c *cluster) {
		ctx := context.Background()
		target := c.open(1)
		build(t, target, 1, up("1", `{"name":"a"}`, 1))
		must(t, target.Flush(ctx, stampAt(1, 5)))
		must(t, target.Flush(ctx, stampAt(1, 5)))
		if s, _ := c.open(1).Stamp(); s.CSN != 5 {
			t.Errorf("stamp %+v; want CSN 5", s)
		}
		other := c.open(1) // a clone of our directory
		must(t, other.Flush(ctx, stampAt(1, 9)))
		if err := target.Flush(ctx, stampAt(1, 7)); !errors.Is(err, sink.ErrOtherWriter) {
			t.Errorf("Flush beside a clone: %v", err)
		}
		target = c.open(1)
		old, err := json.Marshal(map[string]any{"_meta": metaOf("products", sink.Stamp{Log: [16]byte{1}, CSN: 2, Fingerprint: "f1", Complete: true, Seq: 1})})
		must(t, err)
		if code, body := c.call("PUT", "/"+target.current.name+"/_mapping", string(old)); code != 200 {
			t.Fatal(body)
		}
		if err := target.Flush(ctx, stampAt(1, 12)); !errors.Is(err, sink.ErrWentBack) {
			t.Errorf("Flush on a restored index: %v", err)
		}
		if s, _ := c.open(1).Stamp(); s.CSN != 2 {
			t.Errorf("the evidence was overwritten: %+v", s)
		}
	})
}

func TestIndexDeletedMeanwhile(t *testing.T) {
	onServers(t, func(t *testing.T, c *cluster) {
		target := c.open(1)
		build(t, target, 1, up("1", `{"name":"a"}`, 1))
		c.call("DELETE", "/"+c.prefix+"-000001", "")
		for _, u := range []sink.Update{up("1", `{"name":"b"}`, 2), up("1", "", 3)} {
			if _, err := target.Write(context.Background(), []sink.Update{u}, sink.Stamp{}); !errors.Is(err, sink.ErrWentBack) {
				t.Errorf("Write to a deleted index: %v", err)
			}
		}
		if code, body := c.call("GET", "/"+c.prefix+"*", ""); code != 200 || strings.Contains(body, c.prefix) {
			t.Errorf("a write made an index again: %s", body)
		}
		if _, ok := c.open(1).Stamp(); ok {
			t.Error("there is a stamp")
		}
	})
}

func TestIndexesOfOthers(t *testing.T) {
	onServers(t, func(t *testing.T, c *cluster) {
		c.call("PUT", "/"+c.prefix, "{}")
		if _, err := c.tryOpen(1); !errors.Is(err, sink.ErrStopped) || !strings.Contains(fmt.Sprint(err), "is an index and not an alias") {
			t.Errorf("an index in the alias's place: %v", err)
		}
		c.call("DELETE", "/"+c.prefix, "")
		c.call("PUT", "/"+c.prefix+"-mine", `{"aliases":{"`+c.prefix+`":{}}}`)
		if _, err := c.tryOpen(1); !errors.Is(err, sink.ErrStopped) || !strings.Contains(fmt.Sprint(err), "did not make") {
			t.Errorf("an alias of others: %v", err)
		}
		c.call("DELETE", "/"+c.prefix+"-mine", "")
		build(t, c.open(1), 1, up("1", `{"name":"a"}`, 1))
		if _, err := c.tryOpen(1, func(v *sink.View) { v.Name = "orders" }); !errors.Is(err, sink.ErrStopped) {
			t.Errorf("an index of another view: %v", err)
		}
		must(t, c.open(1).Drop(context.Background()))
		if _, body := c.call("GET", "/"+c.prefix+"*", ""); strings.Contains(body, c.prefix) {
			t.Errorf("after Drop: %s", body)
		}
	})
}

func TestRefusedMapping(t *testing.T) {
	onServers(t, func(t *testing.T, c *cluster) {
		target := c.open(1, func(v *sink.View) {
			v.Options = ViewOptions{Index: c.prefix, Mapping: []MappingField{{Field: "name", Type: "txt"}}}
		})
		if err := target.Begin(context.Background(), stampAt(1, 0)); !errors.Is(err, sink.ErrStopped) {
			t.Errorf("Begin with an unknown type: %v", err)
		}
	})
}

func TestManyDocuments(t *testing.T) {
	onServers(t, func(t *testing.T, c *cluster) {
		target := c.open(1)
		target.sink.opts.BulkBytes = 20_000
		var ups []sink.Update
		for i := range 3000 {
			ups = append(ups, up(fmt.Sprint(i), fmt.Sprintf(`{"id":%d,"name":%q}`, i, bytes.Repeat([]byte("x"), i%300)), 1))
		}
		build(t, target, 1, ups...)
		docs := contents(t, target)
		for _, u := range ups {
			if docs[u.ID] != string(u.Doc) {
				t.Fatalf("document %s differs", u.ID)
			}
		}
		if len(docs) != len(ups) {
			t.Errorf("%d documents", len(docs))
		}
	})
}
