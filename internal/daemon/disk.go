package daemon

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// diskMeter measures the data directory when asked, but spends at most a
// twentieth of the time on it.
type diskMeter struct {
	mu      sync.Mutex
	next    time.Time               // not measured before
	measure func(path string) int64 // default diskUse
	used    int64
}

func (m *diskMeter) use(path string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.measure == nil {
		m.measure = diskUse
	}
	if began := time.Now(); !began.Before(m.next) {
		m.used = m.measure(path)
		end := time.Now()
		m.next = end.Add(20 * end.Sub(began))
	}
	return m.used
}

// quota is log.quota, or 80 % of the file system.
func quota(configured int64, path string) int64 {
	if configured > 0 {
		return configured
	}
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return 0
	}
	return int64(st.Blocks) * st.Bsize / 10 * 8
}
