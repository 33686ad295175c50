package postgres

import (
	"context"
	"fmt"
	"strconv"
)

// A table's storage is its own heap, or those of its partitions at any depth.
// A partition that is a foreign table has none and is not read.
const storageSQL = `
SELECT t.oid, c.oid, pg_catalog.pg_relation_filenode(c.oid), c.xmin, GREATEST(c.reltuples, 0)::pg_catalog.int8,
  pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname), pg_catalog.has_table_privilege(c.oid, 'SELECT')
FROM pg_catalog.unnest($1::pg_catalog.oid[]) t(oid)
CROSS JOIN LATERAL (SELECT t.oid AS relid UNION SELECT p.relid::pg_catalog.oid FROM pg_catalog.pg_partition_tree(t.oid::pg_catalog.regclass) p) l
JOIN pg_catalog.pg_class c ON c.oid = l.relid AND c.relkind = 'r'
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
ORDER BY t.oid, c.oid`

// readStorage returns the storage of each table, by its oid. One that is gone is left out.
func readStorage(ctx context.Context, s *session, sv *server, oids []uint32) (map[uint32][]storage, error) {
	rows, err := s.query(ctx, storageSQL, oidArray(oids))
	if err != nil {
		return nil, fmt.Errorf("read the tables' storage: %w", err)
	}
	all := map[uint32][]storage{}
	for _, r := range rows {
		st := storage{oid: toOID(r[1]), filenode: toOID(r[2]), rows: toInt(r[4]), name: string(r[5]), readable: isTrue(r[6])}
		// 2 is what the catalogue's first rows and frozen ones have.
		if xid := uint32(toInt(r[3])); xid > 2 {
			st.changedBy = strconv.FormatUint(widenXID(xid, sv.xid), 10)
		}
		table := toOID(r[0])
		all[table] = append(all[table], st)
	}
	return all, nil
}

// totalRows adds the estimates.
func totalRows(list []storage) int64 {
	var n int64
	for _, s := range list {
		n += s.rows
	}
	return n
}
