package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// publication is a publication as the catalogue has it.
type publication struct {
	name      string
	exists    bool
	owned     bool
	allTables bool
	whole     bool // inserts, updates, deletes and truncates
	viaRoot   bool
	tables    map[string]bool // names of what it publishes, roots by themselves
	narrowed  []string        // tables with a row filter or a column list
}

func (p *publication) sql() string { return quoteName(p.name) }

// readPublication returns the publication of that name; exists tells whether there is one.
func readPublication(ctx context.Context, s *session, sv *server, name string) (*publication, error) {
	p := &publication{name: name, tables: map[string]bool{}}
	rows, err := s.query(ctx, `SELECT pg_catalog.pg_has_role(pubowner, 'USAGE'), puballtables, pubinsert AND pubupdate AND pubdelete AND pubtruncate, pubviaroot
		FROM pg_catalog.pg_publication WHERE pubname = $1`, name)
	if err != nil {
		return nil, fmt.Errorf("read publication %s: %w", name, err)
	}
	if len(rows) == 0 {
		return p, nil
	}
	r := rows[0]
	p.exists, p.owned, p.allTables, p.whole, p.viaRoot = true, isTrue(r[0]), isTrue(r[1]), isTrue(r[2]), isTrue(r[3])
	if rows, err = s.query(ctx, "SELECT schemaname, tablename FROM pg_catalog.pg_publication_tables WHERE pubname = $1", name); err != nil {
		return nil, fmt.Errorf("read the tables of publication %s: %w", name, err)
	}
	for _, r := range rows {
		p.tables[string(r[0])+"."+string(r[1])] = true
	}
	if sv.version < 150000 {
		return p, nil
	}
	if rows, err = s.query(ctx, `SELECT n.nspname, c.relname FROM pg_catalog.pg_publication_rel x JOIN pg_catalog.pg_publication p ON p.oid = x.prpubid
		JOIN pg_catalog.pg_class c ON c.oid = x.prrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE p.pubname = $1 AND (x.prqual IS NOT NULL OR x.prattrs IS NOT NULL)`, name); err != nil {
		return nil, fmt.Errorf("read the filters of publication %s: %w", name, err)
	}
	for _, r := range rows {
		p.narrowed = append(p.narrowed, string(r[0])+"."+string(r[1]))
	}
	return p, nil
}

// lacking returns the tables that the publication does not publish.
func (p *publication) lacking(tables []*relation) []*relation {
	if p.allTables {
		return nil
	}
	var list []*relation
	for _, r := range tables {
		if !p.tables[r.String()] {
			list = append(list, r)
		}
	}
	return list
}

// checkPublication checks whether the publication is fit or can be made so.
func (v *survey) checkPublication(ctx context.Context, o *Options, s *session) error {
	p := v.publication
	if p.exists {
		v.checkExisting(p)
		return nil
	}
	if v.server.standby {
		v.problem("", v.createSQL(), "publication %q does not exist, and a standby cannot make it: make it on the primary", p.name)
		return nil
	}
	may, err := s.text(ctx, "SELECT pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')")
	if err != nil {
		return fmt.Errorf("read the role's privileges: %w", err)
	}
	if may != "t" {
		v.problem("", fmt.Sprintf("GRANT CREATE ON DATABASE %s TO %s;\n-- or let an owner run: %s", quoteName(v.database), quoteName(v.user), v.createSQL()),
			"role %q may not make publication %q", v.user, p.name)
	}
	v.checkOwned(v.tables)
	return nil
}

// checkOwned reports tables that only their owner may publish.
func (v *survey) checkOwned(tables []*relation) {
	var foreign []*relation
	for _, r := range tables {
		if !r.owned {
			foreign = append(foreign, r)
		}
	}
	if len(foreign) == 0 {
		return
	}
	fix := fmt.Sprintf("ALTER PUBLICATION %s ADD TABLE %s; -- by the tables' owner", v.publication.sql(), tableList(foreign))
	if !v.publication.exists {
		fix = v.createSQL() + " -- by the tables' owner"
	}
	v.problem("", fix, "role %q does not own %s and so may not publish it", v.user, names(foreign))
}

func names(tables []*relation) string {
	var list []string
	for _, r := range tables {
		list = append(list, r.String())
	}
	return strings.Join(list, ", ")
}

func (v *survey) checkExisting(p *publication) {
	alter := func(set string) string { return fmt.Sprintf("ALTER PUBLICATION %s SET (%s);", p.sql(), set) }
	if !p.whole && !p.owned {
		v.problem("", alter("publish = 'insert, update, delete, truncate'"), "publication %q leaves out some kinds of change", p.name)
	}
	partitioned := false
	for _, r := range v.tables {
		partitioned = partitioned || r.kind == 'p'
	}
	if partitioned && !p.viaRoot && !p.owned {
		v.problem("", alter("publish_via_partition_root = true"), "publication %q publishes partitions by their own names", p.name)
	}
	captured := map[string]bool{}
	for _, r := range v.tables {
		captured[r.String()] = true
	}
	for _, name := range p.narrowed {
		if captured[name] {
			v.problem(name, fmt.Sprintf("ALTER PUBLICATION %s DROP TABLE %s; -- then ADD TABLE without WHERE and column list", p.sql(), name),
				"publication %q leaves out some of its rows or columns", p.name)
		}
	}
	lacking := p.lacking(v.tables)
	if len(lacking) == 0 || p.owned && !v.server.standby {
		v.checkOwned(lacking)
		return
	}
	v.problem("", fmt.Sprintf("ALTER PUBLICATION %s ADD TABLE %s;", p.sql(), tableList(lacking)), "publication %q, which role %q may not alter, does not have %s", p.name, v.user, names(lacking))
}

func (v *survey) createSQL() string {
	return fmt.Sprintf("CREATE PUBLICATION %s FOR TABLE %s WITH (publish_via_partition_root = true);", v.publication.sql(), tableList(v.tables))
}

func tableList(tables []*relation) string {
	var names []string
	for _, r := range tables {
		names = append(names, r.sql())
	}
	if len(names) == 0 {
		return "…"
	}
	return strings.Join(names, ", ")
}

// How long one try to lock a table waits, and how often it is tried: a queue
// behind a lock that waits blocks the application.
const (
	lockTimeout  = 2 * time.Second
	lockAttempts = 10
)

// ensurePublication makes the publication, or adds what it lacks. With a slot a
// table is added under a lock that keeps writers out, so that no transaction is
// published from its middle (V1); a slot that is made later waits for them all.
func ensurePublication(ctx context.Context, o *Options, s *session, v *survey, slot bool) error {
	p := v.publication
	if v.server.standby {
		return nil // checkPublication found that nothing is lacking
	}
	if !p.exists {
		sql := fmt.Sprintf("BEGIN; CREATE PUBLICATION %s WITH (publish_via_partition_root = true); COMMENT ON PUBLICATION %s IS %s; COMMIT", p.sql(), p.sql(), quoteText(publicationComment+" for source "+o.Source))
		if err := s.exec(ctx, sql); err != nil {
			return fmt.Errorf("make publication %s: %w", p.name, err)
		}
		o.Logger.Info("publication made", "source", o.Source, "publication", p.name)
	} else if p.owned && (!p.whole || !p.viaRoot) {
		if err := s.exec(ctx, fmt.Sprintf("ALTER PUBLICATION %s SET (publish = 'insert, update, delete, truncate', publish_via_partition_root = true)", p.sql())); err != nil {
			return fmt.Errorf("alter publication %s: %w", p.name, err)
		}
	}
	for _, r := range p.lacking(v.tables) {
		if err := addTable(ctx, s, p, r, slot); err != nil {
			return err
		}
		o.Logger.Info("table published", "source", o.Source, "table", r.String(), "publication", p.name)
	}
	return nil
}

func addTable(ctx context.Context, s *session, p *publication, r *relation, lock bool) error {
	name := "ONLY " + r.sql() // children by inheritance are tables of their own
	if r.kind == 'p' {
		name = r.sql() // the partitions are what is written
	}
	sql := fmt.Sprintf("ALTER PUBLICATION %s ADD TABLE %s", p.sql(), name)
	if lock {
		sql = fmt.Sprintf("BEGIN; SET LOCAL lock_timeout = %d; LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE; %s; COMMIT", lockTimeout.Milliseconds(), name, sql)
	}
	var err error
	for range lockAttempts {
		if err = s.exec(ctx, sql); err == nil {
			return nil
		}
		if rollback := s.exec(ctx, "ROLLBACK"); rollback != nil {
			return fmt.Errorf("add table %s to publication %s: %w", r, p.name, errors.Join(err, rollback))
		}
		switch sqlState(err) {
		case "42710": // it is a member by now
			return nil
		case "55P03", "40P01": // lock not available, deadlock
			continue
		}
		break
	}
	return fmt.Errorf("add table %s to publication %s: %w", r, p.name, err)
}
