// Package debian is the Debian example: it parses a package index (the output
// of `apt-cache dumpavail`) into PostgreSQL tables, from which a search view of
// packages with maintainer, section, tags and direct dependencies is kept.
package debian
