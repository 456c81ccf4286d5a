package redislock

import (
	"context"
	"time"
)

// cleaner ends attempts of which nobody knows what became of them, in the background: until Redis
// answers, or their lease is over anyway. One goroutine does that for all, one after another.
// Locker.mu guards it.
type cleaner struct {
	attempts map[uint64]remains
	running  bool
}

// remains are those of an attempt.
type remains struct {
	call  call // that ends it
	lease time.Duration
	until instant
}

// maxRemains bounds what an outage can pile up. What comes on top is left to its lease.
const maxRemains = 10000

// cleanLocked has an attempt ended.
func (l *Locker) cleanLocked(n *lock, attempt uint64) {
	c := &l.cleaner
	if len(c.attempts) >= maxRemains && !l.closed {
		return
	}
	lease := max(n.lease, l.opts.Lease)
	c.attempts[attempt] = remains{l.server.cancel(n.name, n.keys, attempt, lease), lease, l.now() + lease}
	if !c.running {
		c.running = true
		l.calls.Add(1)
		go l.clean()
	}
}

// clean ends attempts until there are none.
func (l *Locker) clean() {
	defer l.calls.Done()
	for {
		l.mu.Lock()
		attempt, r := l.remainsLocked()
		l.cleaner.running = attempt != 0
		l.unlock()
		if attempt == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), third(r.lease))
		_, err := l.server.do(ctx, r.call)
		cancel()
		if err != nil {
			time.Sleep(r.lease / 24)
			continue
		}
		l.mu.Lock()
		delete(l.cleaner.attempts, attempt)
		l.unlock()
	}
}

// remainsLocked is any attempt whose lease is not over, or zero.
func (l *Locker) remainsLocked() (uint64, remains) {
	for attempt, r := range l.cleaner.attempts {
		if l.now() < r.until {
			return attempt, r
		}
		delete(l.cleaner.attempts, attempt)
	}
	return 0, remains{}
}
