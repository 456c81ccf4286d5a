package redislock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Locker takes locks for one process. Make one, share it between all
// goroutines, and close it at the end. It is safe for concurrent use.
type Locker struct {
	opts   Options
	server server

	// ctx bounds what the Locker does on its own behalf. It outlives all callers'.
	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup // the loop, its beats and the inbox
	// cleaning is what gives back and takes back. Close waits for it before it
	// ends the rest: at most a lease.
	cleaning sync.WaitGroup
	calls    sync.WaitGroup // Acquire and Release; joined with mu, and not after closed

	mu       sync.Mutex // guards the rest, and all names
	closed   bool
	names    map[string]*name
	attempts uint64 // the last attempt's number
	looping  bool
	nextWake time.Time     // when the loop looks next
	wake     chan struct{} // tells it to look now
	inbox    *inbox        // nil before the first wait
}

// New returns a Locker on a client of go-redis, which stays the caller's to
// close, after the Locker. New sends nothing. It panics on a lease that is too short or too long.
//
// The client's retries are switched off for what changes a lock, whatever its MaxRetries.
func New(client Client, o Options) *Locker {
	o = o.withDefaults()
	ctx, stop := context.WithCancel(context.Background())
	return &Locker{
		opts: o, server: newServer(client, o.Lease), ctx: ctx, stop: stop,
		names: map[string]*name{}, wake: make(chan struct{}, 1),
	}
}

// Acquire waits until it holds the lock on key, its context is done, or
// Options.Wait is over; then the error is [ErrNotAcquired], joined with the context's cause if
// that is what ended it.
//
// Held is a child of ctx that also ends when the lock is lost: its cause is
// then [ErrLost]. Do the protected work under it, and look at it before every
// step that must not happen without the lock. Whoever acquires the same key with held,
// or a child of it, enters again at once: see Reentrancy in the package
// documentation.
//
// The lease must be released, also when held has ended.
func (l *Locker) Acquire(ctx context.Context, key string) (held context.Context, lease *Lease, err error) {
	return l.enter(ctx, key, true)
}

// TryAcquire is [Locker.Acquire] without waiting: when anybody holds the lock or
// waits for it, the error is [ErrNotAcquired] at once. Who comes back in its process's turn gets the lock
// although others wait, as with Acquire.
func (l *Locker) TryAcquire(ctx context.Context, key string) (held context.Context, lease *Lease, err error) {
	return l.enter(ctx, key, false)
}

// Do runs fn while it holds the lock on key. It returns what Acquire or fn returned; an
// fn that finished without an error while the lock was lost is
// told [ErrLost].
func (l *Locker) Do(ctx context.Context, key string, fn func(held context.Context) error) error {
	held, lease, err := l.Acquire(ctx, key)
	return do(held, lease, err, fn)
}

// do finishes what a Do began.
func do(held context.Context, lease *Lease, err error, fn func(context.Context) error) error {
	if err != nil {
		return err
	}
	released := false
	defer func() {
		if !released { // fn panicked
			lease.Release()
		}
	}()
	err = fn(held)
	if cause := context.Cause(held); errors.Is(cause, ErrLost) && !errors.Is(err, ErrLost) {
		err = errors.Join(err, cause)
	}
	released = true
	if releaseErr := lease.Release(); err == nil {
		return releaseErr
	}
	return err
}

// Locking is what [Locker] and [Polling] have in common.
type Locking interface {
	Acquire(ctx context.Context, key string) (held context.Context, lease *Lease, err error)
	TryAcquire(ctx context.Context, key string) (held context.Context, lease *Lease, err error)
	Do(ctx context.Context, key string, fn func(held context.Context) error) error
	Close() error
}

// Guard wraps fn so that each call holds the lock on the key of its argument.
func Guard[A, R any](l Locking, key func(A) string, fn func(held context.Context, arg A) (R, error)) func(context.Context, A) (R, error) {
	return func(ctx context.Context, arg A) (result R, err error) {
		err = l.Do(ctx, key(arg), func(held context.Context) error {
			result, err = fn(held, arg)
			return err
		})
		return result, err
	}
}

func (l *Locker) enter(ctx context.Context, key string, wait bool) (context.Context, *Lease, error) {
	outer := innermost(ctx, l)
	if h := outer.of(key); h != nil {
		return l.reenter(ctx, h)
	}
	if ctx.Err() != nil {
		return nil, nil, notAcquired(key, context.Cause(ctx))
	}
	h, err := l.acquire(ctx, outer, key, wait)
	if err != nil {
		return nil, nil, err
	}
	return h, &h.first, nil
}

// notAcquired also carries the cause, if there is one.
func notAcquired(key string, cause error) error {
	return fmt.Errorf("acquire %q: %w", key, errors.Join(ErrNotAcquired, cause))
}

func (l *Locker) acquire(ctx context.Context, outer *hold, key string, wait bool) (*hold, error) {
	begun := time.Now()
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, ErrClosed
	}
	l.calls.Add(1)
	defer l.calls.Done()
	n := l.name(key)
	if free := n.state == idle || n.state == lingering && l.mayPass(n); !wait && (!free || n.waiters.Len() > 0) {
		l.mu.Unlock()
		return nil, notAcquired(key, nil)
	}
	w := &waiter{ctx: ctx, outer: outer, begun: begun, turn: make(chan turn, 1), wait: wait}
	if wait && l.opts.Wait > 0 {
		w.until = begun.Add(l.opts.Wait)
	}
	w.place = n.waiters.PushBack(w)
	switch {
	case n.state == lingering && l.mayPass(n):
		n.state = held
		l.pass(n)
		l.attend(n) // the loop may have ended meanwhile
		l.mu.Unlock()
	case n.state == idle:
		n.comesBack = begun.Sub(n.left) < atOnce
		n.state = asking
		l.mu.Unlock()
		l.ask(n, w)
	default:
		// Goroutines that pass the lock on among themselves must hear when another
		// process begins to wait for it.
		l.openInbox()
		l.mu.Unlock()
	}
	return l.await(n, w)
}

// await lets a waiter wait: for its lock, its turn to ask, or its end.
func (l *Locker) await(n *name, w *waiter) (*hold, error) {
	var patience <-chan time.Time
	if !w.until.IsZero() {
		timer := time.NewTimer(time.Until(w.until))
		defer timer.Stop()
		patience = timer.C
	}
	for {
		var cause error
		select {
		case t := <-w.turn:
			if t.ask {
				l.ask(n, w)
				continue
			}
			if t.err != nil {
				return nil, t.err
			}
			if h := l.opts.Hooks.Acquired; h != nil {
				h(n.key, time.Since(w.begun), t.how)
			}
			return t.hold, nil
		case <-w.ctx.Done():
			cause = context.Cause(w.ctx)
		case <-patience:
		}
		if l.leave(n, w) {
			return nil, notAcquired(n.key, cause)
		}
		// What it waited for came at the last moment. A lock that nobody wants any
		// more is given back.
		if t := <-w.turn; t.hold != nil {
			t.hold.leave()
		}
		return nil, notAcquired(n.key, cause)
	}
}

// Close gives back every lock that is held, or kept for a moment after its release, ends every wait with [ErrClosed],
// and waits for its goroutines. Held contexts end with [ErrLost].
func (l *Locker) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		l.work.Wait()
		return nil
	}
	l.closed = true
	for _, n := range l.names {
		l.closeName(n)
	}
	l.mu.Unlock()
	l.calls.Wait()
	l.cleaning.Wait()
	l.stop()
	l.work.Wait()
	return nil
}
