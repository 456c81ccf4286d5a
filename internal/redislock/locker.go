package redislock

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Locker acquires locks for one process. Make one, share it between all goroutines, and close it at
// the end. It is safe for concurrent use.
type Locker struct {
	opts   Options
	server server
	base   time.Time // instants count from here

	// ctx bounds the Locker's own work. It outlives all callers' contexts.
	ctx   context.Context
	stop  context.CancelFunc
	work  sync.WaitGroup // renewals and the subscription: until stop
	calls sync.WaitGroup // callers, holds, and attempts that are ending. Add only with mu; after closed, only beside another one

	maxBatch int // that of renew.go, and less in tests

	mu           sync.Mutex // the rule is in state.go
	closed       bool
	locks        map[string]*lock
	attempts     uint64               // the last attempt's number
	had          uint64               // the newest attempt that became a hold, of any lock
	events       []func()             // calls of hooks, for unlock
	subscription *subscription        // nil before the first wait
	ending       map[uint64]*lock     // attempts to be cancelled
	agenda       []slot               // to look at, and when
	next         instant              // when the timer goes off, at the latest
	timer        *time.Timer          // of lookAround
	due          map[string][]slot    // by expiry, whose renewals are to be sent, by node of a Cluster; "" elsewhere
	underWay     map[string][]instant // the deadlines of the pipelines, likewise
	jumped       instant              // when the server's clock was last seen to be set forward

	eviction sync.Once // asks whether Redis evicts
}

// lock is a machine, with its waiters and its hold in this process. Locker.mu guards it.
type lock struct {
	machine
	name    string
	keys    []any     // of its KeySet, in the order in which the scripts take them
	waiters list.List // of *waiter, first come, first served
	hold    *hold     // while held
	gone    func()    // ends the last request's wait for a connection

	trouble error         // why Redis did not serve the last request, if so
	asked   time.Time     // when the first request of a caller was sent since the last answer; zero if it was answered
	pauses  time.Duration // the last one between such requests
	pausing bool          // the last request was not carried out, and the next one is not sent yet

	place  int  // in the agenda, from one; zero if it is not there
	queued bool // its renewal is due and not sent
}

func newLock(name string) *lock {
	k := keysOf(name)
	return &lock{name: name, keys: []any{k.Lock, k.Queue, k.Waiters, k.Epoch}}
}

// waiter is one goroutine that wants the lock.
type waiter struct {
	AcquireOptions
	ctx            context.Context
	key            string // as the caller spells it
	outer          *hold  // the innermost that ctx has
	begun          instant
	answer         chan result   // of size 1
	news           chan error    // of size 2: nil when it learns that the lock is taken, and why Redis does not serve it, once each
	taken, unhappy bool          // news has had the first, and the second; Locker.mu guards both
	place          *list.Element // nil once it is out of the queue: then it has its answer
}

// result is the answer to a waiter.
type result struct {
	hold *hold
	err  error
}

// New returns a Locker on a client of go-redis. The caller closes the client, after the Locker. New
// sends nothing. It panics on invalid options, and on a *redis.Ring, which has a channel on one of
// its servers and a lock on another. Use the client of one shard instead.
//
// Requests that change a lock are not retried by the client, whatever its MaxRetries.
func New(client Client, o Options) *Locker {
	if _, ring := client.(*redis.Ring); ring {
		panic("redislock: New: a *redis.Ring does not carry messages between its servers: use the client of one shard")
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &Locker{
		opts: o.withDefaults(), server: newServer(client, o.Label), base: time.Now().Add(-time.Second), ctx: ctx, stop: stop,
		locks: map[string]*lock{}, ending: map[uint64]*lock{}, next: never, due: map[string][]slot{}, underWay: map[string][]instant{}, jumped: -never, maxBatch: maxBatch,
	}
	l.timer = time.AfterFunc(never, l.lookAround) // there is nothing yet
	return l
}

// Acquire waits until it holds the lock on key, its context is done, or Options.Wait is over. In
// the last two cases it returns [ErrNotAcquired], or [ErrUnavailable] if Redis has not answered or refuses. The
// context's cause stands beside it, if the context ended. It then returns in time with any client, even while
// Redis is silent: through one with ContextTimeoutEnabled, a cancel of its context can take a second longer.
//
// Held is a child of ctx that also ends when the lock is lost. Its cause is then [ErrLost]. Do the
// protected work under held. Check held.Err before every step that must not happen without the
// lock, because Err compares the clock. Done, and a context derived from held, can learn of the
// loss late by the scheduler's delay. Acquiring the same key with held, or with a child of it,
// enters again at once: see Reentrancy in the package documentation.
//
// The lease must be released, even after held has ended.
func (l *Locker) Acquire(ctx context.Context, key string) (held context.Context, lease *Lease, err error) {
	return l.AcquireWith(ctx, key, AcquireOptions{})
}

// TryAcquire is [Locker.Acquire] without waiting. If the lock is held or waited for, it returns
// [ErrNotAcquired] at once. If Redis refuses, it returns [ErrUnavailable]. Options.Wait bounds it while Redis is
// silent, as does a second, through a client with ContextTimeoutEnabled, if ctx or the wait can end.
func (l *Locker) TryAcquire(ctx context.Context, key string) (held context.Context, lease *Lease, err error) {
	return l.AcquireWith(ctx, key, AcquireOptions{try: true})
}

// TryAcquireWith is [Locker.TryAcquire] with settings for this call. It panics on invalid settings.
func (l *Locker) TryAcquireWith(ctx context.Context, key string, o AcquireOptions) (held context.Context, lease *Lease, err error) {
	o.try = true
	return l.AcquireWith(ctx, key, o)
}

// Holds reports whether ctx is the held context of key, or a child of it, and the lock was not released.
// It may be lost.
func (l *Locker) Holds(ctx context.Context, key string) bool {
	outer, _ := ctx.Value((*holdsOf)(l)).(*hold)
	return outer.of(l.opts.Prefix+tagged(key)) != nil
}

// Do runs fn while it holds the lock on key: see [Do].
func (l *Locker) Do(ctx context.Context, key string, fn func(held context.Context) error) error {
	return Do(ctx, l, key, fn)
}

// Locking is the common interface of [Locker] and of the lockers of package polling.
type Locking interface {
	Acquire(ctx context.Context, key string) (held context.Context, lease *Lease, err error)
	TryAcquire(ctx context.Context, key string) (held context.Context, lease *Lease, err error)
	Do(ctx context.Context, key string, fn func(held context.Context) error) error
	Close(ctx context.Context) error
}

// Do runs fn while it holds the lock on key. It returns the error of Acquire, of fn, or of Release: the last one is
// [ErrNotReleased] or [ErrNotHeld], and says that fn ran. If the lock was lost meanwhile, the error also is [ErrLost].
func Do(ctx context.Context, l Locking, key string, fn func(held context.Context) error) (err error) {
	held, lease, err := l.Acquire(ctx, key)
	if err != nil {
		return err
	}
	defer func() { // also after a panic
		if cause := cmp.Or(lease.hold.look(), context.Cause(held)); errors.Is(cause, ErrLost) && !errors.Is(err, ErrLost) {
			err = errors.Join(err, cause)
		}
		err = cmp.Or(err, lease.Release())
	}()
	return fn(held)
}

// Close ends every wait with [ErrClosed], lets nobody acquire a lock any more, and waits for its holders to release
// theirs. It renews them meanwhile. If ctx ends first, Close returns its cause. Held contexts then end with [ErrLost] and
// ErrClosed, and what is still held is left to its lease: its holder may still work. When Close returns nil, nothing
// of the Locker is left but a timer, for a second at most. After an error, its goroutines end by themselves. While Redis
// is silent, cancels take up to a lease, and requests without ContextTimeoutEnabled the client's timeouts. Give ctx a
// bound: a lease that is never released has none without MaxHold.
func (l *Locker) Close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	for _, n := range l.locks {
		for w := n.firstLocked(); w != nil; w = n.firstLocked() {
			n.dismissLocked(w, result{err: ErrClosed})
		}
		l.settleLocked(n, todo{}, "")
	}
	l.unlock()
	done := make(chan struct{})
	go func() {
		l.calls.Wait()
		l.stop()
		l.work.Wait()
		l.timer.Stop()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.unlock()
	for _, n := range l.locks {
		if n.hold != nil {
			n.stop()
			l.settleLocked(n, todo{lost: ErrClosed}, "")
		}
	}
	return context.Cause(ctx)
}

// now is the time on the monotonic clock.
func (l *Locker) now() instant { return time.Since(l.base) }

// unlock unlocks mu, and calls the hooks of what happened while it was locked.
func (l *Locker) unlock() {
	events := l.events
	l.events = nil
	l.mu.Unlock()
	for i := len(events) - 1; i >= 0; i-- {
		defer events[i]() // one that panics does not keep the others from being called
	}
}

// maxIdle is how many unused locks a Locker remembers. A lock that is used again and again need not
// be made each time.
const maxIdle = 64

// settleLocked does what a transition has returned.
func (l *Locker) settleLocked(n *lock, next todo, from Handoff) {
	if next.over != 0 {
		l.cleanLocked(n, next.over, n.lease)
	}
	if next.lost != nil && n.hold != nil {
		l.lostLocked(n, next.lost)
	}
	if next.unseen {
		l.unseenLocked()
	}
	w := n.firstLocked()
	switch {
	case n.state == idle, n.state == ending, n.hold != nil:
	case w == nil || w.Lease != n.lease: // nobody wants the attempt any more
		n.gone()
		if over := n.giveUp().over; !n.pausing {
			l.cleanLocked(n, over, n.lease)
		}
	case next.serve:
		n.hold = newHoldLocked(l, n, w, from)
		l.had, n.ends = max(l.had, n.attempt), n.hold.begun+w.MaxHold
		n.dismissLocked(w, result{hold: n.hold})
		w = n.firstLocked()
	}
	switch {
	case n.state == idle && w != nil:
		r := l.beginLocked(n, w, false)
		l.calls.Go(func() { l.send(r) })
	case n.state == idle && len(l.locks) > maxIdle && l.locks[n.name] == n:
		delete(l.locks, n.name)
	case n.state == waiting, n.state == held && w != nil:
		// Goroutines that pass the lock on among themselves must hear when another process begins to
		// wait for it.
		if err := l.subscribeLocked(); err != nil {
			l.refuseLocked(n, err)
		}
	}
	if n.state == idle { // nobody asks
		n.served()
	}
	n.tellLocked(n.waiters.Back(), n.trouble)
	l.scheduleLocked(n)
}

// tellLocked tells a waiter, and those before it, that the lock is taken, or why Redis does not serve them, once each.
// Those that do not know yet are at the end of the queue.
func (n *lock) tellLocked(e *list.Element, why error) {
	for ; e != nil && e.Value.(*waiter).tell(n.state == waiting || n.state == held, why); e = e.Prev() {
	}
}

// tell says whether there was anything to tell.
func (w *waiter) tell(taken bool, why error) bool {
	taken, unhappy := taken && !w.taken, why != nil && !w.unhappy
	w.taken, w.unhappy = w.taken || taken, w.unhappy || unhappy
	if taken {
		w.news <- nil
	}
	if unhappy {
		w.news <- why
	}
	return taken || unhappy
}

// why is that of its lock. A wait that has seen the lock taken is not that of an outage after a moment.
func (w *waiter) why(n *lock) error {
	return n.why(map[bool]time.Duration{true: tellAfter}[w.taken])
}

// tellAfter is how long Redis may take to answer before a caller is told.
const tellAfter = time.Second

// why says why Redis does not serve the waiters, or that a request has had no answer for so long; or nil.
func (n *lock) why(long time.Duration) error {
	if past := time.Since(n.asked); n.trouble == nil && n.state == asking && past >= long {
		return fmt.Errorf("no answer since %s, for %s", n.asked.Format(time.TimeOnly), past.Round(time.Millisecond))
	}
	return n.trouble
}

// served notes that Redis has answered. A request that is under way by then has still no answer of its own.
func (n *lock) served() {
	n.trouble, n.asked, n.pauses = nil, map[state]time.Time{asking: time.Now()}[n.state], 0
}

// firstLocked returns the next waiter that still wants the lock, or nil.
func (n *lock) firstLocked() *waiter {
	for e := n.waiters.Front(); e != nil; e = n.waiters.Front() {
		w := e.Value.(*waiter)
		if w.ctx.Err() == nil {
			return w
		}
		n.dismissLocked(w, result{err: notAcquired(w.key, w.why(n), context.Cause(w.ctx))})
	}
	return nil
}

// dismissLocked removes a waiter from the queue and gives it its result.
func (n *lock) dismissLocked(w *waiter, r result) {
	n.waiters.Remove(w.place)
	w.place = nil
	w.answer <- r
}

// lostLocked ends a hold as lost, and notes it for the hook.
func (l *Locker) lostLocked(n *lock, how error) {
	h := n.hold
	n.hold = nil
	defer l.calls.Done()
	h.end(lost(h.key, how, h.failed.Load()))
	why := h.loss()
	h.endInner(why)
	if hook := l.opts.Hooks.Lost; hook != nil {
		l.events = append(l.events, func() { hook(h.parent, h.event(why)) })
	}
}

// askForEviction asks Redis whether it may delete locks when it is out of memory, and calls the
// hook. A refusal of INFO is no error.
func (l *Locker) askForEviction() {
	info, end := redis.NewInfoCmd(l.ctx, "info", "memory"), l.base.Add(l.now()+third(l.opts.Lease))
	if hook := l.opts.Hooks.Evicts; hook != nil && l.server.process(bounded{l.ctx, end}, info) == nil {
		if policy := info.Item("Memory", "maxmemory_policy"); policy != "" && policy != "noeviction" {
			hook(policy)
		}
	}
}
