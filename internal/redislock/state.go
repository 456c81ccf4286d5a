package redislock

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"
)

// This file is the lock's state machine: what one process knows of one lock, and each transition.
//
//	idle -> asking -> waiting -> held -> idle, or asking for the next waiter
//
// The mutex rule: Locker.mu guards all machines, and the fields that say so. Functions whose names
// end in Locked, and the methods of machine, are called with it held and return with it held. None
// of them sends, waits, or calls a hook. A method of machine returns what to do next, and
// settleLocked (locker.go) does it. Locker.unlock runs the hooks.

type state int

const (
	idle    state = iota // no goroutine of this process has it or asks for it
	asking               // a request is under way
	waiting              // queued in Redis
	held
	ending // to be cancelled; a lock that is apart from its Locker's
)

// instant is a time on the process's monotonic clock, counted from before its Locker was made. Zero
// is no time.
type instant = time.Duration

// never is a time that does not come. A duration can be added to it without an overflow.
const never instant = math.MaxInt64 / 2

// machine is the state of one lock in this process, as far as Redis has to do with it.
type machine struct {
	state   state
	attempt uint64        // under which Redis knows this process; not while idle
	lease   time.Duration // of the attempt, or the last one
	bound   instant       // asking, waiting: a grant that is pushed was made after this
	others  int64         // other processes that wait, as far as is known
	pause   time.Duration // after the last renewal, if it failed
	due     instant       // waiting, held, ending: when to send the next renewal, or the one under way again

	// While held. Redis gave it possibly to several holders of this process in turn.
	epoch    int64
	passes   int64 // to other goroutines of this process
	given    instant
	deadline instant // also of ending
	ends     instant // when renewal stops for MaxHold or Grace, the sooner of them
	ahead    instant // by how much the server's clock was ahead of ours at most, at its last answer
}

// todo is what the caller of a transition must do. After each transition, an idle machine asks
// again if a goroutine of this process wants the lock.
type todo struct {
	over   uint64 // cancel this attempt
	serve  bool   // give the lock to the first waiter
	lost   error  // end the hold, for this reason
	unseen bool   // resubscribe: a place or a grant was missed, perhaps because a failover left the subscription behind
}

// tokenBits is the room for passes in a token. Epochs are microseconds, so tokens stay below 2^63
// until the year 2112.
const tokenBits = 11

// token returns the hold's fencing token.
func (m *machine) token() int64 { return m.epoch<<tokenBits | m.passes }

// margin is subtracted from every local deadline, for clocks that run at different rates. It is 1 %
// of the lease and two milliseconds.
func margin(lease time.Duration) time.Duration { return lease/100 + 2*time.Millisecond }

func third(lease time.Duration) time.Duration { return lease / 3 }

// interval is how often holds are renewed and waiters send a heartbeat. A lost message, and a key that is gone, are
// noticed within ten seconds of any lease.
func interval(lease time.Duration) time.Duration { return min(third(lease), 10*time.Second) }

// ask begins an attempt.
func (m *machine) ask(now instant, attempt uint64, lease time.Duration) {
	*m = machine{state: asking, attempt: attempt, lease: lease, bound: now}
}

// answered processes the reply to the request that began an attempt and was sent at sent. An
// attempt that is neither granted nor queued leaves the machine idle.
func (m *machine) answered(attempt uint64, r reply, queued bool, sent, now instant) todo {
	switch {
	case attempt != m.attempt || m.state != asking:
		// The caller gave up and cancelled the attempt, or a pushed grant was faster.
	case r.kind == replyHeld:
		return m.granted(r, sent, now)
	case r.kind == replyWaiting && queued:
		m.state, m.due = waiting, cmp.Or(m.due, nextHeartbeat(m.lease, r.ttl, now))
	default:
		m.stop()
	}
	return todo{}
}

// stop makes the machine idle. Either no attempt is left in Redis, or the caller ends it there.
func (m *machine) stop() { *m = machine{lease: m.lease} }

// granted begins a hold. Redis granted the lock at the time base, or later.
func (m *machine) granted(r reply, base, now instant) todo {
	deadline := base + m.lease - margin(m.lease)
	if now >= deadline { // the answer took longer than the lease
		return m.giveUp()
	}
	*m = machine{state: held, attempt: m.attempt, lease: m.lease, others: max(r.others, m.others), due: nextRenewal(m.lease, base),
		epoch: r.epoch, given: now, deadline: deadline, ends: never, ahead: instant(r.epoch)*time.Microsecond - base}
	return todo{serve: true}
}

// pushed processes a grant from the channel. A grant that does not match the current attempt is
// old, and nobody wants it. Had is the newest attempt that became a hold. One before it was ended when it was given up.
func (m *machine) pushed(attempt, had uint64, r reply, now instant) todo {
	switch old := attempt != m.attempt || m.state == idle; {
	case m.state == held && !old, old && attempt <= had: // it comes twice. Its holder may have left the lock: see [Lease.Leave]
	case old:
		return todo{over: attempt}
	case m.bound+m.lease-margin(m.lease)-now < third(m.lease):
		// Little of the lease may be left. A heartbeat renews it before anybody works under it.
		m.due = now
	default:
		return m.granted(r, m.bound, now)
	}
	return todo{}
}

// renewed processes the reply to a renewal of a hold, or to a waiter's heartbeat, that was sent at
// sent.
func (m *machine) renewed(attempt uint64, hold bool, r reply, sent, now instant) todo {
	switch {
	case attempt != m.attempt:
	case m.state == held && now >= m.deadline:
		return m.lose(ErrLeaseOver) // a caller may have seen that it is over
	case m.state == held && r.kind == replyHeld:
		m.pause, m.deadline = 0, max(m.deadline, sent+m.lease-margin(m.lease))
		m.due = nextRenewal(m.lease, sent)
	case m.state == held && hold:
		return m.lose(ErrTaken)
	case m.state == waiting && r.kind == replyHeld:
		next := m.granted(r, sent, now)
		m.ahead = never    // the epoch can be of an earlier time: the first renewal says what the clock is
		next.unseen = true // no message came, or the heartbeat was faster, or it made the grant itself
		return next
	case m.state == waiting && r.kind == replyWaiting:
		if m.pause, m.bound = 0, max(m.bound, sent); m.due > now { // otherwise a subscription or a push wants one at once
			m.due = nextHeartbeat(m.lease, r.ttl, now)
		}
	case m.state == waiting: // a heartbeat never queues: a new attempt does
		m.stop()
		return todo{unseen: true}
	}
	return todo{}
}

// jumped returns by how much the server's clock has been set forward at least, since its last answer. Only a
// renewal's answer says what it is. The result is positive when that cannot be the round trip, or clocks
// that run at different rates.
func (m *machine) jumped(renewal bool, r reply, sent, now instant) (by time.Duration) {
	if clock := instant(r.epoch) * time.Microsecond; renewal && m.state == held {
		by = clock - now - m.ahead - 2*margin(m.lease)
		m.ahead = clock - sent
	}
	return by
}

// notRenewed schedules the next renewal soon. One error is no reason to give up a lock whose lease
// still runs.
func (m *machine) notRenewed(attempt uint64, now instant) {
	if attempt == m.attempt {
		m.pause = nextPause(m.pause, m.lease)
		m.due = now + m.pause
	}
}

// nextPause is the time before a request that failed is repeated. Zero was the last one before the first.
func nextPause(last, lease time.Duration) time.Duration {
	return min(lease/24, max(2*last, 100*time.Millisecond), time.Second)
}

// mayPass says whether the lock may go to another goroutine of this process without a request. That
// goroutine must want the same lease, enough of the lease must be left, and other processes must
// not starve. The message that others wait may be lost: an answer of Redis says so after an interval.
func (m *machine) mayPass(lease time.Duration, now instant) bool {
	if lease != m.lease || m.passes == 1<<tokenBits-1 || m.deadline-now < third(m.lease) {
		return false
	}
	shorter, since := max(m.others/manyOthers, 1), now-m.given
	passes, turn := m.passes*shorter, since*time.Duration(shorter)
	return m.others == 0 && since < interval(m.lease) || since < longHold*time.Duration(m.passes+1) && (passes < fewPasses && turn < maxTurn || passes < maxPasses && turn < shortTurn)
}

// A turn bounds how a process passes a lock on among its own goroutines while another one waits. Its bounds are
// the number of passes, and the time since the grant. After some passes the time is shorter: short holds have
// more of them, beside which a hand-off to another process is short.
const (
	fewPasses, maxTurn   = 32, 50 * time.Millisecond
	maxPasses, shortTurn = 80, 10 * time.Millisecond
	// longHold is a mean hold that is long compared with a hand-off to another process. From there
	// on, the order of arrival comes first.
	longHold = 5 * time.Millisecond
	// manyOthers is the number of waiting processes above which these limits shrink in proportion.
	// The time that one of them waits then does not grow with their number.
	manyOthers = 8
)

// pass gives the lock to the next goroutine of this process. The token rises.
func (m *machine) pass() todo {
	m.passes, m.ends = m.passes+1, never
	return todo{serve: true}
}

// lose ends a hold that is over by Redis or by the clock.
func (m *machine) lose(why error) todo { return todo{over: m.giveUp().over, lost: why} }

// giveUp ends the current attempt and has it cancelled.
func (m *machine) giveUp() todo {
	over := m.attempt
	m.stop()
	return todo{over: over}
}

// contend notes that other processes wait.
func (m *machine) contend() { m.others = max(m.others, 1) }

// resume schedules a waiter's heartbeat at once, because messages to it may have been lost. If its
// request is under way, the heartbeat follows the answer.
func (m *machine) resume(now instant) {
	if m.contend(); m.state == waiting || m.state == asking {
		m.due = now
	}
}

// toEnd is a machine that has an attempt cancelled from now on, for a lease.
func toEnd(attempt uint64, lease time.Duration, now instant) machine {
	return machine{state: ending, attempt: attempt, lease: lease, due: now, deadline: now + lease, ends: never}
}

// expiry is when a renewal comes too late, or a place in the queue is over.
func (m *machine) expiry() instant { return cmp.Or(m.deadline, m.bound+m.lease) }

// nextLook returns when the clock alone changes something, or a renewal is due. Zero means never.
func (m *machine) nextLook() instant {
	switch m.state {
	case idle, asking:
		return 0
	case waiting:
		return m.due
	}
	return min(m.deadline, m.ends, m.due)
}

// repeat schedules a renewal that is sent now once more, in case that it is not answered.
func (m *machine) repeat(now instant) { m.due = now + interval(m.lease)/2 }

// look returns what the clock makes due now, and whether to send a renewal. A renewal is sent again
// after half an interval without an answer.
func (m *machine) look(now instant) (next todo, renew bool) {
	switch look := m.nextLook(); {
	case look == 0 || now < look:
		return todo{}, false
	case m.state == held && now >= m.deadline:
		return m.lose(ErrLeaseOver), false
	case m.state == held && now >= m.ends:
		m.stop() // nothing is sent: the lock ends with its lease
		return todo{lost: ErrHeldTooLong}, false
	}
	m.repeat(now)
	return todo{}, true
}

// nextRenewal is three quarters of an interval to an interval after the last one. The random part spreads the
// renewals of locks that were taken in one burst. Those of a moment go out together.
func nextRenewal(lease time.Duration, last instant) instant {
	every := interval(lease)
	return (last + every - rand.N(every/4)).Truncate(every / 42)
}

// nextHeartbeat is an interval from now, or just after the lock would expire.
func nextHeartbeat(lease, ttl time.Duration, now instant) instant {
	return now + min(interval(lease), ttl+time.Millisecond+rand.N(max(lease/100, time.Millisecond)))
}
