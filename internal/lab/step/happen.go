package step

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"stocklock/internal/lab/schedule"
)

// happen makes an event happen, and waits until all are at rest again.
func (r *run) happen(ctx context.Context, c schedule.Choice) error {
	r.endSegment()
	entry := r.note(schedule.Entry{Choice: c})
	if c.Event != schedule.Arrive {
		r.used++
	}
	r.takeAway(c)
	defer func() { r.eventAt = time.Now() }()
	if c.Event == schedule.Lose {
		r.buyer(c.Customer).lose = true
		return nil
	}
	if err := r.bringAbout(ctx, c); err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	if c.Event != schedule.Arrive {
		r.change(r.changed, 0)
	}
	if c.Event.Passes() || c.Event == schedule.Kill || c.Event == schedule.Failover { // they take their time
		r.beginSegment()
	}
	if c.Event.Forgets() {
		r.forgotten = entry
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	if err := r.look(ctx, 0, c.Event); err != nil {
		return err
	}
	if err := r.recheck(ctx); err != nil {
		return err
	}
	return r.observe(ctx, entry)
}

// takeAway notes whom an event takes away, or finds there when it breaks a server.
func (r *run) takeAway(c schedule.Choice) {
	for _, b := range r.buyers {
		hit := b.customer == c.Customer && (c.Event == schedule.Kill || c.Event == schedule.Lose)
		if hit || c.Event.Forgets() && b.state != absent {
			r.takenAway = append(r.takenAway, b.customer)
		}
	}
}

// afterPause is how long a process that was stopped is given to do what it is late with.
const afterPause = 15 * time.Millisecond

func (r *run) bringAbout(ctx context.Context, c schedule.Choice) error {
	switch c.Event {
	case schedule.Arrive:
		r.come(ctx, r.buyer(c.Customer))
		return nil
	case schedule.Wait:
		return r.passLease(ctx, c)
	case schedule.Pause:
		p := r.buyer(c.Customer).process
		if err := p.Pause(); err != nil {
			return err
		}
		err := r.passLease(ctx, c)
		r.resumed[c.Customer] = time.Now()
		err = cmp.Or(err, p.Resume())
		time.Sleep(afterPause)
		return err
	case schedule.Kill:
		return r.kill(ctx, r.buyer(c.Customer))
	}
	return r.inject(ctx, c)
}

// kill ends a customer's process as kill -9 does. MySQL frees what its connections held when it notices the
// end of them, which takes it a moment.
func (r *run) kill(ctx context.Context, b *buyer) error {
	b.dead = true
	if err := b.process.Kill(); err != nil {
		return err
	}
	for _, h := range b.queue { // their connections are gone
		h.drop()
	}
	b.queue = nil
	r.noAnswer(b)
	if b.state != ended {
		b.state, b.heard = moving, time.Now()
	}
	r.endIfDone(b) // there may be no connection that could tell
	conns, err := r.killed(ctx, b)
	if err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	b.letGoOf()
	for _, conn := range conns {
		if err := r.hungUp(ctx, conn); err != nil {
			return err
		}
	}
	return nil
}
