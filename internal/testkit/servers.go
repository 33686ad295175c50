package testkit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Redis returns a URL, redis://HOST:PORT/N, with a database number that no
// other test uses now; it is empty, and emptied again at the end.
func Redis(t T) string {
	t.Helper()
	addr := RedisAddr(t)
	c := dialRedis(t, addr)
	total, err := strconv.Atoi(c.last("CONFIG", "GET", "databases"))
	if err != nil || total < 2 {
		t.Fatalf("redis %s: it has %d databases (%v) and tests need one each: set 'databases 512'", addr, total, err)
	}
	turn, err := strconv.Atoi(c.last("INCR", "tailwater:testkit:turn"))
	if err != nil {
		t.Fatalf("redis %s: INCR: %v", addr, err)
	}
	n := strconv.Itoa(1 + turn%(total-1))
	empty := func(c *redisConn) {
		c.last("SELECT", n)
		c.last("FLUSHDB")
		c.close()
	}
	empty(c)
	t.Cleanup(func() { empty(dialRedis(t, addr)) })
	return "redis://" + addr + "/" + n
}

// RedisAddr returns HOST:PORT of the Redis server that all tests share.
func RedisAddr(t T) string {
	t.Helper()
	return hostOf(t, need(t, "TAILWATER_TEST_REDIS", "redis"))
}

// MySQL returns a URL, mysql://USER:PASSWORD@HOST:PORT/DATABASE, of the server
// that all tests share; a test makes a database by Name.
func MySQL(t T) string { t.Helper(); return need(t, "TAILWATER_TEST_MYSQL", "mysql") }

// MariaDB is MySQL for MariaDB, with the scheme mariadb.
func MariaDB(t T) string { t.Helper(); return need(t, "TAILWATER_TEST_MARIADB", "mariadb") }

// Kafka returns kafka://HOST:PORT of the broker that all tests share; a test
// names its topics by Name.
func Kafka(t T) string { t.Helper(); return need(t, "TAILWATER_TEST_KAFKA", "kafka") }

// OpenSearch returns the server's URL and a prefix for the test's indexes,
// which are deleted at the end.
func OpenSearch(t T) (server, prefix string) {
	t.Helper()
	return searchServer(t, need(t, "TAILWATER_TEST_OPENSEARCH", "opensearch"))
}

// Elasticsearch7 is OpenSearch for an Elasticsearch 7.10.
func Elasticsearch7(t T) (server, prefix string) {
	t.Helper()
	return searchServer(t, need(t, "TAILWATER_TEST_ELASTICSEARCH7", "elasticsearch7"))
}

func searchServer(t T, server string) (string, string) {
	server, prefix := strings.TrimSuffix(server, "/"), Name(t)
	t.Cleanup(func() {
		if err := deleteIndexes(server, prefix); err != nil {
			t.Logf("delete the indexes %s*: %v", prefix, err)
		}
	})
	return server, prefix
}

// deleteIndexes deletes by name: a wildcard may be forbidden.
func deleteIndexes(server, prefix string) error {
	client := http.Client{Timeout: 30 * time.Second}
	resp, err := client.Get(server + "/_cat/indices/" + prefix + "*?format=json&h=index")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var found []struct{ Index string }
	if err := json.NewDecoder(resp.Body).Decode(&found); err != nil {
		return err
	}
	for _, f := range found {
		req, err := http.NewRequest(http.MethodDelete, server+"/"+f.Index, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		resp.Body.Close()
	}
	return nil
}

func hostOf(t T, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		t.Fatalf("%q is no URL of a test server", raw)
	}
	return u.Host
}

// redisConn speaks as much of the Redis protocol as emptying a database needs.
type redisConn struct {
	t    T
	addr string
	c    net.Conn
	r    *bufio.Reader
}

func dialRedis(t T, addr string) *redisConn {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		t.Fatalf("connect to redis: %v", err)
	}
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return &redisConn{t: t, addr: addr, c: c, r: bufio.NewReader(c)}
}

func (c *redisConn) close() { c.c.Close() }

// last runs a command and returns its answer as text; of a list the last element.
func (c *redisConn) last(args ...string) string {
	c.t.Helper()
	fmt.Fprintf(c.c, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(c.c, "$%d\r\n%s\r\n", len(a), a)
	}
	s, err := c.read()
	if err != nil {
		c.t.Fatalf("redis %s: %s: %v", c.addr, args[0], err)
	}
	return s
}

func (c *redisConn) read() (string, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return "", err
	}
	kind, rest := line[0], strings.TrimSpace(line[1:])
	switch kind {
	case '+', ':':
		return rest, nil
	case '-':
		return "", fmt.Errorf("the server says %s", rest)
	case '$':
		s, err := c.r.ReadString('\n') // values here have no line breaks
		return strings.TrimSpace(s), err
	case '*':
		n, err := strconv.Atoi(rest)
		last := ""
		for range n {
			if last, err = c.read(); err != nil {
				break
			}
		}
		return last, err
	}
	return "", fmt.Errorf("unknown answer %q", line)
}
