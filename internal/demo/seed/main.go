package main

import (
	"fmt"
	"os"

	"github.com/tailwater/tailwater/internal/demo"
)

func main() {
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "seed:", err)
		os.Exit(1)
	}
}

func write(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := demo.WriteSQL(f, demo.ComposeShop); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
