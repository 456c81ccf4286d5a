package redislock

import (
	"context"
	"time"
)

// cleaner ends attempts of which nobody knows what became of them, in the background: until Redis answers, or their lease is over
// anyway. One goroutine does that for all, in batches. Locker.mu guards it.
type cleaner struct {
	attempts []remains
	running  bool
}

// remains are those of an attempt.
type remains struct {
	name    string
	keys    KeySet
	attempt uint64
	lease   time.Duration
	until   instant
}

// maxRemains bounds what an outage can pile up. What comes on top is left to its lease.
const maxRemains = 10000

// cleanLocked has an attempt ended.
func (l *Locker) cleanLocked(n *lock, attempt uint64) {
	c := &l.cleaner
	if len(c.attempts) >= maxRemains {
		return
	}
	lease := max(n.lease, l.opts.Lease) // an idle machine does not know it any more
	c.attempts = append(c.attempts, remains{n.name, n.keys, attempt, lease, l.now() + lease})
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
		c := &l.cleaner
		batch := c.attempts[:min(l.server.batch, len(c.attempts))]
		c.attempts = c.attempts[len(batch):]
		if len(batch) == 0 {
			c.attempts, c.running = nil, false
			l.unlock()
			return
		}
		l.unlock()
		if failed := l.cancel(batch); len(failed) > 0 {
			l.mu.Lock()
			c.attempts = append(c.attempts, failed...)
			l.unlock()
			time.Sleep(failed[0].lease / 24)
		}
	}
}

// cancel returns the attempts that are still to be ended.
func (l *Locker) cancel(batch []remains) (left []remains) {
	calls := make([]call, 0, len(batch))
	trying := make([]remains, 0, len(batch))
	now, shortest := l.now(), maxLease
	for _, r := range batch {
		if now < r.until {
			calls = append(calls, l.server.cancel(r.name, r.keys, r.attempt, r.lease))
			trying = append(trying, r)
			shortest = min(shortest, r.lease)
		}
	}
	if len(calls) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), third(shortest))
	defer cancel()
	for i, a := range l.server.doAll(ctx, calls) {
		if a.err != nil {
			left = append(left, trying[i])
		}
	}
	return left
}
