package redislock

import (
	"fmt"
	"time"
)

// Options are the settings of a [Locker]. The zero value is right for most.
type Options struct {
	// Lease is how long a lock lives in Redis without renewal: the longest that
	// others wait for a holder that died. Zero means 10 seconds: long against a pause of
	// the garbage collector or of a network, short against a person's patience.
	// The shortest is 50 milliseconds, the longest an hour.
	Lease time.Duration

	// Wait is how long Acquire and Do wait for a lock, apart from the hold itself. Zero means as
	// long as their context lasts. Do not bound the wait with context.WithTimeout: the hold
	// would end at that time, too.
	Wait time.Duration

	// FixedLease turns the watchdog off: a lock ends with its lease unless
	// [Lease.Extend] is called. Zero means renewal at every third of the lease.
	FixedLease bool

	// Retry is the mean pause between two tries of a [Polling] locker. Zero means 20
	// milliseconds. A [Locker] does not poll.
	Retry time.Duration

	// Hooks are told what happens. Zero means nobody is.
	Hooks Hooks
}

// Hooks are functions that are told what happens to locks. They are called
// without any lock of the package held, in the goroutine in which it
// happens, and must be quick. Nil ones are not called.
type Hooks struct {
	// Acquired: after waiting that long, the lock is held. How says from where it came.
	Acquired func(key string, waited time.Duration, how Handoff)
	// Released: the lock was given back, passed on, or kept for a moment (see [Lease.Release]), after so long.
	Released func(key string, held time.Duration)
	// Renewed: the lease is full again.
	Renewed func(key string)
	// Lost: the holder's context has ended, because its lease was over or Redis said
	// that the lock is not its own.
	Lost func(key string)
}

// Handoff says where a lock came from.
type Handoff string

const (
	Free   Handoff = "free"   // nobody had it
	Local  Handoff = "local"  // from a goroutine of this process, without a word to Redis
	Remote Handoff = "remote" // from another process, by Redis
)

const (
	defaultLease = 10 * time.Second
	minLease     = 50 * time.Millisecond
	maxLease     = time.Hour // as long as Redis keeps a queue of which it hears nothing
	defaultRetry = 20 * time.Millisecond
)

func (o Options) withDefaults() Options {
	if o.Lease == 0 {
		o.Lease = defaultLease
	}
	if o.Lease < minLease || o.Lease > maxLease {
		panic(fmt.Sprintf("redislock: Options.Lease is %s, want %s to %s", o.Lease, minLease, maxLease))
	}
	if o.Retry <= 0 {
		o.Retry = defaultRetry
	}
	return o
}

// margin is taken off every local deadline, for clocks that run at different
// rates: 1 % of the lease and two milliseconds.
func (o Options) margin() time.Duration { return o.Lease/100 + 2*time.Millisecond }

// beatEvery is how often holds are renewed and waits keep their place.
func (o Options) beatEvery() time.Duration { return o.Lease / 3 }

// How long a process may pass a lock on among its own goroutines while
// another process waits: so many times, and so long since the grant.
const (
	maxPasses  = 32
	maxPassing = 50 * time.Millisecond
	// longHold is a mean hold beside which a hand-off to another process costs so little that order comes first.
	longHold = 5 * time.Millisecond
	// manyOthers is the number of waiting processes above which both limits shrink in proportion: then how long
	// one of them waits does not grow with how many do the same.
	manyOthers = 8
)

// wariness is for how many requests it is remembered that others wanted a lock. As long as it is, the script that does
// everything is sent, instead of the short one that may have done nothing.
const wariness = 16

// atOnce is how soon after giving a lock back somebody wants it who is likely to do so again: a goroutine that
// works in a loop.
const atOnce = 100 * time.Microsecond
