package polling

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"stocklock/internal/redislock"
)

// Locker is a locker on plain keys, by SET NX PX with a value of its own for each hold. It is safe
// for concurrent use.
type Locker struct {
	opts  Options
	store plainStore

	ctx  context.Context
	stop context.CancelFunc

	mu     sync.Mutex // guards the rest, and what changes in its holds
	closed bool
	slots  map[string]*slot
	work   sync.WaitGroup // joined with mu, and not after closed
}

// plainStore keeps plain locks. Each method reports whether it succeeded. After an error, the
// outcome is unknown.
type plainStore interface {
	// set takes the lock if nobody has it. It returns how long the lock is certain to live, counted
	// from before the first request was sent.
	set(ctx context.Context, key, value string, lease time.Duration) (validity time.Duration, ok bool, err error)
	extend(ctx context.Context, key, value string, lease time.Duration) (validity time.Duration, ok bool, err error)
	drop(ctx context.Context, key, value string) (ok bool, err error)
}

// slot lets one goroutine of the process at a time try for a key. Others would only compete with
// it.
type slot struct {
	taken chan struct{} // of size 1
	users int           // goroutines that have it or wait for it
}

func newLocker(store plainStore, o Options) *Locker {
	p := &Locker{opts: o, store: store, slots: map[string]*slot{}}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// Acquire is that of [redislock.Locker], polling every Options.Retry with jitter.
func (p *Locker) Acquire(ctx context.Context, key string) (held context.Context, lease *redislock.Lease, err error) {
	if outer, ok := ctx.Value(plainKey{p, key}).(*plainHold); ok {
		return outer.reenter(ctx)
	}
	var patience <-chan time.Time
	if p.opts.Wait > 0 {
		timer := time.NewTimer(p.opts.Wait)
		defer timer.Stop()
		patience = timer.C
	}
	begun := time.Now()
	s := p.slot(key)
	next := s.taken
	var again <-chan time.Time
	var last error
	for {
		select {
		case next <- struct{}{}:
			next = nil
		case <-again:
		case <-patience:
			p.leaveSlot(key, s, next == nil)
			if last == nil {
				last = notAcquired(key, nil)
			}
			return nil, nil, last
		case <-ctx.Done():
			p.leaveSlot(key, s, next == nil)
			return nil, nil, notAcquired(key, context.Cause(ctx))
		case <-p.ctx.Done():
			p.leaveSlot(key, s, next == nil)
			return nil, nil, redislock.ErrClosed
		}
		held, lease, err := p.try(ctx, key, begun, s)
		if err == nil {
			return held, lease, nil
		}
		if !errors.Is(err, redislock.ErrNotAcquired) {
			p.leaveSlot(key, s, true)
			return nil, nil, err
		}
		last = err
		// Jitter keeps processes that failed together from trying together again.
		again = time.After(p.opts.Retry/2 + mathrand.N(p.opts.Retry))
	}
}

// TryAcquire is that of [redislock.Locker].
func (p *Locker) TryAcquire(ctx context.Context, key string) (held context.Context, lease *redislock.Lease, err error) {
	if outer, ok := ctx.Value(plainKey{p, key}).(*plainHold); ok {
		return outer.reenter(ctx)
	}
	s := p.slot(key)
	select {
	case s.taken <- struct{}{}:
	default:
		p.leaveSlot(key, s, false)
		return nil, nil, notAcquired(key, nil)
	}
	if held, lease, err = p.try(ctx, key, time.Now(), s); err != nil {
		p.leaveSlot(key, s, true)
	}
	return held, lease, err
}

func (p *Locker) slot(key string) *slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.slots[key]
	if s == nil {
		s = &slot{taken: make(chan struct{}, 1)}
		p.slots[key] = s
	}
	s.users++
	return s
}

func (p *Locker) leaveSlot(key string, s *slot, had bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if had {
		<-s.taken
	}
	if s.users--; s.users == 0 {
		delete(p.slots, key)
	}
}

// Do is [redislock.Do].
func (p *Locker) Do(ctx context.Context, key string, fn func(held context.Context) error) error {
	return redislock.Do(ctx, p, key, fn)
}

// Close releases every lock and waits until that is done. If ctx ends first, Close returns its
// cause. Held contexts end with [redislock.ErrLost].
func (p *Locker) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop()
	done := make(chan struct{})
	go func() {
		p.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// join counts a goroutine or call that Close has to wait for.
func (p *Locker) join() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return redislock.ErrClosed
	}
	p.work.Add(1)
	return nil
}

type plainKey struct {
	locker *Locker
	key    string
}

// try asks once. A hold keeps the slot until it ends.
func (p *Locker) try(ctx context.Context, key string, begun time.Time, s *slot) (context.Context, *redislock.Lease, error) {
	if err := p.join(); err != nil {
		return nil, nil, err
	}
	defer p.work.Done()
	value, sent := rand.Text(), time.Now()
	validity, ok, err := p.store.set(ctx, key, value, p.opts.Lease)
	if err != nil || ok && time.Since(sent) >= validity {
		if errors.Is(err, errNoMajority) && ctx.Err() == nil {
			return nil, nil, notAcquired(key, err) // it was dropped where it was set
		}
		p.dropLater(key, value)
		if err != nil {
			return nil, nil, unknown(ctx, "acquire", key, err)
		}
		ok = false
	}
	if !ok {
		return nil, nil, notAcquired(key, nil)
	}
	h := &plainHold{locker: p, slot: s, name: key, value: value, parent: ctx, begun: time.Now(), deadline: sent.Add(validity), entries: 1}
	ctx, h.cancel = context.WithCancelCause(ctx)
	h.ctx = context.WithValue(ctx, plainKey{p, key}, h)
	h.stop = make(chan struct{})
	if err := p.join(); err != nil {
		p.store.drop(ctx, key, value)
		return nil, nil, err
	}
	go h.watch()
	if hook := p.opts.Hooks.Acquired; hook != nil {
		hook(h.parent, redislock.Event{Key: key, Took: time.Since(begun), From: redislock.Free})
	}
	return h.ctx, redislock.NewLease(h.name, h), nil
}

// dropLater deletes a value that may have been set. It repeats that until Redis answers or a lease
// has passed.
func (p *Locker) dropLater(key, value string) {
	if p.join() != nil {
		return // the lease ends it
	}
	go func() {
		defer p.work.Done()
		ctx, cancel := context.WithTimeout(context.Background(), p.opts.Lease)
		defer cancel()
		for ctx.Err() == nil {
			if _, err := p.store.drop(ctx, key, value); err == nil {
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(p.opts.renewEvery() / 8):
			}
		}
	}()
}

// plainHold is one holder's time with a plain lock. Locker.mu guards the fields that change.
type plainHold struct {
	locker *Locker
	slot   *slot
	name   string
	value  string
	parent context.Context // that Acquire was called with
	ctx    context.Context
	cancel context.CancelCauseFunc
	begun  time.Time
	stop   chan struct{} // closed at its end

	deadline time.Time
	entries  int
	ended    bool
}

// Token, Until, Valid, Release and Extend are for [redislock.Lease].
func (h *plainHold) Token() int64 { return 0 }

func (h *plainHold) Until() time.Time {
	h.locker.mu.Lock()
	defer h.locker.mu.Unlock()
	return h.deadline
}

func (h *plainHold) Valid() bool {
	h.locker.mu.Lock()
	defer h.locker.mu.Unlock()
	return !h.ended && time.Now().Before(h.deadline)
}

func (h *plainHold) reenter(ctx context.Context) (context.Context, *redislock.Lease, error) {
	h.locker.mu.Lock()
	defer h.locker.mu.Unlock()
	if h.ended || !time.Now().Before(h.deadline) {
		return nil, nil, fmt.Errorf("enter %q again: %w", h.name, redislock.ErrLost)
	}
	h.entries++
	return ctx, redislock.NewLease(h.name, h), nil
}

// end ends the hold once. It returns false if the hold had ended before.
func (h *plainHold) end(cause error) bool {
	h.locker.mu.Lock()
	defer h.locker.mu.Unlock()
	if h.ended {
		return false
	}
	h.ended = true
	close(h.stop)
	h.cancel(cause)
	return true
}

func (h *plainHold) lose() {
	if h.end(redislock.ErrLost) {
		if hook := h.locker.opts.Hooks.Lost; hook != nil {
			hook(h.parent, redislock.Event{Key: h.name, Took: time.Since(h.begun), Err: redislock.ErrLost})
		}
		h.locker.dropLater(h.name, h.value)
		h.locker.leaveSlot(h.name, h.slot, true)
	}
}

func (h *plainHold) Release() error {
	p := h.locker
	p.mu.Lock()
	last := !h.ended && h.entries == 1
	if !h.ended && h.entries > 1 {
		h.entries--
		p.mu.Unlock()
		return nil
	}
	p.mu.Unlock()
	if !last || !h.Valid() || !h.end(nil) {
		h.lose()
		return fmt.Errorf("release %q: %w", h.name, redislock.ErrNotHeld)
	}
	if hook := p.opts.Hooks.Released; hook != nil {
		defer func() { hook(h.parent, redislock.Event{Key: h.name, Took: time.Since(h.begun)}) }()
	}
	defer p.leaveSlot(h.name, h.slot, true)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.parent), p.opts.renewEvery())
	defer cancel()
	ok, err := p.store.drop(ctx, h.name, h.value)
	switch {
	case err != nil:
		p.dropLater(h.name, h.value)
		return unknown(context.Background(), "release", h.name, err)
	case !ok:
		return fmt.Errorf("release %q: %w", h.name, redislock.ErrNotHeld)
	}
	return nil
}

func (h *plainHold) Extend(ctx context.Context) error {
	if !h.Valid() {
		return fmt.Errorf("extend %q: %w", h.name, redislock.ErrNotHeld)
	}
	sent := time.Now()
	validity, ok, err := h.locker.store.extend(ctx, h.name, h.value, h.locker.opts.Lease)
	if err != nil {
		return unknown(ctx, "extend", h.name, err)
	}
	if !ok {
		h.lose()
		return fmt.Errorf("extend %q: %w", h.name, redislock.ErrNotHeld)
	}
	h.locker.mu.Lock()
	if d := sent.Add(validity); d.After(h.deadline) {
		h.deadline = d
	}
	h.locker.mu.Unlock()
	if hook := h.locker.opts.Hooks.Renewed; hook != nil {
		hook(h.parent, redislock.Event{Key: h.name, Took: time.Since(h.begun)})
	}
	return nil
}

// watch renews the hold, and ends it at its deadline. Each renewal runs in a goroutine of its own,
// so that a silent network does not delay the end.
func (h *plainHold) watch() {
	p := h.locker
	defer p.work.Done()
	every := p.opts.renewEvery()
	renewed := make(chan error, 1)
	underWay := false
	defer func() {
		if underWay {
			<-renewed
		}
	}()
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.parent))
	defer cancel()
	next := time.Now().Add(every)
	for {
		look := h.Until()
		if !p.opts.FixedLease && !underWay {
			look = earlierOf(look, next)
		}
		select {
		case <-h.stop:
			return
		case <-p.ctx.Done():
			h.lose()
			h.dropNow()
			return
		case err := <-renewed:
			underWay = false
			next = time.Now().Add(every)
			if err != nil {
				next = time.Now().Add(every / 8)
			}
			continue
		case <-time.After(time.Until(look)):
		}
		switch now := time.Now(); {
		case !now.Before(h.Until()):
			h.lose()
			return
		case !underWay && !p.opts.FixedLease && !now.Before(next):
			underWay = true
			go func() {
				try, cancelTry := context.WithTimeout(ctx, every)
				defer cancelTry()
				renewed <- h.Extend(try)
			}()
		}
	}
}

// dropNow serves Close, after which nothing is dropped in the background.
func (h *plainHold) dropNow() {
	ctx, cancel := context.WithTimeout(context.Background(), h.locker.opts.renewEvery())
	defer cancel()
	h.locker.store.drop(ctx, h.name, h.value)
}
