package redislock

import (
	"cmp"
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

// maxBatch is how many commands a pipeline has at most. Redis serves other clients in between.
const maxBatch = 500

// queue has what is due to be sent to one server.
type queue struct {
	due      []*lock
	underWay int // pipelines
}

// scheduleLocked has a lock looked at in time. A look that comes too soon is not put off: it looks
// again then.
func (l *Locker) scheduleLocked(n *lock) {
	look := n.nextLook()
	if look == 0 || n.look != 0 && look >= n.look {
		return
	}
	l.unscheduleLocked(n)
	n.look = look
	l.agenda = slices.Insert(l.agenda, l.placeLocked(look), n)
	if l.agenda[0] == n {
		l.timer.Reset(look - l.now())
	}
}

// placeLocked is where a look belongs in the agenda. Most belong near its end.
func (l *Locker) placeLocked(look instant) int {
	i, _ := slices.BinarySearchFunc(l.agenda, look, func(n *lock, look instant) int { return cmp.Compare(n.look, look) })
	return i
}

func (l *Locker) unscheduleLocked(n *lock) {
	if n.look != 0 {
		i := l.placeLocked(n.look)
		i += slices.Index(l.agenda[i:], n)
		l.agenda = slices.Delete(l.agenda, i, i+1)
		n.look = 0
	}
}

// lookAround does what the clock makes due, in the goroutine of the timer.
func (l *Locker) lookAround() {
	l.mu.Lock()
	defer l.unlock()
	now := l.now()
	for len(l.agenda) > 0 && l.agenda[0].look <= now {
		n := l.agenda[0]
		l.agenda[0], l.agenda = nil, l.agenda[1:]
		n.look = 0
		if h := n.hold; h != nil && h.Context.Err() != nil { // its parent's: a loss ends the machine
			n.endBy(now + cmp.Or(l.opts.Grace, n.lease))
		}
		next, due := n.machine.look(now)
		if n.state == ending && now >= n.deadline {
			l.forgetLocked(n.attempt)
			continue
		}
		if due && !n.queued {
			node := l.server.node(n)
			if l.queues[node] == nil {
				l.queues[node] = &queue{}
			}
			n.queued, l.queues[node].due = true, append(l.queues[node].due, n)
		}
		l.settleLocked(n, next, "")
	}
	if len(l.agenda) > 0 {
		l.timer.Reset(l.agenda[0].look - l.now())
	}
	for node := range l.queues {
		l.sendLocked(node)
	}
}

// renewal is the renewal of a hold, a waiter's heartbeat, or the cancel of an attempt.
type renewal struct {
	lock    *lock
	hold    *hold // nil but for a renewal
	attempt uint64
	cmd     *onceCmd
}

var scriptOf = map[state]*script{waiting: heartbeatScript, held: renewScript, ending: cancelScript}

// sendLocked sends what is due to one server, as far as it may. Those whose lease ends first go first.
func (l *Locker) sendLocked(node *redis.Client) {
	q := l.queues[node]
	for len(q.due) > 0 && q.underWay < maxPipelines {
		slices.SortFunc(q.due, func(a, b *lock) int { return cmp.Compare(a.expiry(), b.expiry()) })
		first := q.due[:min(len(q.due), maxBatch)]
		q.due = q.due[len(first):]
		var batch []renewal
		longest := time.Duration(0)
		for _, n := range first {
			if n.queued = false; n.nextLook() != 0 {
				n.repeat(l.now())
				longest = max(longest, n.lease)
				batch = append(batch, renewal{n, n.hold, n.attempt, l.server.command(scriptOf[n.state], n, n.attempt, n.lease.Milliseconds())})
			}
		}
		if len(batch) > 0 {
			q.underWay++
			l.work.Go(func() { l.renew(node, batch, third(longest)) })
		}
	}
	if q.underWay == 0 {
		delete(l.queues, node)
	}
}

// renew sends renewals together, and processes the answers. One that is alone has the values of its
// hold's context.
func (l *Locker) renew(node *redis.Client, batch []renewal, patience time.Duration) {
	behalf, sent := l.ctx, l.now()
	if h := batch[0].hold; h != nil && len(batch) == 1 {
		behalf = h.parent
	}
	var cmds []*onceCmd
	for _, r := range batch {
		cmds = append(cmds, r.cmd)
	}
	l.server.send(bound(behalf, l.base.Add(sent+patience), nil), cmds...)
	l.mu.Lock()
	defer l.unlock()
	for _, r := range batch {
		l.renewedLocked(r, sent)
	}
	l.queues[node].underWay--
	l.sendLocked(node)
}

// renewedLocked processes the answer to one renewal.
func (l *Locker) renewedLocked(r renewal, sent instant) {
	n, h := r.lock, r.lock.hold
	mine := h != nil && h.attempt == r.attempt
	a, err := r.cmd.reply()
	switch {
	case n.state == ending && (err == nil || errors.Is(err, redis.ErrClosed)):
		l.forgetLocked(r.attempt)
		return
	case err != nil:
		if mine {
			h.failed.Store(&err)
		}
		n.notRenewed(r.attempt, l.now())
		l.scheduleLocked(n)
		return
	}
	next := n.renewed(r.attempt, r.hold != nil, a, sent, l.now())
	if mine && n.state == held && a.kind == replyHeld {
		h.deadline.Store(int64(n.deadline))
		h.failed.Store(nil)
		if h.isLost() { // somebody looked at the clock just before
			next = n.lose(leaseOver)
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
	lease = max(lease, l.opts.Lease) // zero where a grant is all that is known
	rest := &lock{name: n.name, keys: n.keys}
	rest.end(attempt, lease, l.now())
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
