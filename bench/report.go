package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Report is a bench's result as it is written to bench/results.
type Report struct {
	Bench    string            `json:"bench"`
	Date     time.Time         `json:"date"`
	Revision string            `json:"revision"` // "-dirty" where files were changed
	Machine  Machine           `json:"machine"`
	Settings map[string]string `json:"settings"`
	Rows     []Result          `json:"rows"`
}

// Machine is where it ran.
type Machine struct {
	CPU       string `json:"cpu"`
	CPUs      int    `json:"cpus"`
	MemoryKiB int64  `json:"memory_kib"`
	Kernel    string `json:"kernel"`
	Go        string `json:"go"`
	// Load is the load average before and after: above 0.3 or so others ran too.
	LoadBefore string `json:"load_before"`
	LoadAfter  string `json:"load_after"`
}

// RunAll measures rows one after the other, prints each line as it comes, writes the
// report to dir, and returns the number of rows that missed.
func RunAll(ctx context.Context, rep *Report, rows []Row, pairs int, out io.Writer, dir string) (missed int, err error) {
	rep.Date = time.Now().UTC().Truncate(time.Second)
	rep.Revision = revision(ctx)
	rep.Machine = machine()
	for i := range rows {
		res, err := rows[i].Measure(ctx, pairs)
		if err != nil {
			return missed, err
		}
		if res.Verdict == Miss {
			missed++
		}
		fmt.Fprintln(out, res.String())
		rep.Rows = append(rep.Rows, res)
	}
	rep.Machine.LoadAfter = load()
	return missed, rep.write(dir)
}

func (rep *Report) write(dir string) error {
	b, err := json.MarshalIndent(rep, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	name := filepath.Join(dir, fmt.Sprintf("%s-%s.json", rep.Bench, rep.Date.Format("20060102-150405")))
	if err := os.WriteFile(name+".tmp", append(b, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(name+".tmp", name)
}

func revision(ctx context.Context) string {
	o, err := Run(ctx, "git", "describe", "--always", "--dirty", "--abbrev=12")
	if err != nil {
		return "unknown"
	}
	return string(bytes.TrimSpace(o.Stdout))
}

func machine() Machine {
	m := Machine{CPUs: runtime.NumCPU(), Go: runtime.Version(), LoadBefore: load()}
	m.CPU = field("/proc/cpuinfo", "model name")
	fmt.Sscan(field("/proc/meminfo", "MemTotal"), &m.MemoryKiB)
	b, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	m.Kernel = strings.TrimSpace(string(b))
	return m
}

func load() string {
	b, _ := os.ReadFile("/proc/loadavg")
	if f := strings.Fields(string(b)); len(f) >= 3 {
		return strings.Join(f[:3], " ")
	}
	return ""
}

// field returns the first value of a "name: value" file, "" where there is none.
func field(file, name string) string {
	b, _ := os.ReadFile(file)
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
