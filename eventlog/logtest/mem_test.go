package logtest

import (
	"testing"

	"github.com/tailwater/tailwater/eventlog"
)

var memBackend = Backend{
	Open: func(*testing.T) eventlog.Log { return Mem() },
	Reopen: func(t *testing.T, l eventlog.Log) eventlog.Log {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return l.(*MemLog).Reopen()
	},
}

func TestMem(t *testing.T) { Run(t, memBackend) }

func TestMemModel(t *testing.T) { Model(t, memBackend) }
