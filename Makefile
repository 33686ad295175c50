# Every target is one line: the work is in dev/ (scripts) and internal/ (Go programs).

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)
ROUNDS  ?= 50
KIND    ?= correctness
TIME    ?= 1m
GIB     ?= 1
ROWS    ?= *
SEED    ?= 1
VALUES  ?= 100000

.PHONY: all build test lint demo kill crash mutants types cases docs-check fuzz bench bench-log clean

all: build

# One static, stripped binary: bin/tailwater.
build:
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/tailwater ./cmd/tailwater

# Vet, staticcheck, unit tests with -race, integration tests against real servers.
test:
	dev/test

lint:
	dev/lint

# The shop with live traffic; CHECK=1 runs it for a minute without a terminal and compares every document.
demo: build
	dev/demo $(if $(CHECK),--check)

# Kills the daemon ROUNDS times under load and compares what it holds with the source.
kill: build
	dev/with pg15 redis opensearch -- go run ./internal/lab kill -rounds $(ROUNDS) -seed $(SEED)

# Power loss and other faults of the file layer, on a disk in memory; FLIP=1000000 flips bits too.
crash: ROUNDS = 5000
crash: FLIP ?= 0
crash:
	go run ./internal/lab crash -rounds $(ROUNDS) -seed $(SEED) -flip $(FLIP)

# Takes out one protection of the log after the other: the tests must notice each.
mutants:
	go run ./internal/lab mutants

# Every column type of PostgreSQL, VALUES generated values of each, on all versions; SEED=0 takes the clock's.
types:
	dev/with pg13 pg14 pg15 pg16 pg17 pg18 -- go test ./connectors/postgres -run 'TestTypes$$|TestRandomValues$$' -v -timeout 90m -values $(VALUES) -seed $(SEED)

# Every row of testdata/cases.tsv of this kind has a test, and it passes.
cases:
	dev/with pg15 pg18 redis opensearch elasticsearch7 -- go run ./internal/lab cases -kind $(KIND)

# Runs each block of README and docs in an empty directory.
docs-check: build
	dev/with pg15 redis opensearch -- go run ./internal/lab docs-check

bench: bench-log

# The log beside fio, dd and Pebble: docs/performance.md. GIB=10 for the whole of the long rows.
bench-log:
	dev/bench log -gib $(GIB) -rows '$(ROWS)'

fuzz:
	dev/fuzz $(TIME)

# What builds and runs left behind; downloads and servers' installs (.cache) stay.
clean:
	rm -rf bin demo-data
