package debian

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/tailwater/tailwater/internal/testkit"
)

// TestDebian loads the machine's package index, and compares every document in
// the view, OpenSearch, Redis and the local index with SQL: after the load, and
// after the mutations.
func TestDebian(t *testing.T) {
	dsn := testkit.Postgres(t)
	search, prefix := testkit.OpenSearch(t)
	cache := testkit.RedisAddr(t)
	ctx := t.Context()
	n, err := Load(ctx, dsn, index(t), share(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d packages", n)
	name := testkit.Name(t)
	d := testkit.NewDaemon(t, Config, "DEBIAN_DSN="+dsn, "DEBIAN_SLOT="+name, "DEBIAN_INDEX="+prefix+"-debian", "DEBIAN_PREFIX="+name, "ES_URL="+search, "REDIS_ADDR="+cache, "DEBIAN_LISTEN="+freeAddr(t))
	t.Cleanup(func() { d.Kill(); d.Run("drop", "--source", "debian", "--yes") })
	start := time.Now()
	d.Start()
	d.Wait("--timeout", "600s")
	t.Logf("in all sinks after %.1f s", time.Since(start).Seconds())
	compare(ctx, t, d, dsn, search, prefix+"-debian", cache, name)

	if err := Mutate(ctx, dsn); err != nil {
		t.Fatal(err)
	}
	start = time.Now()
	d.Wait("--timeout", "600s")
	t.Logf("mutations in all sinks after %.1f s", time.Since(start).Seconds())
	compare(ctx, t, d, dsn, search, prefix+"-debian", cache, name)
}

// share is how much of the index is loaded, of a thousand packages:
// TAILWATER_DEBIAN_PERMILLE, by default what does not take minutes.
func share(t *testing.T) uint32 {
	text := os.Getenv("TAILWATER_DEBIAN_PERMILLE")
	if text == "" {
		return 120
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("TAILWATER_DEBIAN_PERMILLE: %v", err)
	}
	return uint32(n)
}

func index(t *testing.T) io.Reader {
	out, err := exec.Command("apt-cache", "dumpavail").Output()
	if err != nil || bytes.Count(out, []byte("\nPackage: ")) < 1000 {
		if testkit.Required() {
			t.Fatalf("apt-cache dumpavail gave no package index (%v): run apt-get update", err)
		}
		t.Skipf("apt-cache dumpavail gives no package index here (%v)", err)
	}
	return bytes.NewReader(out)
}

func freeAddr(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func compare(ctx context.Context, t *testing.T, d *testkit.Daemon, dsn, search, index, cache, prefix string) {
	t.Helper()
	want := testkit.QueryDocs(t, dsn, ViewSQL)
	for name, got := range map[string]map[string]json.RawMessage{
		"view": d.ViewDocs("packages"), "opensearch": searchDocs(t, search, index), "redis": cacheDocs(ctx, t, cache, prefix+":package:"),
	} {
		report(t, name, len(want), testkit.DiffDocs(want, got))
	}
	for _, sink := range []string{"search", "cache", "find"} {
		if r := d.Run("verify", "packages", "--sink", sink, "--json"); r.Code != 0 {
			t.Errorf("verify %s: exit code %d: %.2000s%.2000s", sink, r.Code, r.Stdout, r.Stderr)
		}
	}
}

func report(t *testing.T, name string, documents int, diffs []string) {
	t.Helper()
	t.Logf("%s: %d documents, %d differ", name, documents, len(diffs))
	for i, line := range diffs {
		if i == 10 {
			break
		}
		t.Errorf("%s: %s", name, line)
	}
}

// searchDocs reads a whole index by scrolling.
func searchDocs(t *testing.T, server, index string) map[string]json.RawMessage {
	t.Helper()
	docs := map[string]json.RawMessage{}
	var page struct {
		ID   string `json:"_scroll_id"`
		Hits struct {
			Hits []struct {
				ID     string          `json:"_id"`
				Source json.RawMessage `json:"_source"`
			} `json:"hits"`
		} `json:"hits"`
	}
	post(t, server+"/"+index+"/_search?scroll=1m", `{"size":2000,"sort":["_doc"]}`, &page)
	for len(page.Hits.Hits) > 0 {
		for _, h := range page.Hits.Hits {
			docs[h.ID] = h.Source
		}
		scroll := page.ID
		page.Hits.Hits = nil
		post(t, server+"/_search/scroll", fmt.Sprintf(`{"scroll":"1m","scroll_id":%q}`, scroll), &page)
	}
	return docs
}

func post(t *testing.T, url, body string, into any) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v", url, resp.StatusCode, err)
	}
}

// cacheDocs reads all values below a prefix; the rest of a key is the package's name.
func cacheDocs(ctx context.Context, t *testing.T, addr, prefix string) map[string]json.RawMessage {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	docs := map[string]json.RawMessage{}
	for cursor := uint64(0); ; {
		page, err := c.Do(ctx, c.B().Scan().Cursor(cursor).Match(prefix+"*").Count(1000).Build()).AsScanEntry()
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Elements) > 0 {
			values, err := c.Do(ctx, c.B().Mget().Key(page.Elements...).Build()).AsStrSlice()
			if err != nil {
				t.Fatal(err)
			}
			for i, k := range page.Elements {
				id := strings.NewReplacer(`\`, `\\`, `|`, `\|`).Replace(strings.TrimPrefix(k, prefix))
				docs[id] = json.RawMessage(values[i])
			}
		}
		if cursor = page.Cursor; cursor == 0 {
			return docs
		}
	}
}
