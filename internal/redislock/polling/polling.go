package polling

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
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
	if held, lease, err := p.reenter(ctx, key); held != nil || err != nil {
		return held, lease, err
	}
	waiting, cancel := p.waiting(ctx)
	defer cancel()
	begun, s, refused := time.Now(), p.slot(key), false
	refuse := func(had bool) {
		hook := p.opts.Hooks.Waiting
		if hook == nil || refused {
			return
		}
		defer func() {
			if !refused { // the hook panicked
				p.leaveSlot(key, s, had)
			}
		}()
		hook(ctx, redislock.Event{Key: key, Took: time.Since(begun)})
		refused = true
	}
	select {
	case s.taken <- struct{}{}:
	default:
		refuse(false)
		select {
		case s.taken <- struct{}{}:
		case <-waiting.Done():
			p.leaveSlot(key, s, false)
			return nil, nil, gaveUp(waiting, key, notAcquired(key, nil))
		}
	}
	for {
		held, lease, err = p.try(ctx, key, begun, s)
		if err == nil {
			return held, lease, nil
		}
		if errors.Is(err, redislock.ErrNotAcquired) {
			refuse(true)
			select {
			// Jitter keeps processes that failed together from trying together again.
			case <-time.After(p.opts.Retry/2 + mathrand.N(p.opts.Retry)):
				continue
			case <-waiting.Done():
				err = gaveUp(waiting, key, err)
			}
		}
		p.leaveSlot(key, s, true)
		return nil, nil, err
	}
}

// errWaited is the cause of a wait that ended with Options.Wait.
var errWaited = errors.New("polling: waited for long enough")

// waiting returns a context that ends when Acquire has to give up: with ctx, after Options.Wait, or
// with the Locker.
func (p *Locker) waiting(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(p.ctx, func() { cancel(redislock.ErrClosed) })
	wait := time.AfterFunc(cmp.Or(p.opts.Wait, math.MaxInt64), func() { cancel(errWaited) })
	return ctx, func() {
		stop()
		wait.Stop()
		cancel(nil)
	}
}

// gaveUp is the error of a wait that has ended. Last is that of its last try.
func gaveUp(waiting context.Context, key string, last error) error {
	switch cause := context.Cause(waiting); {
	case errors.Is(cause, errWaited):
		return last
	case errors.Is(cause, redislock.ErrClosed):
		return redislock.ErrClosed
	default:
		return notAcquired(key, cause)
	}
}

// TryAcquire is that of [redislock.Locker].
func (p *Locker) TryAcquire(ctx context.Context, key string) (held context.Context, lease *redislock.Lease, err error) {
	if held, lease, err := p.reenter(ctx, key); held != nil || err != nil {
		return held, lease, err
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
	h := &plainHold{locker: p, slot: s, name: key, value: rand.Text(), parent: ctx, entries: 1, stop: make(chan struct{})}
	if err := h.set(ctx); err != nil {
		p.work.Done()
		return nil, nil, err
	}
	ctx, h.cancel = context.WithCancelCause(ctx)
	h.ctx = context.WithValue(ctx, plainKey{p, key}, h)
	go h.watch()
	if hook := p.opts.Hooks.Acquired; hook != nil {
		hook(h.parent, redislock.Event{Key: key, Took: time.Since(begun), From: redislock.Free})
	}
	return h.ctx, redislock.NewLease(h.name, h), nil
}

// set asks for the lock.
func (h *plainHold) set(ctx context.Context) error {
	sent := time.Now()
	validity, ok, err := h.locker.store.set(ctx, h.name, h.value, h.locker.opts.Lease)
	h.begun, h.deadline = time.Now(), sent.Add(validity)
	switch {
	case errors.Is(err, errNoMajority) && ctx.Err() == nil:
		return notAcquired(h.name, err) // it was dropped where it was set
	case err != nil:
		h.locker.dropLater(h.name, h.value)
		return unknown(ctx, "acquire", h.name, err)
	case !ok:
		return notAcquired(h.name, nil)
	case !h.begun.Before(h.deadline): // the answer took longer than the lease
		h.locker.dropLater(h.name, h.value)
		return notAcquired(h.name, nil)
	}
	return nil
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

// Token, Until, Valid and Release are for [redislock.Lease].
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

// reenter enters the hold of ctx again. It returns nothing if there is none, or it was released. A
// lost hold cannot be entered, because its holder must stop.
func (p *Locker) reenter(ctx context.Context, key string) (context.Context, *redislock.Lease, error) {
	h, ok := ctx.Value(plainKey{p, key}).(*plainHold)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !ok || h.ended && !errors.Is(context.Cause(h.ctx), redislock.ErrLost):
		return nil, nil, nil
	case h.ended || !time.Now().Before(h.deadline):
		return nil, nil, fmt.Errorf("enter %q again: %w", key, redislock.ErrLost)
	}
	h.entries++
	return ctx, redislock.NewLease(key, h), nil
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
	if !h.ended && h.entries > 1 {
		h.entries--
		p.mu.Unlock()
		return nil
	}
	p.mu.Unlock()
	if !h.Valid() {
		h.lose() // by the clock: its watch has not come to it
	}
	if !h.end(nil) {
		return notHeld(h.name)
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
		return notHeld(h.name)
	}
	return nil
}

// renew asks for a full lease again.
func (h *plainHold) renew(ctx context.Context) error {
	sent := time.Now()
	validity, ok, err := h.locker.store.extend(ctx, h.name, h.value, h.locker.opts.Lease)
	if err != nil {
		return err
	}
	if !ok {
		h.lose()
		return redislock.ErrNotHeld
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
		if !underWay && next.Before(look) {
			look = next
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
		case !underWay && !now.Before(next):
			underWay = true
			go func() {
				try, cancelTry := context.WithTimeout(ctx, every)
				defer cancelTry()
				renewed <- h.renew(try)
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
