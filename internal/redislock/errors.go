package redislock

import "errors"

// What callers get, by what they must do. An error of the transport, such as a
// timeout, comes wrapped with the lock's key: then the outcome is unknown, and the
// Locker cleans up behind it.
var (
	// ErrNotAcquired: the lock was not free in time. Try again, or give up.
	ErrNotAcquired = errors.New("redislock: not acquired")
	// ErrLost: the lock was held and may be somebody else's by now. Stop working. It
	// is the cause of a held context that ended with its lock.
	ErrLost = errors.New("redislock: lock lost")
	// ErrNotHeld: there was nothing to release or extend: the lease is over, or the
	// lock was released before. Note it.
	ErrNotHeld = errors.New("redislock: lock not held")
	// ErrClosed: the Locker was closed.
	ErrClosed = errors.New("redislock: locker closed")
)
