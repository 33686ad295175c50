package demo

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

//go:embed schema.sql
var schemaSQL string

//go:embed finish.sql
var finishSQL string

// mark is the comment that makes a table the demo's own.
const mark = "tailwater demo shop"

const shopTables = "countries, brands, products, reviews, categories, product_categories"

// ErrForeignTables matches Load's refusal to touch tables that it did not make.
var ErrForeignTables = errors.New("the database has tables of its own with the shop's names")

// LoadOptions say what Load generates; the zero value is the demo's shop.
type LoadOptions struct {
	Size Size
	Seed uint64
}

// Load creates the shop's tables in the schema public and fills them, in one
// transaction. A shop that was loaded before is replaced. A database that does
// not exist is created.
func Load(ctx context.Context, dsn string, opts LoadOptions) error {
	c, err := connectOrCreate(ctx, dsn)
	if err != nil {
		return err
	}
	defer closeConn(c)
	tx, err := c.Begin(ctx)
	if err != nil {
		return fmt.Errorf("load the shop: %w", err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) // no effect after the commit
	if err := dropOwn(ctx, tx); err != nil {
		return err
	}
	if _, err := c.PgConn().Exec(ctx, schemaSQL).ReadAll(); err != nil {
		return fmt.Errorf("create the shop's tables: %w", err)
	}
	for _, t := range shop(opts.Seed, opts.Size) {
		if err := copyRows(ctx, c.PgConn(), t); err != nil {
			return fmt.Errorf("fill public.%s: %w", t.name, err)
		}
	}
	if _, err := c.PgConn().Exec(ctx, finishSQL).ReadAll(); err != nil {
		return fmt.Errorf("index the shop's tables: %w", err)
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("load the shop: %w", err)
	}
	return nil
}

// WriteSQL writes a shop as a script for psql.
func WriteSQL(w io.Writer, opts LoadOptions) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "-- The shop as `tailwater demo` loads it, smaller. Generated: go generate ./internal/demo\n\n%s\n", schemaSQL)
	for _, t := range shop(opts.Seed, opts.Size) {
		fmt.Fprintf(b, "COPY public.%s (%s) FROM stdin;\n", t.name, t.columns)
		rows := rowWriter{w: b}
		t.rows(&rows)
		if rows.err != nil {
			return rows.err
		}
		fmt.Fprint(b, "\\.\n\n")
	}
	fmt.Fprint(b, finishSQL)
	return b.Flush()
}

func copyRows(ctx context.Context, c *pgconn.PgConn, t table) error {
	r, w := io.Pipe()
	go func() {
		b := bufio.NewWriterSize(w, 64<<10)
		rows := rowWriter{w: b}
		t.rows(&rows)
		if rows.err == nil {
			rows.err = b.Flush()
		}
		w.CloseWithError(rows.err) // nil is the end of the rows
	}()
	_, err := c.CopyFrom(ctx, r, fmt.Sprintf("COPY public.%s (%s) FROM STDIN", t.name, t.columns))
	r.CloseWithError(err) // lets the generator end if the server did not take all
	return err
}

// dropOwn drops the tables of an earlier load, and refuses others of the same names.
func dropOwn(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `
		select c.relname from pg_class c
		 where c.relnamespace = 'public'::regnamespace and c.relname = any(string_to_array($1, ', '))
		   and obj_description(c.oid, 'pg_class') is distinct from $2
		 order by 1`, shopTables, mark)
	if err != nil {
		return fmt.Errorf("look for the shop's tables: %w", err)
	}
	foreign, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("look for the shop's tables: %w", err)
	}
	if len(foreign) > 0 {
		return fmt.Errorf("%w (public.%s): give the demo an empty database", ErrForeignTables, strings.Join(foreign, ", public."))
	}
	if _, err := tx.Exec(ctx, "DROP TABLE IF EXISTS public."+strings.ReplaceAll(shopTables, ", ", ", public.")); err != nil {
		return fmt.Errorf("drop the tables of an earlier demo: %w", err)
	}
	return nil
}

// connectOrCreate connects, and makes the database first if it is missing.
func connectOrCreate(ctx context.Context, dsn string) (*pgx.Conn, error) {
	c, err := pgx.Connect(ctx, dsn)
	if missing := (*pgconn.PgError)(nil); !errors.As(err, &missing) || missing.Code != "3D000" { // invalid_catalog_name
		return c, err
	}
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	name := cfg.Database
	cfg.Database = "postgres"
	admin, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer closeConn(admin)
	if _, err := admin.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		return nil, fmt.Errorf("create the database %q for the demo: %w", name, err)
	}
	return pgx.Connect(ctx, dsn)
}

func closeConn(c *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = c.Close(ctx)
}

// ComposeShop is the smaller shop that docker-compose.yml starts with.
var ComposeShop = LoadOptions{Size: Size{Products: 500, Reviews: 2500, Brands: 60}, Seed: 1}

//go:generate go run ./seed ../../deploy/compose/shop.sql
