package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tailwater/tailwater/connectors"
)

// survey is what Describe and Open find out about the database.
type survey struct {
	server      *server
	tables      []*relation // to capture
	publication *publication
	problems    []connectors.Problem
	user        string
	database    string
	describe    bool // look for what passes too, such as all wal senders being busy
	// fresh tells a table that a running source has never captured: if it cannot
	// be, that is no reason to stop. nil at a first start.
	fresh func(r *relation) bool
}

func (v *survey) problem(table, fix, format string, args ...any) {
	v.problems = append(v.problems, connectors.Problem{Table: table, Message: fmt.Sprintf(format, args...), Fix: fix})
}

func (v *survey) warn(table, fix, format string, args ...any) {
	v.problems = append(v.problems, connectors.Problem{Table: table, Message: fmt.Sprintf(format, args...), Fix: fix, Warning: true})
}

// err returns the problems that stop Open as one error, nil if there are none.
func (v *survey) err(source string) error {
	var b strings.Builder
	for _, p := range v.problems {
		if p.Warning {
			continue
		}
		b.WriteString("; ")
		if p.Table != "" {
			b.WriteString(p.Table + ": ")
		}
		b.WriteString(p.Message)
		if p.Fix != "" {
			b.WriteString(" (" + inLine(p.Fix) + ")")
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return fmt.Errorf("source %s: %w: %s", source, connectors.ErrPrerequisite, strings.TrimPrefix(b.String(), "; "))
}

// inLine is a fix inside a sentence.
func inLine(fix string) string { return strings.ReplaceAll(fix, "\n", " ") }

// surveyDatabase reads everything and finds every problem; an error means that it could not look.
func surveyDatabase(ctx context.Context, o *Options, s *session, v *survey) (*survey, error) {
	var err error
	if v.server, err = readServer(ctx, s); err != nil {
		return nil, err
	}
	rows, err := s.query(ctx, "SELECT current_user, pg_catalog.current_database()")
	if err != nil {
		return nil, fmt.Errorf("read the session's user: %w", err)
	}
	v.user, v.database = string(rows[0][0]), string(rows[0][1])
	if err := v.checkServer(ctx, o, s); err != nil {
		return nil, err
	}
	if v.publication, err = readPublication(ctx, s, v.server, o.Publication); err != nil {
		return nil, err
	}
	all, err := readRelations(ctx, s, 0)
	if err != nil {
		return nil, err
	}
	chosen := v.choose(o, all)
	if err := readColumns(ctx, s, chosen); err != nil {
		return nil, err
	}
	literals := parsePatterns(o.Tables)
	for _, r := range chosen {
		v.checkTable(r, namedLiterally(literals, r.String()))
	}
	if err := v.checkPublication(ctx, o, s); err != nil {
		return nil, err
	}
	return v, nil
}

func namedLiterally(list []pattern, name string) bool {
	for _, p := range list {
		if p.literal && p.text == name {
			return true
		}
	}
	return false
}

const rolesSQL = `
SELECT r.rolreplication OR r.rolsuper,
  EXISTS (SELECT FROM pg_catalog.pg_roles m WHERE m.rolname IN ('rds_replication', 'rds_superuser', 'cloudsqlsuperuser', 'azure_pg_admin', 'replication')
    AND NOT m.rolcanlogin AND pg_catalog.pg_has_role(r.oid, m.oid, 'USAGE')),
  (SELECT setting FROM pg_catalog.pg_settings WHERE name = 'wal_level'),
  (SELECT setting FROM pg_catalog.pg_settings WHERE name = 'max_replication_slots'),
  (SELECT setting FROM pg_catalog.pg_settings WHERE name = 'max_wal_senders'),
  (SELECT pg_catalog.count(*) FROM pg_catalog.pg_replication_slots),
  (SELECT pg_catalog.count(*) FROM pg_catalog.pg_replication_slots WHERE slot_name = $1),
  (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_get_wal_senders()),
  EXISTS (SELECT FROM pg_catalog.pg_replication_slots WHERE slot_name = $1 AND active)
FROM pg_catalog.pg_roles r WHERE r.rolname = current_user`

// checkServer checks what concerns the server and the role.
func (v *survey) checkServer(ctx context.Context, o *Options, s *session) error {
	rows, err := s.query(ctx, rolesSQL, o.Slot)
	if err != nil || len(rows) != 1 {
		return errors.Join(errors.New("read the role's privileges"), err)
	}
	r := rows[0]
	if !isTrue(r[0]) && !isTrue(r[1]) {
		v.problem("", fmt.Sprintf("ALTER ROLE %s REPLICATION;\n-- on Amazon RDS: GRANT rds_replication TO %s;", quoteName(v.user), quoteName(v.user)),
			"role %q may not replicate", v.user)
	}
	if level := string(r[2]); level != "logical" {
		v.problem("", "ALTER SYSTEM SET wal_level = logical; -- then restart the server; on Amazon RDS: parameter rds.logical_replication = 1",
			"wal_level is %s, logical is needed", level)
	}
	slots, used, ours := toInt(r[3]), toInt(r[5]), toInt(r[6])
	if ours == 0 && used >= slots {
		v.problem("", fmt.Sprintf("ALTER SYSTEM SET max_replication_slots = %d; -- then restart the server", max(10, slots+4)),
			"all %d replication slots are taken (max_replication_slots)", slots)
	}
	senders, sending := toInt(r[4]), toInt(r[7])
	if v.describe && !isTrue(r[8]) && sending >= senders {
		v.problem("", fmt.Sprintf("ALTER SYSTEM SET max_wal_senders = %d; -- then restart the server", max(10, senders+4)),
			"all %d wal senders are taken (max_wal_senders)", senders)
	}
	if v.server.encoding == "SQL_ASCII" {
		v.warn("", "", "the database's encoding is SQL_ASCII, which does not say what bytes above 127 mean: text that is not UTF-8 stops the capture")
	}
	return nil
}

// choose returns the relations that the patterns take, and reports patterns
// that take none.
func (v *survey) choose(o *Options, all []*relation) []*relation {
	include, exclude := parsePatterns(o.Tables), parsePatterns(o.Exclude)
	var names []string
	byName := make(map[string]*relation, len(all))
	for _, r := range all {
		names = append(names, r.String())
		byName[r.String()] = r
	}
	var chosen []*relation
	for _, r := range all {
		name := r.String()
		if !matchAny(include, name) || matchAny(exclude, name) {
			continue
		}
		if named := namedLiterally(include, name); !named && (r.partition || r.kind != 'r' && r.kind != 'p' || r.persistence == 't') {
			continue // a partition comes as its root
		}
		chosen = append(chosen, r)
	}
	for _, p := range include {
		if p.literal && byName[p.text] == nil {
			v.missing(p, names)
		} else if !p.literal && !anyMatch(p, chosen) {
			v.warn("", "", "no table matches %q", p.text)
		}
	}
	return chosen
}

func anyMatch(p pattern, list []*relation) bool {
	for _, r := range list {
		if p.match(r.String()) {
			return true
		}
	}
	return false
}

func (v *survey) missing(p pattern, names []string) {
	schema, _, _ := strings.Cut(p.text, ".")
	switch {
	case schema == "information_schema" || strings.HasPrefix(schema, "pg_"):
		v.problem(p.text, "", "tables of system schemas are not captured")
	case nearest(p.text, names) != "":
		v.problem(p.text, "", "there is no such table in database %s; is %s meant?", v.database, nearest(p.text, names))
	default:
		v.problem(p.text, "", "there is no such table in database %s, or role %q may not see it", v.database, v.user)
	}
}

// checkTable takes the table, or skips it with a warning under a glob and a problem if it is named.
func (v *survey) checkTable(r *relation, named bool) {
	if fault, fix := unfit(r); fault != "" {
		if named {
			v.problem(r.String(), fix, "%s", fault)
		} else {
			v.warn(r.String(), fix, "skipped: %s", fault)
		}
		return
	}
	if !named && v.fresh != nil && v.fresh(r) {
		if fault := unreachable(v.server, v.publication, r, v.user); fault != "" {
			v.warn(r.String(), "", "skipped: %s", fault)
			return
		}
	}
	if !r.selectable || !r.usable {
		v.problem(r.String(), fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s;\nGRANT SELECT ON %s TO %s;", quoteName(r.schema), quoteName(v.user), r.sql(), quoteName(v.user)),
			"role %q may not read it", v.user)
	}
	if r.rowSecurity {
		v.problem(r.String(), fmt.Sprintf("ALTER ROLE %s BYPASSRLS;", quoteName(v.user)), "row-level security hides rows from role %q in the snapshot, though not in the stream", v.user)
	}
	for i := range r.columns {
		if c := &r.columns[i]; c.generated && !c.dropped {
			v.warn(r.String(), "", "column %s is generated and is left out", c.name)
		}
	}
	v.tables = append(v.tables, r)
}

// unreachable says why our role cannot capture a table that is fit for it.
func unreachable(sv *server, p *publication, r *relation, user string) string {
	switch {
	case !r.selectable || !r.usable:
		return fmt.Sprintf("role %q may not read it", user)
	case r.rowSecurity:
		return fmt.Sprintf("row-level security hides rows from role %q", user)
	case p.exists && len(p.lacking([]*relation{r})) > 0 && (!p.owned || !r.owned || sv.standby):
		return fmt.Sprintf("publication %q does not have it and role %q may not add it", p.name, user)
	}
	return ""
}

// unfit says why a table cannot be captured, and what mends it.
func unfit(r *relation) (fault, fix string) {
	switch r.kind {
	case 'v', 'm':
		return "a view has no changes of its own: name the tables it reads", ""
	case 'f':
		return "a foreign table's changes are not in this server's log", ""
	}
	switch {
	case r.persistence == 'u':
		return "an unlogged table's changes are not in the server's log", fmt.Sprintf("ALTER TABLE %s SET LOGGED;", r.sql())
	case r.persistence == 't':
		return "a temporary table's changes are not in the server's log", ""
	case r.identity == 'n':
		return "its replica identity is NOTHING, so that updates and deletes would not say of which row", fmt.Sprintf("ALTER TABLE %s REPLICA IDENTITY DEFAULT;", r.sql())
	case r.identity == 'i' && r.replident == nil:
		return "its replica identity names an index that is gone", fmt.Sprintf("ALTER TABLE %s REPLICA IDENTITY DEFAULT;", r.sql())
	case r.key() == nil:
		return "it has no primary key (one that is not deferrable), so that updates and deletes would not say of which row",
			fmt.Sprintf("ALTER TABLE %s ADD PRIMARY KEY (…);\n-- or: ALTER TABLE %s REPLICA IDENTITY USING INDEX …; with a unique index over NOT NULL columns", r.sql(), r.sql())
	}
	for _, num := range r.key() {
		for i := range r.columns {
			if r.columns[i].num == num && r.columns[i].generated {
				return "its key has a generated column, which the stream does not carry", ""
			}
		}
	}
	return "", ""
}
