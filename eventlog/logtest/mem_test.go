package logtest

import (
	"testing"

	"github.com/tailwater/tailwater/eventlog"
)

func TestMem(t *testing.T) {
	Run(t, Backend{
		Open: func(*testing.T) eventlog.Log { return Mem() },
		Reopen: func(t *testing.T, l eventlog.Log) eventlog.Log {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			return l.(*MemLog).Reopen()
		},
	})
}
