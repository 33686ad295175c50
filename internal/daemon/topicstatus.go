package daemon

import (
	"slices"
	"strings"
	"time"

	"github.com/tailwater/tailwater/eventlog"
	"github.com/tailwater/tailwater/eventlog/seglog"
	"github.com/tailwater/tailwater/server"
)

// topicStatus is what the log says of its topics, by their names.
func topicStatus(infos []seglog.TopicInfo) []server.TopicStatus {
	list := []server.TopicStatus{}
	for i := range infos {
		t := &infos[i]
		s := server.TopicStatus{
			Name: t.Topic.Spec.Name, Partitions: t.Topic.Spec.Partitions, Cleanup: string(t.Topic.Spec.Cleanup),
			Records: t.SegmentRecords + t.JournalRecords, Bytes: t.SegmentBytes, Segments: t.Segments,
			JournalRecords: t.JournalRecords, JournalBytes: t.JournalBytes,
			Start: offsets(t.Start), End: offsets(t.End), HorizonCSN: uint64(t.Horizon),
		}
		if t.NewestTime != 0 {
			newest := time.UnixMicro(t.NewestTime).UTC()
			s.Newest = &newest
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b server.TopicStatus) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func offsets(list []eventlog.Offset) []int64 {
	out := make([]int64, len(list))
	for i, o := range list {
		out[i] = int64(o)
	}
	return out
}
