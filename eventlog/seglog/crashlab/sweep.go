package crashlab

import (
	"math/rand/v2"
	"slices"

	"github.com/tailwater/tailwater/eventlog"
)

// mixed is the sweep's workload: sessions of operations by name. The first ends
// by a power loss that tears the journal's tail, the second by a kill.
var mixed = [][]string{
	{
		"topic", "append", "mark", "topic", "append", "stream", "append", "topic", "stream", "stream", "stream", "roll", "stream", "cursor", "stream", "stream", "stream", "append", "stream", "topic", "stream",
		"seal all", "append", "compact", "append", "mark", "skip", "append", "append", "look", "seal all", "cursor", "compact", "append",
	},
	{
		"append", "stream", "stream", "topic", "pin", "stream", "stream", "append", "stream", "stream", "seal", "stream", "compact", "stream", "stream", "mark", "append", "expire", "append", "append", "check",
		"seal all", "append", "pin", "compact", "expire", "roll", "append",
	},
	{"append", "look", "seal all", "append", "compact", "mark", "append", "expire", "look", "append"},
}

// Sweep runs the mixed workload once to count its operations, then again for
// every fault at every stride-th of them, reopens the log and compares.
func Sweep(seed int64, stride int, report reporter) (runs int, all Faults) {
	count, f := mixedLife(seed, strike{}, report)
	if f.Any() {
		report("the mixed workload fails without a fault")
		return 1, f
	}
	for f := powerLoss; f < faults; f++ {
		positions := count.changes
		if f == readErr {
			positions = count.reads
		}
		for at := int(uint64(seed) % uint64(stride)); at < positions; at += stride {
			s := strike{fault: f, at: at, times: 1 + at%4, rng: rand.New(rand.NewPCG(uint64(seed), uint64(at)))}
			_, faults := mixedLife(seed, s, report.within("%v at operation %d", f, at))
			runs++
			all.add(faults)
		}
	}
	return runs, all
}

// mixedLife lives the mixed workload. The fault s is counted through all its
// sessions; it comes back with what it saw.
func mixedLife(seed int64, s strike, report reporter) (strike, Faults) {
	l := newLife(rand.New(rand.NewPCG(uint64(seed), 1<<41)), report)
	l.opts.FileBytes, l.opts.TailBytes, l.opts.SealBatch = 3000, 500, 400
	l.opts.SegmentBytes, l.opts.MergeBytes, l.opts.CompactBytes = 2000, 400, 16*26
	for i, script := range mixed {
		s = l.scripted(s, script, i == 0)
		if l.faults.Any() || s.crashed != nil {
			break
		}
	}
	l.last()
	if s.fault == noFault && l.log != nil && !slices.ContainsFunc(l.log.EndOffsets(l.model.topic[0].ID), func(o eventlog.Offset) bool {
		return o > eventlog.ForeignSkip
	}) {
		l.wrong("no tail was cut: the workload tests less than it says")
	}
	return s, l.faults
}

// scripted is a session that does what the script says and then dies, torn: by a
// power loss in the midst of an append.
func (l *life) scripted(s strike, script []string, torn bool) strike {
	died := false
	l.session(s, func() {
		for _, name := range script {
			if !l.do(operationNamed(name)) {
				return
			}
		}
		if l.strike.tear = torn; torn {
			l.do(operationNamed("append"))
		} else {
			l.strike.crashed = l.fs.Clone()
		}
		died = true
	})
	s = l.strike
	if s.tear = false; died {
		s.crashed = nil
	}
	return s
}
