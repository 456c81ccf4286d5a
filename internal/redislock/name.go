package redislock

import (
	"container/list"
	"context"
	"errors"
	"time"
)

// name is the state of one lock in this process. Locker.mu guards it.
//
//	idle -> asking -> waiting -> held -> idle, or asking for the next waiter
//	                             held -> lingering -> held, or idle, or asking
type name struct {
	key     string
	keys    []string
	wary    int // so many requests are still sent as if others wanted it, too
	state   state
	attempt uint64 // the one that asks, waits or holds
	// bound is when the last request was sent that was not yet answered with a
	// grant: a grant that is pushed later was made after it, and so its lease is too.
	bound   time.Time
	waiters list.List // of *waiter, first come, first served; the first one asks
	grant   grant     // while held
	hold    *hold     // while held
	// contended: another process was said to wait when there was no grant to note it in. The answer with
	// the grant comes on another connection, and may be slower.
	contended bool

	left      time.Time // when it was last given back to others, if nobody here wanted it then
	comesBack bool      // the last time, somebody here wanted it at once after that

	beatDue time.Time // while waiting or held
	beatOut time.Time // when a beat was sent that has no answer yet; zero without one
}

type state int

const (
	idle    state = iota // nobody here has it; nobody asks
	asking               // a request is under way, or the first waiter is about to send it
	waiting              // queued in Redis
	held
	lingering // released, and kept for a moment in case that somebody here comes back for it
)

// grant is what Redis gave, possibly to several holders of this process in turn.
type grant struct {
	epoch    int64
	n        int64 // local hand-offs
	given    time.Time
	deadline time.Time
	others   int64 // other processes that wait, as far as is known
}

// tokenBits is the room for local hand-offs in a token. Epochs are microseconds, so that tokens
// stay below 2^63 until the year 2112.
const tokenBits = 11

func (g grant) token() int64 { return g.epoch<<tokenBits | g.n }

// waiter is one goroutine that wants the lock.
type waiter struct {
	ctx   context.Context
	outer *hold // the innermost that ctx has
	begun time.Time
	until time.Time     // when it gives up; zero for not before its context
	wait  bool          // queue in Redis if it is taken
	turn  chan turn     // of size 1
	place *list.Element // nil once it is out of the queue: then its turn has come
}

// turn is what a waiter is told: the lock, that it failed, or to ask Redis.
type turn struct {
	hold *hold
	how  Handoff
	err  error
	ask  bool
}

func (l *Locker) name(key string) *name {
	n := l.names[key]
	if n == nil {
		n = &name{key: key, keys: keysOf(key)}
		l.names[key] = n
	}
	return n
}

// maxIdle is how many names a Locker keeps that are neither held nor wanted, so as not to make those that are
// used again and again anew each time.
const maxIdle = 64

// forget drops a name that has nothing to remember, unless there are few.
func (l *Locker) forget(n *name) {
	if n.state == idle && n.waiters.Len() == 0 && len(l.names) > maxIdle {
		delete(l.names, n.key)
	}
}

func (l *Locker) nextAttempt() uint64 {
	l.attempts++
	return l.attempts
}

// first is the waiter that asks, or nil.
func (n *name) first() *waiter {
	if e := n.waiters.Front(); e != nil {
		return e.Value.(*waiter)
	}
	return nil
}

// dismiss takes a waiter out of the queue and tells it why.
func (n *name) dismiss(w *waiter, t turn) {
	n.waiters.Remove(w.place)
	w.place = nil
	select {
	case <-w.turn: // it was to ask, and has not begun to
	default:
	}
	w.turn <- t
}

// askNext lets the first waiter ask anew, under another attempt.
func (l *Locker) askNext(n *name) {
	n.attempt = 0
	w := n.first()
	if w == nil {
		n.state = idle
		l.forget(n)
		return
	}
	n.state = asking
	select {
	case w.turn <- turn{ask: true}:
	default: // it was told already
	}
}

// granted begins a hold: Redis gave the lock at the time base, or later.
func (l *Locker) granted(n *name, epoch, others int64, base time.Time, how Handoff) {
	now := time.Now()
	n.state = held
	n.grant = grant{epoch: epoch, given: now, deadline: base.Add(l.opts.Lease - l.opts.margin()), others: others}
	if n.contended {
		n.grant.others, n.contended = max(others, 1), false
	}
	n.beatOut, n.beatDue = time.Time{}, base.Add(l.opts.beatEvery())
	l.dismissGone(n)
	if n.first() == nil || !now.Before(n.grant.deadline) {
		// Nobody wants it any more, or the answer took longer than the lease.
		l.giveBack(n, n.attempt)
		l.askNext(n)
		return
	}
	l.handTo(n, how)
	l.attend(n)
}

// dismissGone takes waiters from the front whose context has ended.
func (l *Locker) dismissGone(n *name) {
	for w := n.first(); w != nil && w.ctx.Err() != nil; w = n.first() {
		n.dismiss(w, turn{err: notAcquired(n.key, context.Cause(w.ctx))})
	}
}

// handTo makes the first waiter the holder.
func (l *Locker) handTo(n *name, how Handoff) {
	w := n.first()
	n.hold = newHold(l, n, w)
	n.dismiss(w, turn{hold: n.hold, how: how})
}

// pass makes the first waiter the holder, without a word to Redis.
func (l *Locker) pass(n *name) {
	n.grant.n++
	l.handTo(n, Local)
}

// mayPass says whether the lock may go to another goroutine here without a word
// to Redis: it must be worth having, and other processes must not starve.
func (l *Locker) mayPass(n *name) bool {
	if l.opts.FixedLease || n.grant.n == 1<<tokenBits-1 {
		return false
	}
	now := time.Now()
	if n.grant.deadline.Sub(now) < l.opts.beatEvery() {
		return false
	}
	if n.grant.others == 0 {
		return true
	}
	shorter := max(n.grant.others/manyOthers, 1)
	since := now.Sub(n.grant.given)
	return n.grant.n < maxPasses/shorter && since < maxPassing/time.Duration(shorter) && since < longHold*time.Duration(n.grant.n+1)
}

// contend notes that other processes wait.
func (n *name) contend() {
	n.grant.others = max(n.grant.others, 1)
	n.contended = n.state == asking || n.state == waiting
}

// learn notes whether others want the lock, by the answer to a request, and by whether a short script refused.
func (n *name) learn(refused bool, r reply, err error) {
	if refused || err != nil || r.wanted() {
		n.wary = wariness
	} else if n.wary > 0 {
		n.wary--
	}
}

// leave takes a waiter out that gave up. It says false when it is too late for
// that: something is in its turn.
func (l *Locker) leave(n *name, w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.place == nil {
		return false
	}
	wasFirst := n.first() == w
	n.waiters.Remove(w.place)
	w.place = nil
	if !wasFirst {
		return true
	}
	select {
	case <-w.turn: // it was to ask: the next one does
		l.askNext(n)
	default:
		// The place in Redis's queue is the process's: the next waiter takes it over.
		if n.state == waiting && n.first() == nil {
			l.takeBack(n, n.attempt)
			l.askNext(n)
		}
	}
	return true
}

// ask sends the first waiter's request, in its own goroutine.
func (l *Locker) ask(n *name, w *waiter) {
	for {
		l.mu.Lock()
		queueUp := w.wait && l.listening()
		if n.first() != w || n.state != asking {
			l.mu.Unlock()
			return
		}
		attempt := l.nextAttempt()
		sent := time.Now()
		n.attempt, n.bound = attempt, sent
		alone := n.wary == 0
		l.mu.Unlock()

		giveUp := sent.Add(l.opts.beatEvery())
		if d, ok := w.ctx.Deadline(); ok {
			giveUp = earlier(giveUp, d)
		}
		ctx, cancel := context.Context(bounded{w.ctx, giveUp}), context.CancelFunc(func() {})
		if !w.until.IsZero() {
			ctx, cancel = context.WithDeadline(w.ctx, earlier(giveUp, w.until))
		}
		r, err := reply{kind: replyDropped}, error(nil)
		if alone {
			r, err = l.server.acquireFree(ctx, n, attempt)
		}
		refused := err == nil && r.kind == replyDropped
		if refused {
			r, err = l.server.acquire(ctx, n, attempt, queueUp, sent.Sub(w.begun))
		}
		cancel()

		l.mu.Lock()
		n.learn(alone && refused, r, err)
		if n.attempt != attempt || n.state != asking {
			// A pushed grant was faster, or the Locker was closed.
			if n.attempt != attempt {
				l.takeBack(n, attempt)
			}
			l.mu.Unlock()
			return
		}
		again := false
		switch {
		case err != nil:
			l.takeBack(n, attempt)
			if err = unknown("acquire", n.key, w.ctx, err); !w.until.IsZero() && !time.Now().Before(w.until) {
				err = errors.Join(ErrNotAcquired, err)
			}
			l.fail(n, w, err)
		case r.kind == replyHeld:
			l.granted(n, r.epoch, r.others, sent, Free)
		case !w.wait:
			l.fail(n, w, notAcquired(n.key, nil))
		case r.kind == replyWaiting && queueUp:
			l.queued(n, r)
		default:
			again = true // now with an inbox, or under a newer attempt
		}
		l.mu.Unlock()
		if !again {
			return
		}
		if err := l.subscribe(w.ctx); err != nil {
			l.mu.Lock()
			if n.first() == w && n.state == asking {
				l.fail(n, w, unknown("wait for", n.key, w.ctx, err))
			}
			l.mu.Unlock()
			return
		}
	}
}

// fail dismisses the first waiter and lets the next one ask.
func (l *Locker) fail(n *name, w *waiter, err error) {
	n.dismiss(w, turn{err: err})
	l.askNext(n)
}

// queued notes a place in Redis's queue.
func (l *Locker) queued(n *name, r reply) {
	if n.first() == nil {
		l.takeBack(n, n.attempt)
		l.askNext(n)
		return
	}
	n.state = waiting
	n.beatOut, n.beatDue = time.Time{}, l.nextLook(r)
	l.attend(n)
}

// closeName ends everything that goes on under a name.
func (l *Locker) closeName(n *name) {
	for n.first() != nil {
		n.dismiss(n.first(), turn{err: ErrClosed})
	}
	attempt, was := n.attempt, n.state
	n.attempt, n.state = 0, idle
	switch was {
	case held:
		n.hold.end(ErrLost)
		l.giveBack(n, attempt)
	case lingering:
		l.giveBack(n, attempt)
	case waiting, asking:
		l.takeBack(n, attempt)
	}
	l.forget(n)
}
