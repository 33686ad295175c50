package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Sample is one run of a contestant.
type Sample struct {
	Rate  float64            `json:"rate"`            // how good it was, in the row's unit; more is better
	CPU   float64            `json:"cpu_seconds"`     // user and system, of the whole process
	RSS   int64              `json:"rss_bytes"`       // peak
	Extra map[string]float64 `json:"extra,omitempty"` // further figures by name
}

// Contestant runs once, as a process of its own.
type Contestant func(ctx context.Context) (Sample, error)

// Fixed is the floor of rows that are measured against a figure, not a tool.
func Fixed(rate float64) Contestant {
	return func(context.Context) (Sample, error) { return Sample{Rate: rate}, nil }
}

// Output is what a child left behind.
type Output struct {
	Stdout, Stderr []byte
	CPU            float64 // seconds
	RSS            int64   // bytes
}

// Run runs a program to its end.
func Run(ctx context.Context, name string, args ...string) (Output, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	o := Output{Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}
	if ps := cmd.ProcessState; ps != nil {
		o.CPU = (ps.UserTime() + ps.SystemTime()).Seconds()
		if u, ok := ps.SysUsage().(*syscall.Rusage); ok {
			o.RSS = u.Maxrss << 10 // Linux counts KiB
		}
	}
	if err != nil {
		return o, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(o.Stderr))
	}
	return o, nil
}

// RunSample runs a program that prints its Rate and Extra as the JSON of a Sample.
func RunSample(ctx context.Context, name string, args ...string) (Sample, error) {
	o, err := Run(ctx, name, args...)
	if err != nil {
		return Sample{}, err
	}
	var s Sample
	if err := json.Unmarshal(o.Stdout, &s); err != nil {
		return s, fmt.Errorf("%s %s printed %q: %w", name, strings.Join(args, " "), o.Stdout, err)
	}
	s.CPU, s.RSS = o.CPU, o.RSS
	return s, nil
}

// Per returns n a second of the time since began.
func Per(n float64, began time.Time) float64 { return n / time.Since(began).Seconds() }
