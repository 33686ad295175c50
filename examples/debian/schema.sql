-- The tables of the Debian example. Names are keys; renames cascade.
DROP TABLE IF EXISTS dependencies, package_tags, tags, packages, sections, maintainers;

CREATE TABLE maintainers (email text PRIMARY KEY, name text NOT NULL);
CREATE TABLE sections (name text PRIMARY KEY, area text NOT NULL);
CREATE TABLE packages (
  name           text PRIMARY KEY,
  version        text NOT NULL,
  architecture   text NOT NULL,
  priority       text NOT NULL,
  section        text REFERENCES sections ON UPDATE CASCADE,
  maintainer     text NOT NULL REFERENCES maintainers ON UPDATE CASCADE,
  homepage       text,
  summary        text NOT NULL,
  installed_size bigint,
  size           bigint
);
CREATE TABLE tags (name text PRIMARY KEY, facet text NOT NULL);
CREATE TABLE package_tags (
  package text NOT NULL REFERENCES packages ON UPDATE CASCADE ON DELETE CASCADE,
  tag     text NOT NULL REFERENCES tags ON UPDATE CASCADE ON DELETE CASCADE,
  PRIMARY KEY (package, tag)
);
-- A target may be a virtual package, so it is no foreign key.
CREATE TABLE dependencies (
  package     text NOT NULL REFERENCES packages ON UPDATE CASCADE ON DELETE CASCADE,
  kind        text NOT NULL,
  seq         int  NOT NULL,
  alternative int  NOT NULL,
  target      text NOT NULL,
  version     text,
  PRIMARY KEY (package, kind, seq, alternative)
);
CREATE INDEX ON dependencies (target);
