package seglog

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tailwater/tailwater/eventlog"
)

// Marks whose name begins with a zero byte are the log's own. They are kept like
// those of consumers, in groups and checkpoints:
//
//	\0horizon/TOPIC            uvarint CSN
//	\0clean/TOPIC/PARTITION    version u8 = 1, uvarint offset, varint µs of the oldest tombstone kept below it (0: none),
//	                           uvarint offset up to which a pass must look before a tombstone may go
//	\0cursor/CONSUMER          version u8 = 1, u8 flags (1 pins values, 2 rebuilds, 4 let go), uvarint CSN, uvarint topics, each uvarint id
//	\0txstart                  version u8 = 1, uvarint CSN, uvarint partitions, each uvarint topic, partition and offset
const (
	ownMark     = "\x00"
	horizonMark = ownMark + "horizon/"
	cleanMark   = ownMark + "clean/"
	cursorMark  = ownMark + "cursor/"
	txStartMark = ownMark + "txstart"
	ownVersion  = 1
)

// Flags of a cursor.
const (
	cursorValues   = 1
	cursorRebuilds = 2
	cursorLetGo    = 4
)

func isOwnMark(name string) bool { return strings.HasPrefix(name, ownMark) }

// setOwn takes in one of the log's own marks.
func (s *state) setOwn(m mark) error {
	if rest, ok := strings.CutPrefix(m.consumer, horizonMark); ok {
		id, err := strconv.ParseUint(rest, 10, 31)
		c := cursor{b: m.value}
		csn := c.csn()
		t := s.topic(eventlog.TopicID(id))
		if err != nil || t == nil || c.bad || len(c.b) != 0 {
			return fmt.Errorf("horizon of topic %q: %w", rest, errShort)
		}
		t.horizon = max(t.horizon, csn)
		return nil
	}
	consumer, isCursor := strings.CutPrefix(m.consumer, cursorMark)
	if m.value == nil {
		delete(s.marks, m.consumer)
		if isCursor {
			delete(s.cursors, consumer)
		}
		return nil
	}
	if isCursor {
		c, err := decodeCursorMark(m.value)
		if err != nil {
			return fmt.Errorf("cursor of %q: %w", consumer, err)
		}
		s.cursors[consumer] = c
	}
	s.marks[m.consumer] = m.value
	return nil
}

func horizonMarkOf(topic eventlog.TopicID, csn eventlog.CSN) mark {
	return mark{horizonMark + strconv.Itoa(int(topic)), binary.AppendUvarint(nil, uint64(csn))}
}

// cleanState is how far compaction has come in a partition: below offset each
// key has one record, but for those that something held.
type cleanState struct {
	offset    eventlog.Offset
	tombstone int64 // commit time, µs, of the oldest tombstone kept below offset; 0: none
	// covers is how far a pass must look before a tombstone may go: up to there are
	// newest records of keys of which older ones were kept.
	covers eventlog.Offset
}

func cleanMarkName(k partKey) string { return fmt.Sprintf("%s%d/%d", cleanMark, k.topic, k.partition) }

func (c cleanState) mark(k partKey) mark {
	v := binary.AppendUvarint([]byte{ownVersion}, uint64(c.offset))
	v = binary.AppendVarint(v, c.tombstone)
	return mark{cleanMarkName(k), binary.AppendUvarint(v, uint64(c.covers))}
}

// clean returns a partition's clean state. A mark that cannot be read counts as
// none: the next compaction looks at everything. The caller holds the lock.
func (s *state) clean(k partKey) cleanState {
	c := cursor{b: s.marks[cleanMarkName(k)]}
	if len(c.b) == 0 || c.byte() != ownVersion {
		return cleanState{}
	}
	out := cleanState{offset: c.offset(), tombstone: c.varint(), covers: c.offset()}
	if c.bad || len(c.b) != 0 {
		return cleanState{}
	}
	return out
}

func cursorMarkOf(consumer string, c *eventlog.Cursor) mark {
	if c == nil {
		return mark{consumer: cursorMark + consumer}
	}
	var flags byte
	for _, f := range []struct {
		set bool
		bit byte
	}{{c.Values, cursorValues}, {c.Rebuilds, cursorRebuilds}, {c.LetGo, cursorLetGo}} {
		if f.set {
			flags |= f.bit
		}
	}
	v := binary.AppendUvarint([]byte{ownVersion, flags}, uint64(c.Passed))
	v = binary.AppendUvarint(v, uint64(len(c.Topics)))
	for _, t := range c.Topics {
		v = binary.AppendUvarint(v, uint64(t))
	}
	return mark{cursorMark + consumer, v}
}

func decodeCursorMark(b []byte) (eventlog.Cursor, error) {
	c := cursor{b: b}
	if v := c.byte(); v != ownVersion {
		return eventlog.Cursor{}, fmt.Errorf("cursor of version %d; this program reads %d", v, ownVersion)
	}
	flags := c.byte()
	out := eventlog.Cursor{
		Values: flags&cursorValues != 0, Rebuilds: flags&cursorRebuilds != 0, LetGo: flags&cursorLetGo != 0, Passed: c.csn(),
	}
	for range c.count(1) {
		out.Topics = append(out.Topics, eventlog.TopicID(c.uint32()))
	}
	if c.bad || len(c.b) != 0 {
		return eventlog.Cursor{}, errShort
	}
	return out, nil
}

// txStart is where the rows of _tx begin since older ones were deleted: records
// below the offsets have no row, and those of _tx itself show nothing. They are
// read by merging partitions.
type txStart struct {
	csn  eventlog.CSN // largest CSN of a deleted row
	ends map[partKey]eventlog.Offset
}

func (t txStart) mark() mark {
	keys := make([]partKey, 0, len(t.ends))
	for k := range t.ends {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, partKey.compare)
	v := binary.AppendUvarint([]byte{ownVersion}, uint64(t.csn))
	v = binary.AppendUvarint(v, uint64(len(keys)))
	for _, k := range keys {
		v = binary.AppendUvarint(v, uint64(k.topic))
		v = binary.AppendUvarint(v, uint64(k.partition))
		v = binary.AppendUvarint(v, uint64(t.ends[k]))
	}
	return mark{txStartMark, v}
}

// txStart decodes the mark; the zero value where no row was deleted yet.
func (s *state) txStart() (txStart, error) {
	b := s.marks[txStartMark]
	if b == nil {
		return txStart{}, nil
	}
	c := cursor{b: b}
	if v := c.byte(); v != ownVersion {
		return txStart{}, fmt.Errorf("start of %s of version %d; this program reads %d", txTopicName, v, ownVersion)
	}
	t := txStart{csn: c.csn(), ends: map[partKey]eventlog.Offset{}}
	for range c.count(3) {
		k := partKey{eventlog.TopicID(c.uint32()), int32(c.uint32())}
		t.ends[k] = c.offset()
	}
	if c.bad || len(c.b) != 0 {
		return txStart{}, fmt.Errorf("start of %s: %w", txTopicName, errShort)
	}
	return t, nil
}
