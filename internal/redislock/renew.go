package redislock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// One timer looks after all locks. It goes off when the clock alone changes something, or a renewal is
// due. Renewals, heartbeats and cancels that are due go out together in pipelines: a process that
// was paused, or whose processors are taken, catches up with a few requests.

// maxPipelines is how many pipelines are under way at once to one server. The others of a Cluster have
// their own, so that one that is silent does not delay them.
const maxPipelines = 4

// maxBatch is how many commands a pipeline has at most. Redis serves other clients in between. In a process
// whose processors are taken, each pipeline costs some turns of the scheduler, however long it is.
const maxBatch = 2000

// maxLooks is how many locks are looked at before others get the mutex.
const maxLooks = 2000

// slot is a lock with a time. Slices of slots are read from end to end: that takes less time than to keep
// them in order, because what many locks have due is due at the same time.
type slot struct {
	at   instant
	lock *lock
}

// scheduleLocked has a lock looked at in time.
//
// No timer is set for less than a nanosecond. A bubble of synctest runs one that is due in the goroutine
// that sets it, beside other timers, and the race detector crashes: https://go.dev/issue/78156.
func (l *Locker) scheduleLocked(n *lock) {
	look, last := n.nextLook(), len(l.agenda)-1
	switch {
	case look != 0 && n.place == 0:
		l.agenda, n.place = append(l.agenda, slot{look, n}), len(l.agenda)+1
	case look != 0:
		l.agenda[n.place-1].at = look
	case n.place != 0: // the last one takes its place
		l.agenda[n.place-1], l.agenda[last].lock.place, n.place = l.agenda[last], n.place, 0
		l.agenda[last], l.agenda = slot{}, l.agenda[:last]
	}
	if look != 0 && look < l.next {
		l.next = look
		l.timer.Reset(max(1, look-l.now()))
	}
}

// lookAround does what the clock makes due, in the goroutine of the timer. It sends what is due once it has
// looked at all locks.
func (l *Locker) lookAround() {
	l.mu.Lock()
	defer l.unlock()
	now, looks := l.now(), 0
	l.next = never
	for i := 0; i < len(l.agenda); {
		n, at := l.agenda[i].lock, l.agenda[i].at
		if at > now {
			l.next, i = min(l.next, at), i+1
			continue
		}
		if looks++; looks > maxLooks {
			l.next = now
			l.timer.Reset(1)
			return
		}
		if h := n.hold; h != nil && h.Context.Err() != nil { // its parent's: a loss ends the machine
			n.ends = min(n.ends, now+cmp.Or(l.opts.Grace, n.lease))
		}
		next, due := n.machine.look(now)
		if n.state == ending && now >= n.deadline {
			l.forgetLocked(n.attempt)
		}
		if due && !n.queued {
			node := l.server.node(n)
			n.queued, l.due[node] = true, append(l.due[node], slot{n.expiry(), n})
		}
		l.settleLocked(n, next, "") // puts this look off, or another lock in its place
	}
	if l.next < never {
		l.timer.Reset(max(1, l.next-l.now()))
	}
	for node := range l.due {
		l.sendLocked(node)
	}
}

// scriptOf has the renewal of a hold, a waiter's heartbeat, and the cancel of an attempt.
var scriptOf = map[state]*script{waiting: heartbeatScript, held: renewScript, ending: cancelScript}

// sendLocked sends what is due to one server, as far as it may. Those whose lease ends first go first.
func (l *Locker) sendLocked(node string) {
	// A client may not end a request with its deadline. What is late counts no more.
	l.underWay[node] = slices.DeleteFunc(l.underWay[node], func(end instant) bool { return end <= l.now() })
	for len(l.due[node]) > 0 && len(l.underWay[node]) < maxPipelines {
		due := l.due[node]
		slices.SortFunc(due, func(a, b slot) int { return cmp.Compare(a.at, b.at) })
		var batch []redis.Cmder
		shortest, sent := never, l.now()
		for _, s := range due[:min(len(due), l.maxBatch)] {
			n := s.lock
			if n.queued = false; n.nextLook() == 0 {
				continue // nobody wants it any more
			}
			n.repeat(sent)
			shortest = min(shortest, n.lease)
			cmd := l.server.command(scriptOf[n.state], n, n.attempt, n.lease.Milliseconds())
			if batch = append(batch, cmd); n.hold != nil {
				n.hold.failed.CompareAndSwap(nil, new(error((*unanswered)(cmd))))
			}
		}
		l.due[node] = slices.Delete(due, 0, min(len(due), l.maxBatch))
		if len(batch) > 0 { // after Close there is nothing
			end := sent + interval(shortest)
			l.underWay[node] = append(l.underWay[node], end)
			l.work.Go(func() { l.renew(node, batch, sent, end) })
		}
	}
}

// renew sends renewals together, and processes the answers.
func (l *Locker) renew(node string, batch []redis.Cmder, sent, end instant) {
	l.server.send(bounded{context.WithoutCancel(l.ctx), l.base.Add(end)}, batch...)
	l.mu.Lock()
	defer l.unlock()
	for _, cmd := range batch {
		l.renewedLocked(cmd.(*onceCmd), sent)
	}
	if i := slices.Index(l.underWay[node], end); i >= 0 {
		l.underWay[node] = slices.Delete(l.underWay[node], i, i+1)
	}
	l.sendLocked(node)
}

// renewedLocked processes the answer to one renewal.
func (l *Locker) renewedLocked(cmd *onceCmd, sent instant) {
	n, h := cmd.lock, cmd.lock.hold
	mine := h != nil && h.attempt == cmd.attempt
	a, err := parseReply(cmd.Result())
	switch {
	case n.state == ending && (err == nil || errors.Is(err, redis.ErrClosed)):
		l.forgetLocked(cmd.attempt)
		return
	case err != nil:
		if mine {
			h.failed.Store(&err)
			if hook := l.opts.Hooks.NotRenewed; hook != nil {
				l.events = append(l.events, func() { hook(h.parent, h.event(err)) })
			}
		}
		if n.notRenewed(cmd.attempt, l.now()); n.attempt == cmd.attempt && n.state == waiting {
			n.trouble = err // the waiters are told with the next heartbeat
		}
		l.scheduleLocked(n)
		return
	}
	n.served()
	if by := n.jumped(cmd.script == renewScript, a, sent, l.now()); mine && by > 0 && l.now() > l.jumped+n.lease {
		l.jumped = l.now()
		for _, other := range l.locks { // Redis keeps expiries as times of its clock
			if other.state == held && other != n {
				other.due = l.jumped
				l.scheduleLocked(other)
			}
		}
		if hook := l.opts.Hooks.ClockJumped; hook != nil {
			l.events = append(l.events, func() { hook(by) })
		}
	}
	next := n.renewed(cmd.attempt, cmd.script == renewScript, a, sent, l.now())
	if mine && n.state == held && a.kind == replyHeld {
		h.deadline.Store(int64(n.deadline))
		h.failed.Store(nil)
		if h.loss() != nil { // somebody looked at the clock just before
			next = n.lose(ErrLeaseOver)
		} else if hook := l.opts.Hooks.Renewed; hook != nil {
			l.events = append(l.events, func() { hook(h.parent, h.event(nil)) })
		}
	}
	l.settleLocked(n, next, Remote)
}

// maxEnding bounds the attempts that an outage can leave. Further ones are left to their lease.
const maxEnding = 10000

// cleanLocked has an attempt with an unknown outcome cancelled, until Redis answers or its lease is over.
func (l *Locker) cleanLocked(n *lock, attempt uint64, lease time.Duration) {
	if len(l.ending) >= maxEnding && !l.closed || l.ending[attempt] != nil {
		return
	}
	// The lease is zero where a grant is all that is known.
	rest := &lock{name: n.name, keys: n.keys, machine: toEnd(attempt, max(lease, l.opts.Lease), l.now())}
	l.calls.Add(1)
	l.ending[attempt] = rest
	l.scheduleLocked(rest)
}

// forgetLocked ends the clean-up of an attempt, if there is one.
func (l *Locker) forgetLocked(attempt uint64) {
	if rest := l.ending[attempt]; rest != nil {
		rest.stop()
		delete(l.ending, attempt)
		l.calls.Done()
	}
}
