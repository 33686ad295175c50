package seglog

import (
	"context"
	"testing"
	"time"

	"github.com/tailwater/tailwater/eventlog"
)

// TestTombstoneOverHeldValues: where a key change is not filled yet, all that its
// old key had stays, also a delete of before and what that hides. A pass that does
// not look as far as the key change knows nothing of that: it may not take the
// delete alone, and neither may any later one that looks no further.
func TestTombstoneOverHeldValues(t *testing.T) {
	c := newCleaned(t)
	c.put("k=v1", "k", "k=v2")
	passed := c.log.Frontier()
	halves := &eventlog.Tx{Kind: eventlog.TxSource, Source: "s", CommitTime: c.now.UnixMicro(), Records: []eventlog.Record{
		{Topic: c.top.ID, Seq: 0, Op: testDelete, Flags: eventlog.FlagMoved, Key: []byte("k")},
		{Topic: c.top.ID, Seq: 1, Op: testInsert, Flags: eventlog.FlagMoved | eventlog.FlagPartial, Key: []byte("j"), Value: []byte("~")},
	}}
	if err := c.log.Append(context.Background(), []*eventlog.Tx{halves}); err != nil {
		t.Fatal(err)
	}
	all := []string{"0:k=v1", "1:k", "2:k=v2", "3:k", "4:j=~"}
	c.seal()
	c.compact()
	c.want(0, all...)
	c.now = c.now.Add(2 * time.Hour) // the tombstones are old enough
	if err := c.log.SetCursor("view", &eventlog.Cursor{Topics: []eventlog.TopicID{c.top.ID}, Passed: passed, Values: true}); err != nil {
		t.Fatal(err)
	}
	c.compact() // up to the key change
	c.want(0, all...)
	if err := c.log.SetCursor("view", nil); err != nil {
		t.Fatal(err)
	}
	c.compact()
	c.want(0, all...)
	c.put("j=whole") // it is filled
	c.seal()
	c.compact()
	c.want(0, "5:j=whole")
}
