package testkit

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// Postgres returns the URL of a fresh database on the default PostgreSQL
// server. It is dropped, with its slots, at the end of the test.
func Postgres(t T) string {
	t.Helper()
	return freshDatabase(t, need(t, "TAILWATER_TEST_POSTGRES", "pg15"))
}

// PostgresVersion is Postgres on the server of a major version.
func PostgresVersion(t T, major int) string {
	t.Helper()
	return freshDatabase(t, need(t, "TAILWATER_TEST_POSTGRES"+strconv.Itoa(major), "pg"+strconv.Itoa(major)))
}

// PostgresVersions returns the major versions whose server is up, oldest
// first; with none the test skips or fails.
func PostgresVersions(t T) []int {
	t.Helper()
	var up []int
	for major := 13; major <= 18; major++ {
		if os.Getenv("TAILWATER_TEST_POSTGRES"+strconv.Itoa(major)) != "" {
			up = append(up, major)
		}
	}
	if len(up) == 0 {
		need(t, "TAILWATER_TEST_POSTGRES15", "pg15")
	}
	return up
}

// PostgresBin returns the directory with initdb and postgres of a major
// version; 0 means the default server's.
func PostgresBin(t T, major int) string {
	t.Helper()
	if major == 0 {
		return need(t, "TAILWATER_TEST_POSTGRES_BIN", "pg15")
	}
	return need(t, "TAILWATER_TEST_POSTGRES_BIN"+strconv.Itoa(major), "pg"+strconv.Itoa(major))
}

// Connect opens a connection that is closed at the end of the test. It belongs
// to one goroutine.
func Connect(t T, dsn string) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatalf("connect to PostgreSQL: %v", err)
	}
	t.Cleanup(func() { closeConn(c) })
	return c
}

// Exec runs statements, one implicit transaction for each string, over a
// connection of its own.
func Exec(t T, dsn string, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatalf("connect to PostgreSQL: %v", err)
	}
	defer closeConn(c)
	for _, s := range statements {
		if _, err := c.PgConn().Exec(ctx, s).ReadAll(); err != nil {
			t.Fatalf("run %q: %v", s, err)
		}
	}
}

func closeConn(c *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = c.Close(ctx)
}

// WithDatabase returns a server's URL with another database.
func WithDatabase(t T, dsn, database string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatalf("the URL of a test server cannot be parsed: %v", err)
	}
	u.Path = "/" + database
	return u.String()
}

func freshDatabase(t T, server string) string {
	t.Helper()
	name := Name(t)
	Exec(t, server, "CREATE DATABASE "+name+" TEMPLATE template0")
	t.Cleanup(func() {
		if err := dropDatabase(server, name); err != nil {
			t.Logf("drop database %s: %v", name, err)
		}
	})
	return WithDatabase(t, server, name)
}

// dropDatabase ends what still uses the database first: an active slot keeps
// even DROP ... WITH (FORCE) from working. The slots go with the database.
func dropDatabase(server, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	defer closeConn(c)
	return eventually(10*time.Second, func() error {
		if _, err := c.Exec(ctx, `select pg_terminate_backend(active_pid) from pg_replication_slots
			where database = $1 and active_pid is not null`, name); err != nil {
			return fmt.Errorf("end the slots' connections: %w", err)
		}
		_, err := c.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
		return err
	})
}
