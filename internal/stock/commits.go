package stock

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// commits knows how long no COMMIT has been answered, and how many transactions were ended by
// deadlocks. It is safe for concurrent use.
type commits struct {
	deadlocks atomic.Int64

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

// errUnwritten commits a transaction that has written nothing. The server answers that COMMIT also where no other one is
// answered, so it is not counted. It is no error of the transaction.
var errUnwritten = errors.New("stock: nothing was written")

func (c *commits) end(answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.under--; answered {
		c.since = time.Now()
	}
}

// deadlock is the error of a transaction that the server has ended because of another one.
const deadlock = 1213

// Deadlocks returns how many transactions the server has ended to resolve a deadlock, or because
// another node of its cluster was faster.
func (s *Store) Deadlocks() int64 { return s.commits.deadlocks.Load() }

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
