// Command load fills a PostgreSQL database with a Debian package index:
//
//	apt-cache dumpavail | go run ./examples/debian/load DSN
package main
