package redislock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"time"
)

// Polling is a locker on plain keys: SET NX PX, and a value of its own for each
// hold. It has what [Locker] has, less its queue: it polls with jitter, is not
// fair, hands nothing on inside the process, and has no fencing tokens
// ([Lease.Token] is 0). It exists for what Locker cannot do: see [NewQuorum] and [NewWithoutLua].
// It is safe for concurrent use.
type Polling struct {
	opts  Options
	store plainStore

	ctx  context.Context
	stop context.CancelFunc

	mu     sync.Mutex // guards the rest, and what changes in its holds
	closed bool
	slots  map[string]*slot
	work   sync.WaitGroup // joined with mu, and not after closed
}

// plainStore keeps plain locks. Each method says whether it did what it was to
// do; with an error the outcome is unknown.
type plainStore interface {
	// set takes the lock if nobody has it. It says how long the lock is certain to
	// live, counted from before the first request was sent.
	set(ctx context.Context, key, value string, lease time.Duration) (validity time.Duration, ok bool, err error)
	extend(ctx context.Context, key, value string, lease time.Duration) (validity time.Duration, ok bool, err error)
	drop(ctx context.Context, key, value string) (ok bool, err error)
}

// slot lets one goroutine of the process at a time try for a key: the others
// would only get into its way.
type slot struct {
	taken chan struct{} // of size 1
	users int           // who has it or waits for it
}

func newPolling(store plainStore, o Options) *Polling {
	p := &Polling{opts: o.withDefaults(), store: store, slots: map[string]*slot{}}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// Acquire is [Locker.Acquire], polling every Options.Retry with jitter.
func (p *Polling) Acquire(ctx context.Context, key string) (held context.Context, lease *Lease, err error) {
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
			return nil, nil, ErrClosed
		}
		held, lease, err := p.try(ctx, key, begun, s)
		if err == nil {
			return held, lease, nil
		}
		if !errors.Is(err, ErrNotAcquired) {
			p.leaveSlot(key, s, true)
			return nil, nil, err
		}
		last = err
		// Jitter keeps processes that failed together from trying together again.
		again = time.After(p.opts.Retry/2 + mathrand.N(p.opts.Retry))
	}
}

// TryAcquire is [Locker.TryAcquire].
func (p *Polling) TryAcquire(ctx context.Context, key string) (held context.Context, lease *Lease, err error) {
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

func (p *Polling) slot(key string) *slot {
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

func (p *Polling) leaveSlot(key string, s *slot, had bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if had {
		<-s.taken
	}
	if s.users--; s.users == 0 {
		delete(p.slots, key)
	}
}

// Do is [Locker.Do].
func (p *Polling) Do(ctx context.Context, key string, fn func(held context.Context) error) error {
	held, lease, err := p.Acquire(ctx, key)
	return do(held, lease, err, fn)
}

// Close gives back every lock and waits until that is done. Held contexts end with
// [ErrLost].
func (p *Polling) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop()
	p.work.Wait()
	return nil
}

// join counts a goroutine or call that Close has to wait for.
func (p *Polling) join() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	p.work.Add(1)
	return nil
}

type plainKey struct {
	locker *Polling
	key    string
}

// try asks once. A hold keeps the slot until it ends.
func (p *Polling) try(ctx context.Context, key string, begun time.Time, s *slot) (context.Context, *Lease, error) {
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
			return nil, nil, unknown("acquire", key, ctx, err)
		}
		ok = false
	}
	if !ok {
		return nil, nil, notAcquired(key, nil)
	}
	h := &plainHold{locker: p, slot: s, name: key, value: value, begun: time.Now(), deadline: sent.Add(validity), entries: 1}
	ctx, h.cancel = context.WithCancelCause(ctx)
	h.ctx = context.WithValue(ctx, plainKey{p, key}, h)
	h.stop = make(chan struct{})
	if err := p.join(); err != nil {
		p.store.drop(ctx, key, value)
		return nil, nil, err
	}
	go h.watch()
	if hook := p.opts.Hooks.Acquired; hook != nil {
		hook(key, time.Since(begun), Free)
	}
	return h.ctx, &Lease{hold: h}, nil
}

// dropLater takes back what may have been set, until it is answered or a lease
// has passed.
func (p *Polling) dropLater(key, value string) {
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
			case <-time.After(p.opts.beatEvery() / 8):
			}
		}
	}()
}

// plainHold is one holder's time with a plain lock. Polling.mu guards what
// changes.
type plainHold struct {
	locker *Polling
	slot   *slot
	name   string
	value  string
	ctx    context.Context
	cancel context.CancelCauseFunc
	begun  time.Time
	stop   chan struct{} // closed at its end

	deadline time.Time
	entries  int
	ended    bool
}

func (h *plainHold) key() string  { return h.name }
func (h *plainHold) fence() int64 { return 0 }

func (h *plainHold) until() time.Time {
	h.locker.mu.Lock()
	defer h.locker.mu.Unlock()
	return h.deadline
}

func (h *plainHold) valid() bool {
	h.locker.mu.Lock()
	defer h.locker.mu.Unlock()
	return !h.ended && time.Now().Before(h.deadline)
}

func (h *plainHold) reenter(ctx context.Context) (context.Context, *Lease, error) {
	h.locker.mu.Lock()
	defer h.locker.mu.Unlock()
	if h.ended || !time.Now().Before(h.deadline) {
		return nil, nil, fmt.Errorf("enter %q again: %w", h.name, ErrLost)
	}
	h.entries++
	return ctx, &Lease{hold: h}, nil
}

// end ends the hold once; it says false when it had ended before.
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
	if h.end(ErrLost) {
		if hook := h.locker.opts.Hooks.Lost; hook != nil {
			hook(h.name)
		}
		h.locker.dropLater(h.name, h.value)
		h.locker.leaveSlot(h.name, h.slot, true)
	}
}

func (h *plainHold) leave() error {
	p := h.locker
	p.mu.Lock()
	last := !h.ended && h.entries == 1
	if !h.ended && h.entries > 1 {
		h.entries--
		p.mu.Unlock()
		return nil
	}
	p.mu.Unlock()
	if !last || !h.valid() || !h.end(nil) {
		h.lose()
		return fmt.Errorf("release %q: %w", h.name, ErrNotHeld)
	}
	if hook := p.opts.Hooks.Released; hook != nil {
		defer func() { hook(h.name, time.Since(h.begun)) }()
	}
	defer p.leaveSlot(h.name, h.slot, true)
	ctx, cancel := context.WithTimeout(context.Background(), p.opts.beatEvery())
	defer cancel()
	ok, err := p.store.drop(ctx, h.name, h.value)
	switch {
	case err != nil:
		p.dropLater(h.name, h.value)
		return unknown("release", h.name, context.Background(), err)
	case !ok:
		return fmt.Errorf("release %q: %w", h.name, ErrNotHeld)
	}
	return nil
}

func (h *plainHold) extend(ctx context.Context) error {
	if !h.valid() {
		return fmt.Errorf("extend %q: %w", h.name, ErrNotHeld)
	}
	sent := time.Now()
	validity, ok, err := h.locker.store.extend(ctx, h.name, h.value, h.locker.opts.Lease)
	if err != nil {
		return unknown("extend", h.name, ctx, err)
	}
	if !ok {
		h.lose()
		return fmt.Errorf("extend %q: %w", h.name, ErrNotHeld)
	}
	h.locker.mu.Lock()
	if d := sent.Add(validity); d.After(h.deadline) {
		h.deadline = d
	}
	h.locker.mu.Unlock()
	if hook := h.locker.opts.Hooks.Renewed; hook != nil {
		hook(h.name)
	}
	return nil
}

// watch renews the hold, and ends it when its time is over. A renewal runs beside
// it: a network that is silent must not keep the deadline from being noticed.
func (h *plainHold) watch() {
	p := h.locker
	defer p.work.Done()
	every := p.opts.beatEvery()
	renewed := make(chan error, 1)
	underWay := false
	defer func() {
		if underWay {
			<-renewed
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	next := time.Now().Add(every)
	for {
		look := h.until()
		if !p.opts.FixedLease && !underWay {
			look = earlier(look, next)
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
		case !now.Before(h.until()):
			h.lose()
			return
		case !underWay && !p.opts.FixedLease && !now.Before(next):
			underWay = true
			go func() {
				try, cancelTry := context.WithTimeout(ctx, every)
				defer cancelTry()
				renewed <- h.extend(try)
			}()
		}
	}
}

// dropNow is for Close, after which nothing is dropped in the background.
func (h *plainHold) dropNow() {
	ctx, cancel := context.WithTimeout(context.Background(), h.locker.opts.beatEvery())
	defer cancel()
	h.locker.store.drop(ctx, h.name, h.value)
}
