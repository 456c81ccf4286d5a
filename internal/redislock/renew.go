package redislock

import (
	"container/heap"
	"context"
	"time"
)

// schedule has the locks that the clock changes, those that are next first: a heap. Locker.mu guards it.
type schedule struct {
	locks   []*lock
	running bool
	next    instant       // when the loop looks next
	woken   chan struct{} // tells it to look now
}

func (s *schedule) Len() int           { return len(s.locks) }
func (s *schedule) Less(i, j int) bool { return s.locks[i].wake < s.locks[j].wake }
func (s *schedule) Push(n any) {
	s.locks = append(s.locks, n.(*lock))
	s.locks[len(s.locks)-1].index = len(s.locks)
}
func (s *schedule) Swap(i, j int) {
	s.locks[i], s.locks[j] = s.locks[j], s.locks[i]
	s.locks[i].index, s.locks[j].index = i+1, j+1
}

func (s *schedule) Pop() any {
	last := len(s.locks) - 1
	n := s.locks[last]
	s.locks[last], s.locks, n.index = nil, s.locks[:last], 0
	return n
}

// scheduleLocked sees to it that the loop looks at a lock when its clock says so.
func (l *Locker) scheduleLocked(n *lock) {
	s := &l.renewals
	n.wake = n.nextLook(l.opts.FixedLease)
	switch {
	case n.wake == 0 && n.index > 0:
		heap.Remove(s, n.index-1)
	case n.wake == 0:
		return
	case n.index > 0:
		heap.Fix(s, n.index-1)
	default:
		heap.Push(s, n)
	}
	if n.wake != 0 && !s.running && !l.closed {
		s.running = true
		l.work.Add(1)
		go l.renewLoop()
	} else if n.wake != 0 && n.wake < s.next {
		s.next = n.wake
		select {
		case s.woken <- struct{}{}:
		default:
		}
	}
}

// renewLoop renews all holds and places of a Locker, and ends the holds whose time is
// over. One loop serves them all, and it ends when there are none.
func (l *Locker) renewLoop() {
	defer l.work.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-l.renewals.woken:
		case <-l.ctx.Done():
			return
		}
		l.mu.Lock()
		due := l.dueLocked()
		s := &l.renewals
		busy := len(s.locks) > 0
		if s.running = busy; busy {
			s.next = s.locks[0].wake
			timer.Reset(s.next - l.now())
		}
		l.unlock()
		if !busy {
			return
		}
		l.renew(due)
	}
}

// renewal is one of a hold, or a waiter's heartbeat.
type renewal struct {
	lock    *lock
	attempt uint64
	lease   time.Duration
	hold    bool
}

// together is how much of a lease a renewal may come early, so as to go along with others.
const together = 200

// dueLocked looks at each lock whose time has come.
func (l *Locker) dueLocked() (due []renewal) {
	now := l.now()
	var looked []*lock
	for s := &l.renewals; len(s.locks) > 0 && s.locks[0].wake <= now+s.locks[0].lease/together; {
		n := heap.Pop(s).(*lock)
		looked = append(looked, n)
	}
	for _, n := range looked {
		if n.state == held && n.ends == 0 && n.hold.Context.Err() != nil { // that of the parent: a loss ends the machine
			n.ends = now + l.opts.grace(n.lease)
		}
		next, renew := n.look(l.opts.FixedLease, now)
		switch {
		case next.lost && next.over == 0:
			l.lostLocked(n, "held for longer than Options.MaxHold, or than Options.Grace after its context's end")
		case next.lost:
			l.lostLocked(n, "its lease is over")
		case renew:
			due = append(due, renewal{n, n.attempt, n.lease, n.state == held})
		}
		l.settleLocked(n, next, "")
	}
	return due
}

// pace is how long a batch waits for the answers of the one before it. So Redis serves others in between, and
// a server that is silent does not hold up what goes to another one.
const pace = time.Millisecond

// renew sends renewals in batches.
func (l *Locker) renew(due []renewal) {
	patience := time.NewTimer(pace)
	defer patience.Stop()
	for len(due) > 0 {
		batch := due[:min(l.server.batch, len(due))]
		due = due[len(batch):]
		answered := make(chan struct{})
		l.work.Add(1)
		go func() {
			defer l.work.Done()
			defer close(answered)
			l.renewBatch(batch)
		}()
		if len(due) == 0 {
			return
		}
		patience.Reset(pace)
		select {
		case <-answered:
		case <-patience.C:
		case <-l.ctx.Done():
		}
	}
}

func (l *Locker) renewBatch(batch []renewal) {
	calls := make([]call, len(batch))
	shortest := maxLease
	for i, r := range batch {
		shortest = min(shortest, r.lease)
		if r.hold {
			calls[i] = l.server.renew(r.lock.keys, r.attempt, r.lease)
		} else {
			calls[i] = l.server.heartbeat(r.lock.name, r.lock.keys, r.attempt, r.lease)
		}
	}
	ctx, cancel := context.WithTimeout(l.ctx, third(shortest))
	defer cancel()
	sent := l.now()
	answers := l.server.doAll(ctx, calls)
	l.mu.Lock()
	defer l.unlock()
	for i, a := range answers {
		if a.err == nil {
			l.renewedLocked(batch[i], a.reply, sent)
			continue
		}
		n := batch[i].lock
		if h := n.hold; h != nil && h.attempt == batch[i].attempt {
			h.failed.Store(&a.err)
		}
		n.notRenewed(batch[i].attempt, l.now())
		l.scheduleLocked(n)
	}
}

// renewedLocked takes in the answer to a renewal.
func (l *Locker) renewedLocked(r renewal, a reply, sent instant) {
	n, h := r.lock, r.lock.hold
	next := n.renewed(r.attempt, r.hold, a, sent, l.now())
	switch {
	case next.lost && a.kind == replyDropped:
		l.lostLocked(n, "Redis says that it is not held")
	case next.lost:
		l.lostLocked(n, "its lease is over")
	case n.state == held && h != nil && h == n.hold && h.attempt == r.attempt && a.kind == replyHeld:
		h.deadline.Store(int64(n.deadline))
		h.failed.Store(nil)
		if h.isLost() { // somebody looked at the clock just before
			l.lostLocked(n, "its lease is over")
			next = n.lose()
			break
		}
		if hook := l.opts.Hooks.Renewed; hook != nil {
			l.events = append(l.events, func() { hook(h.parent, h.event(nil)) })
		}
	}
	l.settleLocked(n, next, Remote)
}
