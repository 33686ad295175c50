package eventlog

import "time"

const (
	csnEpoch = 1577836800 // 2020-01-01T00:00:00Z
	csnShift = 22
	// MaxCSN is the end of the range that JavaScript and Lua hold exactly.
	MaxCSN CSN = 1<<53 - 1
	// ForeignSkip is added to a stamp of another log, and to the last CSN and
	// offsets after a torn acknowledged tail was cut.
	ForeignSkip = 1 << 32
)

// ClockCSN is the least CSN that a log may start with at that time.
func ClockCSN(now time.Time) CSN {
	s := now.Unix() - csnEpoch
	if s < 0 {
		return 0
	}
	return CSN(s) << csnShift
}

// ClockTime is the inverse of ClockCSN: the earliest clock at which a log could have been given c.
func ClockTime(c CSN) time.Time { return time.Unix(int64(c>>csnShift)+csnEpoch, 0) }

// LostTail reports whether a consumer remembers an end of a partition that the
// log has lost. next is the offset of the first record there or behind it, or
// the partition's end where there is none. A log that was cut goes on ForeignSkip
// above its end, once for each cut, so that next lies a little less than that
// above what was lost, and never less than that above what was not.
func LostTail(remembered, next Offset) bool {
	return uint64(next-remembered)%uint64(ForeignSkip) > uint64(ForeignSkip)/2
}

// Apart is how many offsets lie between two of a partition, without the skips
// of cuts; less than 2^31. It is 0 where a cut took more away behind from than has come since.
func Apart(from, to Offset) int64 {
	if to <= from || LostTail(from, to) {
		return 0
	}
	return int64(to-from) % ForeignSkip
}
