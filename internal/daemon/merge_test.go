package daemon

import (
	"errors"
	"testing"

	"github.com/tailwater/tailwater/config"
	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/logtest"
)

// startsAt is a log whose topics have lost what is below an offset.
type startsAt struct {
	*logtest.MemLog
	first eventlog.Offset
}

func (l *startsAt) StartOffsets(eventlog.TopicID) []eventlog.Offset {
	return []eventlog.Offset{l.first}
}

// TestLostRecordsAreNotCompacted: a topic that retention has shortened does not
// become one that looks whole.
func TestLostRecordsAreNotCompacted(t *testing.T) {
	for first, want := range map[eventlog.Offset]error{0: nil, 7: ErrLostRecords} {
		log := &startsAt{logtest.Mem(), first}
		if _, err := log.EnsureTopic(eventlog.TopicSpec{Name: "s.public.t", Partitions: 1, Cleanup: eventlog.CleanupDelete}); err != nil {
			t.Fatal(err)
		}
		if err := applyTopicRules(&config.Config{}, log); !errors.Is(err, want) {
			t.Errorf("from offset %d: %v, want %v", first, err, want)
		}
		same := &config.Config{Log: config.Log{Topics: []config.TopicRule{{Pattern: "*", Cleanup: config.CleanupDelete}}}}
		log = &startsAt{logtest.Mem(), first}
		if _, err := log.EnsureTopic(eventlog.TopicSpec{Name: "s.public.t", Partitions: 1, Cleanup: eventlog.CleanupDelete}); err != nil {
			t.Fatal(err)
		}
		if err := applyTopicRules(same, log); err != nil {
			t.Errorf("unchanged, from offset %d: %v", first, err)
		}
	}
}
