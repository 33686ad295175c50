package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// Fio writes size bytes to a new file in dir in blocks, with an fdatasync behind
// each. Its Rate is bytes a second; Extra has iops.
func Fio(dir string, block, size int64) Contestant {
	return func(ctx context.Context) (Sample, error) {
		file := filepath.Join(dir, "fio.tmp")
		defer os.Remove(file)
		o, err := Run(ctx, "fio", "--name=floor", "--filename="+file, "--rw=write", "--ioengine=psync", "--fdatasync=1",
			fmt.Sprintf("--bs=%d", block), fmt.Sprintf("--size=%d", size/block*block), "--output-format=json")
		if err != nil {
			return Sample{}, err
		}
		var out struct {
			Jobs []struct {
				Error int
				Write struct {
					BW   float64 `json:"bw_bytes"`
					IOPS float64 `json:"iops"`
				}
			}
		}
		if err := json.Unmarshal(o.Stdout, &out); err != nil || len(out.Jobs) != 1 || out.Jobs[0].Error != 0 {
			return Sample{}, fmt.Errorf("fio printed %q (%v)", o.Stdout, err)
		}
		w := out.Jobs[0].Write
		return Sample{Rate: w.BW, CPU: o.CPU, RSS: o.RSS, Extra: map[string]float64{"iops": w.IOPS}}, nil
	}
}

// IOPS turns the rate of Fio into operations a second.
func IOPS(fio Contestant) Contestant {
	return func(ctx context.Context) (Sample, error) {
		s, err := fio(ctx)
		s.Rate = s.Extra["iops"]
		return s, err
	}
}

var ddTime = regexp.MustCompile(`(\d+) bytes .*copied, ([0-9.e-]+) s`)

// DD reads a file, which the warm-up brings into the page cache. Its Rate is bytes a second.
func DD(file string) Contestant {
	return func(ctx context.Context) (Sample, error) {
		o, err := Run(ctx, "env", "LC_ALL=C", "dd", "if="+file, "of=/dev/null", "bs=1M")
		if err != nil {
			return Sample{}, err
		}
		m := ddTime.FindSubmatch(o.Stderr)
		if m == nil {
			return Sample{}, fmt.Errorf("dd printed %q", o.Stderr)
		}
		n, err1 := strconv.ParseFloat(string(m[1]), 64)
		t, err2 := strconv.ParseFloat(string(m[2]), 64)
		if err1 != nil || err2 != nil || t == 0 {
			return Sample{}, fmt.Errorf("dd printed %q", o.Stderr)
		}
		return Sample{Rate: n / t, CPU: o.CPU, RSS: o.RSS}, nil
	}
}
