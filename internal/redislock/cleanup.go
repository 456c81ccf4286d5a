package redislock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// cleaner ends attempts of which nobody knows what became of them, in the background: until Redis
// answers, or their lease is over anyway. Locker.mu guards it.
type cleaner struct {
	attempts map[uint64]remains
	running  bool
}

// remains are those of an attempt.
type remains struct {
	call  call // that ends it
	until instant
}

const (
	// maxRemains bounds what an outage can pile up. What comes on top is left to its lease.
	maxRemains = 10000
	// cleanBatch is how many attempts are ended at once.
	cleanBatch = 32
)

// cleanLocked has an attempt ended.
func (l *Locker) cleanLocked(n *lock, attempt uint64) {
	c := &l.cleaner
	if len(c.attempts) >= maxRemains && !l.closed {
		return
	}
	lease := max(n.lease, l.opts.Lease)
	c.attempts[attempt] = remains{l.server.cancel(n.name, n.keys, attempt, lease), l.now() + lease}
	if !c.running {
		c.running = true
		l.calls.Go(l.clean)
	}
}

// clean ends attempts, a batch at a time, until there are none.
func (l *Locker) clean() {
	for {
		l.mu.Lock()
		batch := l.batchLocked()
		l.cleaner.running = len(batch) > 0
		l.unlock()
		if len(batch) == 0 {
			return
		}
		var all sync.WaitGroup
		for attempt, r := range batch {
			all.Go(func() {
				ctx := bound(context.Background(), l.base.Add(l.now()+third(l.opts.Lease)))
				if _, err := l.server.do(ctx, r.call); err != nil && !errors.Is(err, redis.ErrClosed) {
					time.Sleep(l.opts.Lease / 24)
					return
				}
				l.mu.Lock()
				delete(l.cleaner.attempts, attempt)
				l.unlock()
			})
		}
		all.Wait()
	}
}

// batchLocked are attempts whose lease is not over.
func (l *Locker) batchLocked() map[uint64]remains {
	batch := map[uint64]remains{}
	for attempt, r := range l.cleaner.attempts {
		switch {
		case l.now() >= r.until:
			delete(l.cleaner.attempts, attempt)
		case len(batch) == cleanBatch:
			return batch
		default:
			batch[attempt] = r
		}
	}
	return batch
}
