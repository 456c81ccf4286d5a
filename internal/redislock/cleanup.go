package redislock

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// cleaner cancels attempts with an unknown outcome, in the background, until Redis answers or their
// lease is over. Locker.mu guards it.
type cleaner struct {
	attempts map[uint64]remains
	workers  int
}

// remains is what an attempt may have left in Redis.
type remains struct {
	lock  *lock
	lease time.Duration
	until instant
}

// maxRemains bounds the attempts that an outage can leave. Further ones are left to their lease.
const maxRemains = 10000

// maxCleaners is how many attempts are cancelled at once.
const maxCleaners = 8

// cleanLocked has an attempt cancelled.
func (l *Locker) cleanLocked(n *lock, attempt uint64, lease time.Duration) {
	c := &l.cleaner
	if len(c.attempts) >= maxRemains && !l.closed {
		return
	}
	lease = max(lease, l.opts.Lease) // zero where a grant is all that is known
	c.attempts[attempt] = remains{n, lease, l.now() + lease}
	if c.workers < maxCleaners {
		c.workers++
		l.calls.Go(l.clean)
	}
}

// clean cancels one attempt after the other, until there are none.
func (l *Locker) clean() {
	for attempt, r := l.nextRemains(); attempt != 0; attempt, r = l.nextRemains() {
		ctx := bound(context.Background(), l.base.Add(l.now()+third(r.lease)), nil)
		_, err := l.server.do(ctx, cancelScript, r.lock, attempt, r.lease.Milliseconds())
		if err != nil && !errors.Is(err, redis.ErrClosed) {
			time.Sleep(r.lease / 24)
			l.mu.Lock()
			l.cleaner.attempts[attempt] = r
			l.unlock()
		}
	}
}

// nextRemains takes out an attempt whose lease is not over. It returns zero if there is none.
// The caller must then end.
func (l *Locker) nextRemains() (uint64, remains) {
	l.mu.Lock()
	defer l.unlock()
	for attempt, r := range l.cleaner.attempts {
		delete(l.cleaner.attempts, attempt)
		if l.now() < r.until {
			return attempt, r
		}
	}
	l.cleaner.workers--
	return 0, remains{}
}
