package daemon

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// diskMeter measures the data directory at most every few seconds.
type diskMeter struct {
	mu   sync.Mutex
	at   time.Time
	used int64
}

func (m *diskMeter) use(path string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.at) > 5*time.Second {
		m.used, m.at = diskUse(path), time.Now()
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
