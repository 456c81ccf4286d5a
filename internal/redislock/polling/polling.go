package polling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"stocklock/internal/redislock"
)

// Options are the settings of a [Locker]. The zero value suits most callers. Hooks.Evicts and
// Hooks.ClockJumped are not called, and nothing shows the Label.
type Options struct {
	redislock.Options
	// Retry is the mean pause between two tries. Zero means 20 milliseconds.
	Retry time.Duration
}

// Locker asks again and again for a lock that is taken. It is safe for concurrent use.
type Locker struct {
	quorum  *quorum
	core    *redislock.Locker
	opts    Options
	closing context.Context
	close   context.CancelFunc

	mu    sync.Mutex
	turns map[string]*turn
}

// turn lets one goroutine of the process at a time ask for a key. Others would only compete with it.
type turn struct {
	taken chan struct{} // of size 1
	freed chan struct{} // of size 1: the lock was released in this process, or lost
	users int           // goroutines that have it or wait for it; Locker.mu guards it
	last  error         // what the servers said to who asks, nil before the first answer; likewise
}

func newLocker(q *quorum, o Options) *Locker {
	if o.Retry < 0 {
		panic(fmt.Sprintf("polling: Options.Retry is %s, want zero or more", o.Retry))
	}
	o.Retry = cmp.Or(o.Retry, 20*time.Millisecond)
	p := &Locker{quorum: q, opts: o, turns: map[string]*turn{}}
	p.closing, p.close = context.WithCancel(context.Background())
	h := &o.Hooks
	h.Acquired, h.Evicts, h.NotServed, h.Failed = nil, nil, nil, nil
	h.Released, h.Lost = p.freeing(h.Released), p.freeing(h.Lost)
	p.core = redislock.New(q, o.Options)
	return p
}

// freeing returns a hook that also has the goroutine ask whose turn it is.
func (p *Locker) freeing(hook func(context.Context, redislock.Event)) func(context.Context, redislock.Event) {
	return func(ctx context.Context, e redislock.Event) {
		p.mu.Lock()
		if t := p.turns[e.Key]; t != nil && len(t.freed) == 0 {
			t.freed <- struct{}{}
		}
		p.mu.Unlock()
		if hook != nil {
			hook(ctx, e)
		}
	}
}

// Acquire is that of [redislock.Locker], polling every Options.Retry with jitter.
func (p *Locker) Acquire(ctx context.Context, key string) (held context.Context, lease *redislock.Lease, err error) {
	begun := time.Now()
	held, lease, err = p.acquire(ctx, key, true)
	return held, lease, p.failed(ctx, key, begun, err)
}

// TryAcquire is that of [redislock.Locker].
func (p *Locker) TryAcquire(ctx context.Context, key string) (held context.Context, lease *redislock.Lease, err error) {
	begun := time.Now()
	held, lease, err = p.acquire(ctx, key, false)
	return held, lease, p.failed(ctx, key, begun, err)
}

// failed calls the hook.
func (p *Locker) failed(ctx context.Context, key string, begun time.Time, err error) error {
	if hook := p.opts.Hooks.Failed; err != nil && hook != nil {
		hook(ctx, redislock.Event{Key: key, Took: time.Since(begun), Err: err})
	}
	return err
}

func (p *Locker) acquire(ctx context.Context, key string, wait bool) (held context.Context, lease *redislock.Lease, err error) {
	if ctx.Err() != nil || p.core.Holds(ctx, key) {
		return p.try(ctx, key, time.Now())
	}
	begun, over := time.Now(), time.After(cmp.Or(p.opts.Wait, math.MaxInt64))
	notAcquired, unanswered := fmt.Errorf("acquire %q: %w", key, redislock.ErrNotAcquired), fmt.Errorf("acquire %q: %w: no answer yet", key, redislock.ErrUnavailable)
	told := map[bool]bool{}
	tell := func(hook func(context.Context, redislock.Event), taken bool, why error) { // once for each of the two
		before := told[taken]
		if told[taken] = true; hook != nil && !before {
			hook(ctx, redislock.Event{Key: key, Took: time.Since(begun), Err: why})
		}
	}
	if p.closing.Err() != nil {
		return nil, nil, redislock.ErrClosed
	}
	t, asks := p.join(key), false
	defer func() { p.leave(key, t, asks) }()
	select {
	case t.taken <- struct{}{}:
		asks = true
	default:
	}
	for {
		if asks {
			if held, lease, err = p.try(ctx, key, begun); err == nil {
				p.acquired(ctx, lease, begun)
			}
		} else if err = p.lastOf(t, notAcquired); ctx.Err() != nil {
			err = p.lastOf(t, unanswered)
		}
		_, undecided := errors.AsType[*noMajority](err)
		unasked := ctx.Err() != nil && errors.Is(err, redislock.ErrNotAcquired) && errors.Is(err, context.Cause(ctx))
		if wait && asks && !undecided && (unasked || errors.Is(err, redislock.ErrUnavailable)) { // the last try had no time
			err = p.lastOf(t, unanswered)
			_, undecided = errors.AsType[*noMajority](err)
		}
		taken := errors.Is(err, redislock.ErrNotAcquired)
		if asks && ctx.Err() == nil && (err == nil || undecided || taken) { // the end of a wait, and of a context, is the caller's own
			p.note(t, cmp.Or(err, notAcquired))
		}
		if !wait || ctx.Err() != nil || !taken && !undecided {
			if cause := context.Cause(ctx); err != nil && errors.Is(cause, redislock.ErrLost) { // of a lock around this one
				err = fmt.Errorf("acquire %q: %w", key, cause)
			} else if err != nil && cause != nil && !errors.Is(err, cause) { // ctx ended beside the last answers
				err = fmt.Errorf("%w: %w", err, cause)
			}
			return held, lease, err
		}
		if taken {
			tell(p.opts.Hooks.Waiting, true, nil)
		} else {
			tell(p.opts.Hooks.NotServed, false, err)
		}
		var again <-chan time.Time
		turn, freed := t.taken, (chan struct{})(nil)
		if asks { // jitter keeps processes that failed together from trying together again
			turn, freed, again = nil, t.freed, time.After(p.opts.Retry/2+rand.N(p.opts.Retry))
		} else if p.opts.Hooks.NotServed != nil && !told[false] {
			again = time.After(time.Second) // for news of an outage
		}
		select {
		case turn <- struct{}{}:
			asks = true
		case <-freed:
		case <-again:
		case <-ctx.Done():
		case <-over:
			if !asks {
				err = p.lastOf(t, unanswered)
			}
			return nil, nil, err
		case <-p.closing.Done():
			return nil, nil, redislock.ErrClosed
		}
	}
}

// try asks once. Others have the lock where a majority has answered.
func (p *Locker) try(ctx context.Context, key string, begun time.Time) (context.Context, *redislock.Lease, error) {
	var o redislock.AcquireOptions
	if p.opts.Wait > 0 {
		o.Wait = max(p.opts.Wait-time.Since(begun), 1)
	}
	held, lease, err := p.core.TryAcquireWith(ctx, key, o)
	if why, ok := errors.AsType[*noMajority](err); ok && errors.Is(err, redislock.ErrUnavailable) {
		is := redislock.ErrUnavailable
		if why.yes+why.no > why.of/2 {
			is = redislock.ErrNotAcquired
		}
		err = fmt.Errorf("acquire %q: %w: %w", key, is, errors.Join(append(why.errs, why)...))
	}
	return held, lease, err
}

// acquired calls the hook. If that panics, the lock is released.
func (p *Locker) acquired(ctx context.Context, lease *redislock.Lease, begun time.Time) {
	returned := false
	defer func() {
		if !returned {
			_ = lease.Release()
		}
	}()
	if hook := p.opts.Hooks.Acquired; hook != nil {
		hook(ctx, redislock.Event{Key: lease.Key(), Took: time.Since(begun), From: redislock.Free})
	}
	returned = true
}

func (p *Locker) join(key string) *turn {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.turns[key]
	if t == nil {
		t = &turn{taken: make(chan struct{}, 1), freed: make(chan struct{}, 1)}
		p.turns[key] = t
	}
	t.users++
	return t
}

// note keeps what the servers said to who asks, for those who wait for the turn.
func (p *Locker) note(t *turn, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t.last = err
}

// lastOf is what the servers said last to who asks, or none before their first answer.
func (p *Locker) lastOf(t *turn, none error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return cmp.Or(t.last, none)
}

func (p *Locker) leave(key string, t *turn, had bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if had {
		<-t.taken
	}
	if t.users--; t.users == 0 {
		delete(p.turns, key)
	}
}

// Do is [redislock.Do].
func (p *Locker) Do(ctx context.Context, key string, fn func(held context.Context) error) error {
	return redislock.Do(ctx, p, key, fn)
}

// Close is that of [redislock.Locker]. It also waits for requests to servers that are slow.
func (p *Locker) Close(ctx context.Context) error {
	p.close()
	if err := p.core.Close(ctx); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() { p.quorum.puts.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
