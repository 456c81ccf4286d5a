package redislock

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// Lease is one entry into a held lock, to be released once. It is safe for
// concurrent use.
type Lease struct {
	hold     holding
	released atomic.Bool
}

// holding is what a lease is an entry into.
type holding interface {
	key() string
	fence() int64
	until() time.Time
	valid() bool
	leave() error
	extend(ctx context.Context) error
}

// Key is the key that was locked.
func (s *Lease) Key() string { return s.hold.key() }

// Token is the fencing token of the hold: larger than that of every earlier holder
// of the key, and the same for all entries into one hold. Give it to the database
// to compare: see Fencing in the package documentation. It is 0 for lockers that have none.
func (s *Lease) Token() int64 { return s.hold.fence() }

// Deadline is the time, on this process's monotonic clock, at which the hold ends
// unless it is renewed. It lies before the time at which Redis can give the lock to
// anybody else.
func (s *Lease) Deadline() time.Time { return s.hold.until() }

// Valid says whether the lock is held now. A moment later it may be lost: the
// held context tells when.
func (s *Lease) Valid() bool { return !s.released.Load() && s.hold.valid() }

// Release gives the lock back; where the holder entered several times, with the
// last Release of all. It takes no context, because it must work when the holder's
// has ended; it takes no longer than a third of the lease and the client's timeouts. Where
// somebody came back for the lock within microseconds of its last release, while another process waited, Release returns
// at once, and a goroutine gives the lock back unless somebody has come back for it by then. That is within microseconds, or
// as late as the scheduler comes to it in a process that uses all of its processors. Close
// waits for that; a process that ends without Close (os.Exit and log.Fatal run no deferred one) may leave the lock to its lease.
//
// [ErrNotHeld] means that the lock was lost, or this lease released before; nobody
// else's hold is touched. Nil does not mean the opposite where the lock stayed in the process, because Redis was not asked. Any other
// error means that Redis did not answer: the locker goes on trying in the background until the lease is over.
func (s *Lease) Release() error {
	if s.released.Swap(true) {
		return fmt.Errorf("release %q: %w", s.Key(), ErrNotHeld)
	}
	return s.hold.leave()
}

// Extend gives the hold a full lease again. It is for those who turned the
// watchdog off with Options.FixedLease. [ErrNotHeld] means that the lock was lost
// or released.
func (s *Lease) Extend(ctx context.Context) error {
	if s.released.Load() {
		return fmt.Errorf("extend %q: %w", s.Key(), ErrNotHeld)
	}
	return s.hold.extend(ctx)
}
