package stock

import (
	"sync"
	"time"
)

// commits knows how long no COMMIT has been answered. It is safe for concurrent use.
type commits struct {
	mu    sync.Mutex
	under int       // guarded by mu: COMMITs under way
	since time.Time // guarded by mu: the last answer, or the first of those under way
}

func (c *commits) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.under++; c.under == 1 {
		c.since = time.Now()
	}
}

func (c *commits) end(answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.under--; answered {
		c.since = time.Now()
	}
}

// CommitStall returns how long COMMITs have been under way without an answer to any. It is 0 if none
// is under way.
func (s *Store) CommitStall() time.Duration {
	s.commits.mu.Lock()
	defer s.commits.mu.Unlock()
	if s.commits.under == 0 {
		return 0
	}
	return time.Since(s.commits.since)
}
