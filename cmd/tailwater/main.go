package main

import (
	"context"
	"os"
)

func main() {
	p := &program{
		stdout: os.Stdout,
		stderr: os.Stderr,
		env:    os.LookupEnv,
		deps:   wire(),
	}
	os.Exit(p.main(context.Background(), os.Args[1:]))
}
