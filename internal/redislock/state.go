package redislock

import (
	"math"
	"math/rand/v2"
	"time"
)

// This file is the lock's state machine: what one process knows of one lock, and each way in
// which that changes.
//
//	idle -> asking -> waiting -> held -> idle, or asking for the next waiter
//
// The mutex rule: Locker.mu guards all machines, and what else is marked so. A function whose name
// ends in Locked, and each method of machine, is called with it held and returns with it held. None
// of them sends, waits, or calls a hook: a method of machine returns what is to be done next, and
// settleLocked (locker.go) sees to it. Locker.unlock runs the hooks.

type state int

const (
	idle    state = iota // nobody here has it or asks for it
	asking               // a request is under way
	waiting              // queued in Redis
	held
)

// instant is a time on the process's monotonic clock, counted from before its Locker was made. Zero
// is no time.
type instant = time.Duration

// never is a time that does not come, and to which one can be added.
const never instant = math.MaxInt64 / 2

// machine is the state of one lock in this process, as far as Redis has to do with it.
type machine struct {
	state   state
	attempt uint64        // the one by which Redis knows what is going on here; not while idle
	lease   time.Duration // of the attempt, or the last one
	bound   instant       // asking, waiting: a grant that is pushed was made after this
	others  int64         // other processes that wait, as far as is known
	grant                 // while held
	due     instant       // waiting, held: when to send the next renewal, or the one under way again
}

// grant is what Redis gave, possibly to several holders of this process in turn.
type grant struct {
	epoch    int64
	passes   int64 // to other goroutines of this process
	given    instant
	deadline instant
	ends     instant // when renewal stops for MaxHold or Grace
}

// todo is what a transition leaves to be done. After each one, a machine that is idle begins anew
// if somebody here wants the lock.
type todo struct {
	over   uint64 // have Redis end this attempt
	serve  bool   // the lock is here: it is the first waiter's
	lost   string // the hold is over, and why
	unseen bool   // a place was lost, or a grant not heard: perhaps the subscription stays with a server that is not the primary any more
}

// tokenBits is the room for passes in a token. Epochs are microseconds, so that tokens
// stay below 2^63 until the year 2112.
const tokenBits = 11

// token is that of the hold.
func (m *machine) token() int64 { return m.epoch<<tokenBits | m.passes }

// margin is taken off every local deadline, for clocks that run at different
// rates: 1 % of the lease and two milliseconds.
func margin(lease time.Duration) time.Duration { return lease/100 + 2*time.Millisecond }

// third is how often holds are renewed and waiters send a heartbeat.
func third(lease time.Duration) time.Duration { return lease / 3 }

// ask begins an attempt.
func (m *machine) ask(now instant, attempt uint64, lease time.Duration) {
	*m = machine{state: asking, attempt: attempt, lease: lease, bound: now}
}

// answered takes in the reply to the request that began an attempt, which was sent then. An attempt
// that came to nothing leaves the machine idle.
func (m *machine) answered(attempt uint64, r reply, queued bool, sent, now instant) todo {
	switch {
	case attempt != m.attempt || m.state != asking:
		// The caller gave up, and Redis was told then; or a pushed grant was faster.
	case r.kind == replyHeld:
		return m.granted(r, sent, now)
	case r.kind == replyWaiting && queued:
		m.state, m.due = waiting, nextHeartbeat(m.lease, r.ttl, now)
	default:
		m.stop()
	}
	return todo{}
}

// failed ends an attempt that has got no answer.
func (m *machine) failed(attempt uint64) todo {
	if attempt != m.attempt || m.state != asking {
		return todo{} // as above
	}
	return m.giveUp()
}

// stop makes the machine idle: nothing is left to end, or the caller sends what ends it.
func (m *machine) stop() { *m = machine{lease: m.lease} }

// granted begins a hold: Redis gave the lock at the time base, or later.
func (m *machine) granted(r reply, base, now instant) todo {
	deadline := base + m.lease - margin(m.lease)
	if now >= deadline { // the answer took longer than the lease
		return m.giveUp()
	}
	*m = machine{state: held, attempt: m.attempt, lease: m.lease, others: max(r.others, m.others), due: nextRenewal(m.lease, base),
		grant: grant{epoch: r.epoch, given: now, deadline: deadline, ends: never}}
	return todo{serve: true}
}

// pushed takes in a grant from the channel. What does not match the current attempt is of the past:
// nobody wants it.
func (m *machine) pushed(attempt uint64, r reply, now instant) todo {
	switch {
	case attempt != m.attempt || m.state == idle:
		return todo{over: attempt}
	case m.state == held:
		// Told twice.
	case m.bound+m.lease-margin(m.lease)-now < third(m.lease):
		// By what is known, little of the lease may be left: it is renewed before anybody works
		// under it.
		m.due = now
	default:
		return m.granted(r, m.bound, now)
	}
	return todo{}
}

// renewed takes in the reply to a renewal of a hold, or to a waiter's heartbeat, which was sent
// then.
func (m *machine) renewed(attempt uint64, hold bool, r reply, sent, now instant) todo {
	if attempt != m.attempt {
		return todo{}
	}
	switch {
	case m.state == held && now >= m.deadline:
		return m.lose(leaseOver) // whoever looked at it was told so
	case m.state == held && r.kind == replyHeld:
		m.deadline = max(m.deadline, sent+m.lease-margin(m.lease))
		m.due = nextRenewal(m.lease, sent)
	case m.state == held && hold:
		return m.lose("Redis says that it is not held")
	case m.state == waiting && r.kind == replyHeld:
		next := m.granted(r, sent, now)
		next.unseen = true // no message came; or the heartbeat was faster, or handed the lock on itself
		return next
	case m.state == waiting && r.kind == replyWaiting:
		m.bound = max(m.bound, sent)
		m.due = nextHeartbeat(m.lease, r.ttl, now)
	case m.state == waiting: // a heartbeat never queues: that takes a new attempt
		m.stop()
		return todo{unseen: true}
	}
	return todo{}
}

// notRenewed has a renewal sent again soon: one error is no reason to give up a lock that still has
// time.
func (m *machine) notRenewed(attempt uint64, now instant) {
	if attempt == m.attempt && m.state != asking {
		m.due = now + m.lease/24
	}
}

// mayPass says whether the lock may go to another goroutine here, which wants it for so long,
// without a word to Redis: it must be worth having, and other processes must not starve.
func (m *machine) mayPass(lease time.Duration, now instant) bool {
	if lease != m.lease || m.passes == 1<<tokenBits-1 || m.deadline-now < third(m.lease) {
		return false
	}
	if m.others == 0 {
		return true
	}
	shorter := max(m.others/manyOthers, 1)
	since := now - m.given
	return m.passes < maxPasses/shorter && since < maxTurn/time.Duration(shorter) && since < longHold*time.Duration(m.passes+1)
}

// A turn is how long a process may pass a lock on among its own goroutines while another process
// waits: so many times, and so long since the grant.
const (
	maxPasses = 32
	maxTurn   = 50 * time.Millisecond
	// longHold is a mean hold beside which a hand-off to another process costs so little that order
	// comes first.
	longHold = 5 * time.Millisecond
	// manyOthers is the number of waiting processes above which both limits shrink in proportion:
	// then how long one of them waits does not grow with how many do the same.
	manyOthers = 8
)

// pass gives the lock to the next goroutine here. The token rises.
func (m *machine) pass() todo {
	m.passes++
	m.ends = never
	return todo{serve: true}
}

// leaseOver is why most holds are lost.
const leaseOver = "its lease is over"

// lose ends a hold of which Redis or the clock says that it is over.
func (m *machine) lose(why string) todo {
	next := m.giveUp()
	next.lost = why
	return next
}

// endBy has renewal stop at some time, if it would not sooner.
func (m *machine) endBy(end instant) { m.ends = min(m.ends, end) }

// abandon ends a hold for MaxHold or Grace. Redis is told nothing: the lock ends with its lease.
func (m *machine) abandon() todo {
	m.stop()
	return todo{lost: "held for longer than Options.MaxHold, or than Options.Grace after its context's end"}
}

// giveUp ends what is going on here, because nobody here wants it any more.
func (m *machine) giveUp() todo {
	over := m.attempt
	m.stop()
	return todo{over: over}
}

// contend notes that other processes wait.
func (m *machine) contend() { m.others = max(m.others, 1) }

// resume has a waiter send a heartbeat at once: messages to it may have been lost.
func (m *machine) resume(now instant) {
	if m.contend(); m.state == waiting {
		m.due = now
	}
}

// nextLook is when the clock alone changes something, or a renewal is due. It is zero where nothing
// is.
func (m *machine) nextLook(fixed bool) instant {
	switch {
	case m.state == waiting:
		return m.due
	case m.state != held:
		return 0
	case fixed:
		return min(m.deadline, m.ends)
	}
	return min(m.deadline, m.ends, m.due)
}

// look says what is to be done now by the clock alone, and whether to send a renewal. It is sent
// again when it has been without an answer for a sixth of the lease.
func (m *machine) look(fixed bool, now instant) (next todo, renew bool) {
	switch {
	case m.state == held && now >= m.deadline:
		return m.lose(leaseOver), false
	case m.state == held && now >= m.ends:
		return m.abandon(), false
	case m.state == held && !fixed && now >= m.due, m.state == waiting && now >= m.due:
		m.due = now + m.lease/6
		return todo{}, true
	}
	return todo{}, false
}

// nextRenewal is a third of the lease after the last one, less some of it: what was taken in one
// burst must not be renewed in one.
func nextRenewal(lease time.Duration, last instant) instant {
	return last + third(lease) - rand.N(third(lease)/4)
}

// nextHeartbeat is at a third of the waiter's lease, or just after the lock as it is would end.
func nextHeartbeat(lease, ttl time.Duration, now instant) instant {
	jitter := rand.N(max(lease/100, time.Millisecond))
	return now + min(third(lease), ttl+jitter+time.Millisecond)
}
