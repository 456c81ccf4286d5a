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
	hold     Hold
	released atomic.Bool
}

// Hold is what a lease stands for. Callers do not need it: who writes another locker gives it to
// [NewLease].
type Hold interface {
	Key() string
	Token() int64
	Deadline() time.Time
	Valid() bool
	Release() error // called once at most
	Extend(ctx context.Context) error
}

// NewLease is for those who write another locker.
func NewLease(h Hold) *Lease { return &Lease{hold: h} }

// Key is the key that was locked, as the caller spelled it.
func (s *Lease) Key() string { return s.hold.Key() }

// Token is the fencing token of the hold: larger than that of every earlier holder
// of the key, and the same for all entries into one hold. Give it to the database
// to compare: see Fencing in the package documentation. It is 0 for lockers that have none.
func (s *Lease) Token() int64 { return s.hold.Token() }

// Deadline is the time, on this process's monotonic clock, at which the hold ends
// unless it is renewed. It lies before the time at which Redis can give the lock to
// anybody else.
func (s *Lease) Deadline() time.Time { return s.hold.Deadline() }

// Valid says whether the lock is held now, by the clock. A moment later it may be lost.
func (s *Lease) Valid() bool { return !s.released.Load() && s.hold.Valid() }

// Release releases the lock; where the holder entered several times, with the
// last Release of all. It takes no context, because it must work when the holder's
// has ended; it takes no longer than a third of the lease and the client's timeouts.
//
// [ErrNotHeld] means that the lock was lost, or this lease released before; nobody else's hold is
// touched. Nil does not mean the opposite where the lock was passed on inside the process, because
// Redis was not asked. Any other error means that Redis did not answer, or refused: the Locker goes
// on trying in the background until the lease is over.
func (s *Lease) Release() error {
	if s.released.Swap(true) {
		return fmt.Errorf("release %q: %w", s.Key(), ErrNotHeld)
	}
	return s.hold.Release()
}

// Extend gives the hold a full lease again, now. It is for those who turned renewal off with
// Options.FixedLease. [ErrNotHeld] means that the lock was lost or released. Any other error means
// that Redis did not answer, or refused, and leaves the hold as it was.
func (s *Lease) Extend(ctx context.Context) error {
	if s.released.Load() {
		return fmt.Errorf("extend %q: %w", s.Key(), ErrNotHeld)
	}
	return s.hold.Extend(ctx)
}
