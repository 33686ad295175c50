-- Changes of every shape. Each statement is a transaction of its own, but for the marked ones.

-- Hot parents: libc6 stands below some 20,000 packages.
UPDATE packages SET summary = summary || ' (shared libraries)' WHERE name = 'libc6';
UPDATE packages SET version = version || '+tw1' WHERE name IN (SELECT target FROM dependencies GROUP BY target ORDER BY count(*) DESC, target LIMIT 5);

-- Renames: of a maintainer, of a section, of packages with their children.
UPDATE maintainers SET name = 'The ' || name WHERE email IN (SELECT maintainer FROM packages GROUP BY maintainer ORDER BY count(*) DESC, maintainer LIMIT 3);
UPDATE sections SET name = 'text-editors' WHERE name = 'editors';
UPDATE packages SET name = name || '-renamed' WHERE name LIKE 'lib%' AND length(name) = 9;

-- Moved children, a swap of keys in one transaction among them.
UPDATE dependencies SET package = (SELECT min(name) FROM packages WHERE name > 'm') WHERE package = (SELECT min(package) FROM dependencies WHERE package > 'n') AND kind = 'depends'
  AND NOT EXISTS (SELECT FROM dependencies d WHERE d.package = (SELECT min(name) FROM packages WHERE name > 'm') AND d.kind = dependencies.kind AND d.seq = dependencies.seq AND d.alternative = dependencies.alternative);
BEGIN;
  UPDATE maintainers SET email = 'swap@invalid' WHERE email = (SELECT min(email) FROM maintainers);
  UPDATE maintainers SET email = (SELECT min(email) || '.x' FROM maintainers WHERE email <> 'swap@invalid') WHERE email = 'swap@invalid';
COMMIT;
UPDATE packages SET section = (SELECT max(name) FROM sections) WHERE section = (SELECT min(name) FROM sections);

-- Tags: renamed, removed, added; the link table truncated and partly filled again.
UPDATE tags SET name = 'uitoolkit::qt-toolkit' WHERE name = 'uitoolkit::qt';
DELETE FROM tags WHERE facet = 'works-with';
INSERT INTO tags VALUES ('tailwater::example', 'tailwater');
INSERT INTO package_tags SELECT name, 'tailwater::example' FROM packages WHERE name LIKE 'python3-%';
BEGIN;
  CREATE TEMP TABLE kept AS SELECT * FROM package_tags WHERE tag LIKE 'role::%' OR tag LIKE 'tailwater::%';
  TRUNCATE package_tags;
  INSERT INTO package_tags SELECT * FROM kept;
  DROP TABLE kept;
COMMIT;

-- Deletes with their children, and rolled-back ones.
DELETE FROM packages WHERE name LIKE 'golang-%' AND length(name) % 3 = 0;
BEGIN;
  DELETE FROM packages WHERE name LIKE 'r%';
ROLLBACK;
DELETE FROM packages WHERE name = 'zlib1g';

-- Awkward text.
INSERT INTO packages VALUES ('odd|name\with"all', '0', 'all', 'optional', NULL, (SELECT max(email) FROM maintainers), '', E'tab\t quote" line\nend é 😀', 9007199254740993, NULL);
INSERT INTO dependencies VALUES ('odd|name\with"all', 'depends', 1, 1, 'odd|name\with"all', NULL), ('odd|name\with"all', 'depends', 2, 1, 'libc6', '');
