package postgres

import (
	"context"
	"fmt"
)

// How a table is published is told by a text that changes whenever somebody
// alters it, also if it is altered back: the catalogue rows of the publication
// (with the transaction that wrote its options last) and of what makes the table
// its member. What was committed between two such changes may be missing from the
// stream, without any sign in it.
const publishedSQL = `
SELECT t.oid, p.oid || ':' || p.xmin
  || coalesce((SELECT pg_catalog.string_agg(' t' || x.oid, '' ORDER BY x.oid) FROM pg_catalog.pg_publication_rel x WHERE x.prpubid = p.oid
    AND (x.prrelid = t.oid OR x.prrelid IN (SELECT a.relid FROM pg_catalog.pg_partition_ancestors(t.oid::pg_catalog.regclass) a))), '')%s
FROM pg_catalog.unnest($1::pg_catalog.oid[]) t(oid) CROSS JOIN pg_catalog.pg_publication p WHERE p.pubname = $2`

// Members by their schema, PostgreSQL 15 and later.
const publishedSchemas = `
  || coalesce((SELECT pg_catalog.string_agg(' s' || x.oid, '' ORDER BY x.oid) FROM pg_catalog.pg_publication_namespace x WHERE x.pnpubid = p.oid
    AND x.pnnspid IN (SELECT c.relnamespace FROM pg_catalog.pg_class c WHERE c.oid = t.oid
      OR c.oid IN (SELECT a.relid FROM pg_catalog.pg_partition_ancestors(t.oid::pg_catalog.regclass) a))), '')`

// readPublished returns how each table is published, by its oid; nothing if there is no such publication.
func readPublished(ctx context.Context, s *session, sv *server, publication string, oids []uint32) (map[uint32]string, error) {
	schemas := ""
	if sv.version >= 150000 {
		schemas = publishedSchemas
	}
	rows, err := s.query(ctx, fmt.Sprintf(publishedSQL, schemas), oidArray(oids), publication)
	if err != nil {
		return nil, fmt.Errorf("read how publication %s publishes the tables: %w", publication, err)
	}
	published := map[uint32]string{}
	for _, r := range rows {
		published[toOID(r[0])] = string(r[1])
	}
	return published, nil
}

// republished takes the tables whose publication was altered since their newest
// run began for newly added: their changes meanwhile may not have been streamed.
func (c *snapshots) republished() error {
	for topic, t := range c.tables {
		st := c.m.Table(topic)
		now := c.start.published[t.oid]
		if st.Run == 0 || now == "" {
			continue
		}
		cursor, err := decodeChunkCursor(st.Cursor)
		if err != nil {
			return fmt.Errorf("run %d of table %s: %w", st.Run, t, err)
		}
		if cursor.published == "" || cursor.published == now || c.start.added[t.oid] {
			continue
		}
		c.start.logger.Warn("the table's publication was altered: changes may be missing from the stream, the table is read again",
			"source", c.start.options.Source, "table", t.String(), "publication", c.start.options.Publication)
		c.start.added[t.oid] = true
	}
	return nil
}
