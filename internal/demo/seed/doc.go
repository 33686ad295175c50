// Command seed writes the compose file's shop as SQL: go generate ./internal/demo.
package main
