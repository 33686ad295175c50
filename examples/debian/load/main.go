package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tailwater/tailwater/examples/debian"
)

func main() {
	if len(os.Args) < 2 || len(os.Args) > 3 || len(os.Args) == 3 && os.Args[2] != "mutate" {
		fmt.Fprintln(os.Stderr, "usage: load DSN (reads `apt-cache dumpavail` from stdin) | load DSN mutate")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], len(os.Args) == 3); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dsn string, mutate bool) error {
	start := time.Now()
	if mutate {
		if err := debian.Mutate(ctx, dsn); err != nil {
			return err
		}
		fmt.Printf("changed in %.1f s\n", time.Since(start).Seconds())
		return nil
	}
	n, err := debian.Load(ctx, dsn, os.Stdin, 1000)
	if err != nil {
		return err
	}
	fmt.Printf("loaded %d packages in %.1f s\n", n, time.Since(start).Seconds())
	return nil
}
