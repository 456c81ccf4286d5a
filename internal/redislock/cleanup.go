package redislock

import (
	"context"
	"time"
)

// cleaner ends attempts of which nobody knows what became of them, in the background: until Redis answers, or their lease is over
// anyway. One goroutine does that for all, in batches. Locker.mu guards it.
type cleaner struct {
	attempts map[uint64]remains
	running  bool
}

// remains are those of an attempt.
type remains struct {
	name  string
	keys  KeySet
	lease time.Duration
	until instant
}

// maxRemains bounds what an outage can pile up. What comes on top is left to its lease.
const maxRemains = 10000

// cleanLocked has an attempt ended.
func (l *Locker) cleanLocked(n *lock, attempt uint64) {
	c := &l.cleaner
	if len(c.attempts) >= maxRemains {
		return
	}
	lease := max(n.lease, l.opts.Lease)
	c.attempts[attempt] = remains{n.name, n.keys, lease, l.now() + lease}
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
		attempts, calls, shortest := l.remainsLocked()
		l.cleaner.running = len(attempts) > 0
		l.unlock()
		if len(attempts) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), third(shortest))
		answers := l.server.doAll(ctx, calls)
		cancel()
		failed := false
		l.mu.Lock()
		for i, a := range answers {
			if failed = failed || a.err != nil; a.err == nil {
				delete(l.cleaner.attempts, attempts[i])
			}
		}
		l.unlock()
		if failed {
			time.Sleep(shortest / 24)
		}
	}
}

// remainsLocked is a batch of attempts, and what ends them. Those whose lease is over are none any more.
func (l *Locker) remainsLocked() (attempts []uint64, calls []call, shortest time.Duration) {
	shortest = maxLease
	for attempt, r := range l.cleaner.attempts {
		switch {
		case l.now() >= r.until:
			delete(l.cleaner.attempts, attempt)
		case len(attempts) < l.server.batch:
			attempts = append(attempts, attempt)
			calls = append(calls, l.server.cancel(r.name, r.keys, attempt, r.lease))
			shortest = min(shortest, r.lease)
		}
	}
	return attempts, calls, shortest
}
