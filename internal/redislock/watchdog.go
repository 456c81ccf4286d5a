package redislock

import (
	"context"
	"math/rand/v2"
	"time"
)

// attend has the loop look after a name. It is called with Locker.mu.
func (l *Locker) attend(n *name) {
	if !l.looping {
		l.looping = true
		l.work.Add(1)
		go l.loop()
		return
	}
	if l.dueOf(n).Before(l.nextWake) {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// dueOf is when the loop has to look at a name next.
func (l *Locker) dueOf(n *name) time.Time {
	switch {
	case n.state == held && (l.opts.FixedLease || n.grant.deadline.Before(n.beatDue)):
		return n.grant.deadline
	default:
		return n.beatDue
	}
}

// nextLook is when a waiter sends its next beat: at a third of its lease, or just
// after the lock as it is would end.
func (l *Locker) nextLook(r reply) time.Time {
	jitter := rand.N(max(l.opts.Lease/100, time.Millisecond))
	return time.Now().Add(min(l.opts.beatEvery(), r.ttl+jitter+time.Millisecond))
}

// loop renews all holds and places of a Locker, and ends the holds whose time is
// over. One loop serves them all, and it ends when there are none.
func (l *Locker) loop() {
	defer l.work.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-l.wake:
		case <-l.ctx.Done():
			return
		}
		l.mu.Lock()
		beats, lost, busy := l.look(time.Now())
		if !busy {
			l.looping = false
		}
		wait := time.Until(l.nextWake)
		l.mu.Unlock()
		for _, key := range lost {
			l.hookLost(key)
		}
		if !busy {
			return
		}
		l.send(beats)
		timer.Reset(wait)
	}
}

// look ends what is over, says what beats are due, and sets the time of the next
// look. What is due soon goes along, so that beats come in few, large batches.
func (l *Locker) look(now time.Time) (beats []beat, lost []string, busy bool) {
	every := l.opts.beatEvery()
	l.nextWake = now.Add(every)
	var soon []*name
	for _, n := range l.names {
		if n.state == held && !now.Before(n.grant.deadline) {
			l.lose(n)
			lost = append(lost, n.key)
		}
		if n.state != held && n.state != waiting {
			continue
		}
		busy = true
		if n.state == held && l.opts.FixedLease {
			l.nextWake = earlier(l.nextWake, n.grant.deadline)
			continue
		}
		// A beat that has no answer after so long is sent again.
		underWay := !n.beatOut.IsZero() && now.Sub(n.beatOut) < every/2
		if underWay {
			l.nextWake = earlier(l.nextWake, n.beatOut.Add(every/2))
		} else if n.beatDue.Sub(now) < every/2 {
			soon = append(soon, n)
		} else {
			l.nextWake = earlier(l.nextWake, n.beatDue)
		}
		if n.state == held {
			l.nextWake = earlier(l.nextWake, n.grant.deadline)
		}
	}
	due := false
	for _, n := range soon {
		due = due || !n.beatDue.After(now)
	}
	for _, n := range soon {
		if !due {
			l.nextWake = earlier(l.nextWake, n.beatDue)
			continue
		}
		n.beatOut = now
		beats = append(beats, beat{n, n.attempt, n.state == held})
		l.nextWake = earlier(l.nextWake, now.Add(every/2))
	}
	return beats, lost, busy
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// send sends beats in batches, each in a goroutine of its own: the loop must not wait for a
// network that is silent.
func (l *Locker) send(beats []beat) {
	size := maxBatch
	if !l.server.batches {
		size = 1
	}
	for len(beats) > 0 {
		batch := beats[:min(size, len(beats))]
		beats = beats[len(batch):]
		l.work.Add(1)
		go func() {
			defer l.work.Done()
			ctx, cancel := context.WithTimeout(l.ctx, l.opts.beatEvery())
			defer cancel()
			sent := time.Now()
			replies, err := l.server.beat(ctx, batch)
			if err != nil {
				l.missed(batch)
				return
			}
			for i, b := range batch {
				if replies[i].kind == replyFailed {
					l.missed([]beat{b})
					continue
				}
				l.beaten(b, sent, replies[i])
			}
		}()
	}
}

// missed has beats sent again soon: one error is no reason to give up a lock that
// still has time.
func (l *Locker) missed(batch []beat) {
	l.mu.Lock()
	defer l.mu.Unlock()
	again := time.Now().Add(l.opts.beatEvery() / 8)
	for _, b := range batch {
		if b.name.attempt == b.attempt && (b.name.state == held || b.name.state == waiting) {
			b.name.beatOut, b.name.beatDue = time.Time{}, again
			l.attend(b.name)
		}
	}
}

// beaten takes in the answer to one beat, unless it is for the past.
func (l *Locker) beaten(b beat, sent time.Time, r reply) {
	n := b.name
	l.mu.Lock()
	if n.attempt != b.attempt {
		l.mu.Unlock()
		return
	}
	var after func()
	switch {
	case (n.state == held || n.state == lingering) && r.kind == replyHeld:
		if d := sent.Add(l.opts.Lease - l.opts.margin()); d.After(n.grant.deadline) {
			n.grant.deadline = d
		}
		n.grant.others = r.others
		n.beatOut, n.beatDue = time.Time{}, sent.Add(l.opts.beatEvery())
		if h := l.opts.Hooks.Renewed; h != nil {
			after = func() { h(n.key) }
		}
	case n.state == held && b.hold && r.kind == replyDropped:
		l.lose(n)
		after = func() { l.hookLost(n.key) }
	case n.state == lingering && b.hold && r.kind == replyDropped:
		n.hold = nil
		l.askNext(n)
	case (n.state == waiting || n.state == asking) && r.kind == replyHeld:
		l.granted(n, r.epoch, r.others, sent, Remote)
	case n.state == waiting && r.kind == replyWaiting:
		if sent.After(n.bound) {
			n.bound = sent
		}
		n.beatOut, n.beatDue = time.Time{}, l.nextLook(r)
		l.attend(n)
	case n.state == waiting && r.kind == replyDropped:
		l.misheard(sent)
		l.askNext(n)
	}
	l.mu.Unlock()
	if after != nil {
		after()
	}
}

// lose ends the hold on a name whose lease is over or gone, and lets the next waiter ask.
func (l *Locker) lose(n *name) {
	n.hold.end(ErrLost)
	n.hold = nil
	l.giveBack(n, n.attempt)
	l.askNext(n)
}

func (l *Locker) hookLost(key string) {
	if h := l.opts.Hooks.Lost; h != nil {
		h(key)
	}
}

// giveBack releases an attempt in the background, until Redis answers or the
// lease is over anyway.
func (l *Locker) giveBack(n *name, attempt uint64) {
	l.background(func(ctx context.Context) error {
		_, err := l.server.release(ctx, n, attempt, 0, 0)
		return err
	})
}

// takeBack cancels an attempt in the background, likewise.
func (l *Locker) takeBack(n *name, attempt uint64) {
	if attempt == 0 {
		return
	}
	l.background(func(ctx context.Context) error { return l.server.cancel(ctx, n, attempt) })
}

// background does something until it succeeds or a lease has passed. It is
// called with Locker.mu.
func (l *Locker) background(do func(context.Context) error) {
	l.cleaning.Add(1)
	go func() {
		defer l.cleaning.Done()
		ctx, cancel := context.WithTimeout(context.Background(), l.opts.Lease)
		defer cancel()
		for {
			try, cancelTry := context.WithTimeout(ctx, l.opts.beatEvery())
			err := do(try)
			cancelTry()
			if err == nil {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(l.opts.beatEvery() / 8):
			}
		}
	}()
}
