package main

import (
	"context"
	"fmt"
	"os"

	"github.com/tailwater/tailwater/internal/demo"
)

// wire is the one place that knows the concrete types behind deps.
func wire() deps {
	return deps{demo: runDemo}
}

// runDemo runs the demo, whose daemon is this very program.
func runDemo(ctx context.Context, o demoOptions) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program for the demo's daemon: %w", err)
	}
	return demo.Run(ctx, demo.Options{
		DSN: o.DSN, DataDir: o.Dir, Binary: self, Listen: o.Listen, Check: o.Check,
		Out: o.Out, Rate: o.Rate, CheckTime: o.For,
	})
}
