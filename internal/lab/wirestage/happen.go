package wirestage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/seen"
	"stocklock/internal/lab/service"
	"stocklock/internal/lab/stage"
	"stocklock/internal/lab/wire"
)

// eventOptions are the ways in which an event can happen now.
func (r *run) eventOptions(e schedule.Event) (all []stage.Option) {
	add := func(c schedule.Customer) {
		all = append(all, stage.Option{Choice: schedule.Choice{Event: e, Customer: c}, Touches: schedule.Everything("")})
	}
	leased := r.lock.Locked() && r.lock.TTLMS > 0
	if !e.HitsOne() {
		if e.Forgets() && (r.keeps || r.plan.Everything) || e == schedule.Wait && r.ending != "" && (r.plan.Everything || r.ending != r.main || !r.stage.renews) {
			add(0)
		}
		return all
	}
	for _, b := range r.buyers {
		holds := leased && (r.plan.Everything || r.owner == b.customer)
		switch {
		case b.state == ended:
		case e == schedule.Pause && holds, e == schedule.Withhold && holds && r.stage.renews,
			e == schedule.Kill && (r.plan.Everything || b.sent > 0),
			e == schedule.Lose && b.atStep():
			add(b.customer)
		}
	}
	return all
}

// afterPause is how long a process that was stopped is given to do what it is late with.
const afterPause = 15 * time.Millisecond

// happen makes an event happen, and waits until all are at rest again.
func (r *run) happen(ctx context.Context, c schedule.Choice) error {
	r.note(schedule.Entry{Choice: c})
	r.used++
	r.strike(c)
	defer func() { r.eventAt = time.Now() }()
	var b *buyer
	if c.Customer != 0 {
		b = r.buyer(c.Customer)
	}
	err := error(nil)
	switch c.Event {
	case schedule.Lose:
		b.mu.Lock()
		b.lose = true
		b.mu.Unlock()
		return nil
	case schedule.Wait:
		r.other = r.other || r.ending != r.main
		err = r.endKey(ctx, r.ending)
	case schedule.FlushAll, schedule.Evict, schedule.Restart, schedule.Failover:
		err = r.breakRedis(ctx, c.Event)
	case schedule.Withhold:
		r.withhold(c.Customer)
		err = r.endKey(ctx, r.main)
		r.withhold(0)
	case schedule.Pause:
		if err = b.process.Pause(); err != nil {
			break
		}
		err = r.endKey(ctx, r.main)
		if resumed := b.process.Resume(); err == nil {
			err = resumed
		}
		time.Sleep(afterPause)
	case schedule.Kill:
		err = r.kill(ctx, b)
	default:
		err = fmt.Errorf("%s is not for a service", c.Event)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	for _, b := range r.buyers {
		b.tries = nil
	}
	return r.rest(ctx, 0, c.Event, "")
}

// breakRedis has Redis lose what it has. Where the sale has nothing there that could be lost, it met nothing.
func (r *run) breakRedis(ctx context.Context, e schedule.Event) error {
	own, err := r.ownKeys(ctx)
	if err != nil {
		return err
	}
	if len(own) == 0 {
		return fmt.Errorf("%w: the sale has nothing in Redis here", ErrUnmet)
	}
	switch e {
	case schedule.FlushAll:
		return r.stage.on.Redis().Do(ctx, "FLUSHALL").Err
	case schedule.Evict:
		if n := r.stage.on.Processes[0].Redis.Database(); n != 0 {
			return fmt.Errorf("an eviction is played in database 0 of Redis, and the service uses %d", n)
		}
		_, err := r.stage.on.Evict(ctx, own)
		return err
	case schedule.Failover:
		err = r.stage.on.FailOver(ctx)
	default:
		err = r.stage.on.RestartRedis(ctx)
	}
	// Who was held at a request has lost its connection, and does not send that one any more.
	for i, b := range r.buyers {
		r.stage.cold[i] = true
		b.queue = slices.DeleteFunc(b.queue, func(h *held) bool {
			if h.Server == wire.Redis {
				h.release <- false
			}
			return h.Server == wire.Redis
		})
		b.heard = time.Now()
		if b.state != ended && b.state != absent && !b.atStep() && b.state != onRow {
			b.state = moving
		}
	}
	return err
}

// kill ends a customer's process as kill -9 does. It is started again before anybody else buys there.
func (r *run) kill(ctx context.Context, b *buyer) error {
	r.stage.dirty[b.customer-'A'] = true
	r.mu.Lock()
	r.dead[b.customer-'A'] = true
	r.mu.Unlock()
	if err := b.process.Kill(); err != nil {
		return err
	}
	for _, h := range b.queue { // their connections are gone
		h.release <- false
	}
	b.queue = nil
	for _, h := range append(b.parked, b.flying) {
		if h != nil && h.entry >= 0 {
			r.entries[h.entry].Note = "no answer came"
		}
	}
	b.stopAsking()
	<-b.done
	maps.Copy(b.tx, b.named)
	for conn := range b.tx {
		conn.Cut()
		if err := seen.ConnGone(ctx, r.stage.on.DB, conn.Thread); err != nil {
			return err
		}
	}
	b.flying, b.parked, b.state = nil, nil, ended
	clear(b.tx)
	clear(b.named)
	if b.reply == nil {
		b.reply = &service.Reply{Outcome: load.Unknown}
	}
	return nil
}
