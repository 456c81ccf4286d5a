package stage

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/seen"
	"stocklock/internal/redisconn"
)

// happen makes an event happen, and waits until all are at rest again.
func (r *run) happen(ctx context.Context, c schedule.Choice) error {
	r.endSegment()
	entry := r.note(schedule.Entry{Choice: c})
	if c.Event != schedule.Arrive {
		r.used++
	}
	if c.Event == schedule.Lose {
		r.buyer(c.Customer).lose = true
		return nil
	}
	if err := r.inject(ctx, c); err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	if c.Event != schedule.Arrive {
		r.version++
		r.changed[0] = r.version
	}
	if c.Event.Passes() || c.Event == schedule.Kill || c.Event == schedule.Failover { // they take their time
		r.segment = time.Now()
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

func (r *run) inject(ctx context.Context, c schedule.Choice) error {
	var b *buyer
	if c.Customer != 0 {
		b = r.buyer(c.Customer)
	}
	switch c.Event {
	case schedule.Wait:
		return r.sleepLease(ctx)
	case schedule.Arrive:
		return r.arrive(ctx, b)
	case schedule.Pause:
		if err := b.shop.Pause(); err != nil {
			return err
		}
		err := r.sleepLease(ctx)
		r.resumed[c.Customer] = time.Now()
		if resumed := b.shop.Resume(); err == nil {
			err = resumed
		}
		time.Sleep(afterPause)
		return err
	case schedule.Kill:
		return r.kill(ctx, b)
	case schedule.Cut:
		b.cut = true
		if err := b.shop.CutOff(); err != nil {
			return err
		}
		return r.sleepLease(ctx)
	case schedule.Forget:
		server := r.slot.Redis()
		if r.of.NeedsQuorum {
			server = r.slot.Quorum[0]
		}
		forget := redisconn.Command{"DEL"}
		for _, key := range lockKeys(r.items, r.of.State) {
			forget = append(forget, key)
		}
		return server.Client.Do(ctx, forget...).Err
	case schedule.FlushAll:
		return r.slot.Redis().Client.Do(ctx, "FLUSHALL").Err
	case schedule.Failover:
		return r.slot.failOver(ctx)
	case schedule.Lag:
		return r.slot.database.lag(ctx)
	case schedule.DBFailover:
		return r.failOver(ctx)
	}
	return fmt.Errorf("no event %q", c.Event)
}

// failOver replaces the primary of MySQL. Nobody holds anything there any more.
func (r *run) failOver(ctx context.Context) error {
	for _, b := range r.buyers {
		b.tx, b.named, b.ordered, b.conn, b.held.Conn = nil, nil, false, 0, 0
	}
	return r.slot.database.failOver(ctx)
}

// oneLease is long enough for a lease to end, and for what has ended with it to be returned by a
// shop that looks for it every quarter of a lease.
func (r *run) oneLease() time.Duration {
	switch {
	case r.of.NeedsEtcd:
		return r.slot.oneLease() + etcdLate
	case !r.of.State.Scattered():
		return r.slot.oneLease()
	}
	return r.slot.oneLease() + r.slot.lease/2
}

// sleepLease lets a lease end.
func (r *run) sleepLease(ctx context.Context) error {
	r.waited(r.oneLease())
	return r.stage.sleep(ctx, r.oneLease())
}

// etcdLate is how much later than its lease a key can vanish: etcd looks for leases that are over twice a
// second.
const etcdLate = 600 * time.Millisecond

// afterPause is how long a shop that has been paused is given to do what it is late with.
const afterPause = 15 * time.Millisecond

// kill ends a customer's shop. MySQL frees what its connection held when it notices the end of that, which
// takes it a moment.
func (r *run) kill(ctx context.Context, b *buyer) error {
	if err := b.shop.Kill(); err != nil {
		return err
	}
	http.DefaultClient.CloseIdleConnections() // those to the shop are of no use any more
	r.slot.restart(b.shop)
	b.state, b.heard = moving, time.Now()
	held := len(b.holds()) > 0
	if b.answer != "" { // there is no connection of the customer's that could end
		b.ended()
	}
	if err := r.settle(ctx); err != nil || !held {
		return err
	}
	return seen.ConnGone(ctx, r.slot.database.store.Pool(), b.conn)
}
