package redislock

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
)

// Options are the settings of a [Locker]. The zero value suits most callers.
type Options struct {
	// Lease is how long a lock lives in Redis without renewal. Others wait at most that long for a
	// holder that died. Zero means [DefaultLease]. The shortest lease is 50 milliseconds, the
	// longest an hour.
	Lease time.Duration

	// Wait is how long Acquire and Do wait for a lock. Zero means as long as their context lasts.
	// Do not bound the wait with context.WithTimeout: the hold would end at that time, too.
	Wait time.Duration

	// MaxHold bounds a hold, for code that forgets to release. After it, the held context ends with
	// [ErrLost], renewal stops, and the lock ends with its lease. The Locker does not release the
	// lock, because the holder may still work. The last Release of its entries does. Zero means no bound.
	MaxHold time.Duration

	// Grace is how long a hold is still renewed after the end of the context that it was acquired
	// with. It bounds work that is finished after its cancellation, such as a commit. After it, the
	// hold ends as after MaxHold. The Locker checks the context with each renewal. Zero means one
	// lease.
	Grace time.Duration

	// Label names the process in an [Inspection]. It has up to 64 printable characters of ASCII
	// without spaces.
	Label string

	// Prefix begins the name of each key in Redis. It has no braces.
	Prefix string

	// Hooks are called on events of the locks. Zero means none.
	Hooks Hooks
}

// AcquireOptions are the settings of one call. They replace those of its Locker. A call that enters a lock again
// ignores them: the hold keeps the lease and the MaxHold of its first entry.
type AcquireOptions struct {
	Lease   time.Duration // zero means Options.Lease
	Wait    time.Duration // zero means Options.Wait
	MaxHold time.Duration // zero means Options.MaxHold
	try     bool          // do not wait if it is taken
}

// Hooks are functions that the Locker calls on events of its locks. Nil ones are not called. A hook
// runs in the goroutine of the event, which holds no mutex of the package. It must be quick. Its
// context is the one that Acquire was called with, and may have ended.
//
// A panic in Waiting or NotServed ends the wait. A panic in Acquired releases the lock. Panics in these, in Failed and
// in Released reach the caller. Lost,
// Renewed and NotRenewed also run in goroutines of the Locker, and Evicts always does: a panic there ends
// the process. Where it reaches a caller that recovers, the hooks of the other holds are still called.
type Hooks struct {
	// Waiting: the lock is taken, and Acquire waits for it, since Event.Took. It is called at most
	// once for each Acquire, in its goroutine and before Acquired; not if the wait is over by then.
	// TryAcquire does not wait.
	Waiting func(context.Context, Event)
	// NotServed: Redis refuses what Acquire asks, or has not answered for a second, as Event.Err says. Acquire
	// waits on. It is called at most once for each Acquire, in its goroutine. An Acquire without a bound, whose
	// context cannot end, is not told of a silence: it returns when the client gives up its request.
	NotServed func(context.Context, Event)
	// Failed: Acquire or TryAcquire returns Event.Err, after Event.Took, in its goroutine.
	Failed func(context.Context, Event)
	// Acquired: the lock is held, after waiting for Event.Took.
	Acquired func(context.Context, Event)
	// Released: the lock was released or passed on, after Event.Took. Event.Err is the result of
	// Release.
	Released func(context.Context, Event)
	// Renewed: the lease is full again.
	Renewed func(context.Context, Event)
	// NotRenewed: a renewal failed, with Event.Err. The hold goes on until its deadline, and the Locker
	// repeats the renewal.
	NotRenewed func(context.Context, Event)
	// Lost: the holder's context has ended. Its lease was over, Redis said that the lock belongs to
	// another, MaxHold or Grace was over, or the Locker was closed. Event.Err is ErrLeaseOver,
	// ErrTaken, ErrHeldTooLong or ErrClosed.
	Lost func(context.Context, Event)
	// ClockJumped: the clock of Redis is ahead of where it was, by so much at least: it was set
	// forward, or another server with another clock has the lock now. Leases may have ended that much
	// sooner, so there may have been a second holder. They have not where MIGRATE moved the slot, or where the clock
	// of this machine stood still. All holds are renewed at once. It is called at most once a lease.
	ClockJumped func(by time.Duration)
	// Evicts: Redis may delete locks when it is out of memory, because of this maxmemory-policy.
	// The Locker asks once, in the background, at the first hold, if Redis allows INFO.
	Evicts func(policy string)
}

// Event describes an event to a hook.
type Event struct {
	Key   string
	Token int64         // of the hold; 0 without one
	Took  time.Duration // the wait, or the hold so far
	From  Handoff       // of Acquired
	Err   error         // of NotServed, Failed, Lost, NotRenewed and Released
}

// Handoff says where a lock came from.
type Handoff string

const (
	Free   Handoff = "free"   // nobody had it
	Local  Handoff = "local"  // from a goroutine of this process, without a request
	Remote Handoff = "remote" // from another process, by Redis
)

// DefaultLease is the lease of a [Locker] whose Options name none, of the lockers of package polling,
// and of the shop. It is long for a pause of the garbage collector or of a network, and short for a
// person who waits. Both READMEs state it in the example of a copy, which a test holds.
const DefaultLease = 10 * time.Second

const minLease, maxLease, maxLabel = 50 * time.Millisecond, time.Hour, 64

func (o Options) withDefaults() Options {
	call := AcquireOptions{Lease: o.Lease, Wait: o.Wait, MaxHold: o.MaxHold}.withDefaults(Options{Lease: DefaultLease})
	o.Lease, o.Wait, o.MaxHold, o.Grace = call.Lease, call.Wait, call.MaxHold, min(o.Grace, never)
	if o.Grace < 0 {
		panic(fmt.Sprintf("redislock: Options.Grace is %s, want zero or more", o.Grace))
	}
	if len(o.Label) > maxLabel || strings.ContainsFunc(o.Label, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		panic(fmt.Sprintf("redislock: Options.Label is %q, want up to %d printable characters of ASCII without spaces", o.Label, maxLabel))
	}
	if strings.ContainsAny(o.Prefix, "{}") {
		panic(fmt.Sprintf("redislock: Options.Prefix is %q, want no braces: they mark a key's hash tag", o.Prefix))
	}
	return o
}

func (o AcquireOptions) withDefaults(d Options) AcquireOptions {
	if o.Wait < 0 || o.MaxHold < 0 {
		panic(fmt.Sprintf("redislock: Wait is %s and MaxHold is %s, want zero or more", o.Wait, o.MaxHold))
	}
	o.Lease = cmp.Or(o.Lease, d.Lease)
	if o.Lease < minLease || o.Lease > maxLease {
		panic(fmt.Sprintf("redislock: the lease is %s, want %s to %s", o.Lease, minLease, maxLease))
	}
	// An end that is not given, or is too far away to be a time, is never.
	o.Wait, o.MaxHold = min(cmp.Or(o.Wait, d.Wait, never), never), min(cmp.Or(o.MaxHold, d.MaxHold, never), never)
	return o
}
