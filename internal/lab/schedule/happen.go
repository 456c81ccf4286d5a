package schedule

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// happen makes an event happen, and waits until all are at rest again.
func (r *run) happen(ctx context.Context, c Choice) error {
	r.endSegment()
	entry := r.note(Entry{Choice: c.String(), event: c.Event, customer: c.Customer})
	if c.Event != Arrive {
		r.used++
	}
	if c.Event == Lose {
		r.person(c.Customer).lose = true
		return nil
	}
	if err := r.inject(ctx, c); err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	if c.Event != Arrive {
		r.version++
		r.changed[0] = r.version
	}
	r.segment = time.Now()
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

func (r *run) inject(ctx context.Context, c Choice) error {
	var p *person
	if c.Customer != 0 {
		p = r.person(c.Customer)
	}
	switch c.Event {
	case Wait:
		return r.stage.sleep(ctx, r.oneLease())
	case Arrive:
		return r.arrive(ctx, p)
	case Pause:
		if err := p.shop.Pause(); err != nil {
			return err
		}
		err := r.stage.sleep(ctx, r.oneLease())
		if resumed := p.shop.Resume(); err == nil {
			err = resumed
		}
		time.Sleep(afterPause)
		return err
	case Kill:
		return r.kill(ctx, p)
	case Cut:
		p.cut = true
		if err := p.shop.CutOff(); err != nil {
			return err
		}
		return r.stage.sleep(ctx, r.oneLease())
	case Forget:
		server := r.lane.redis
		if r.of.NeedsQuorum {
			server = r.lane.quorum[0]
		}
		return server.Del(ctx, lockKeys(r.item, r.of.State)...).Err()
	case FlushAll:
		return r.lane.redis.FlushAll(ctx).Err()
	case Failover:
		return r.lane.failOver(ctx)
	}
	return fmt.Errorf("no event %q", c.Event)
}

// oneLease is long enough for a lease to end, and for what has ended with it to be returned by a
// shop that looks for it every quarter of a lease.
func (r *run) oneLease() time.Duration {
	switch {
	case r.of.NeedsEtcd:
		return r.stage.oneLease() + etcdLate
	case r.of.State.Remaining == "":
		return r.stage.oneLease()
	}
	return r.stage.oneLease() + r.stage.lease/2
}

// etcdLate is how much later than its lease a key can vanish: etcd looks for leases that are over twice a
// second.
const etcdLate = 600 * time.Millisecond

// afterPause is how long a shop that has been paused is given to do what it is late with.
const afterPause = 15 * time.Millisecond

// kill ends a customer's shop. MySQL gives back the row when it notices the end of the connection,
// which takes it a moment.
func (r *run) kill(ctx context.Context, p *person) error {
	if err := p.shop.Kill(); err != nil {
		return err
	}
	http.DefaultClient.CloseIdleConnections() // those to the shop are of no use any more
	r.lane.restart(p.shop)
	p.state, p.heard = moving, time.Now()
	if p.answer != "" { // there is no connection of the customer's that could end
		p.state, p.row = ended, noRow
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	if r.rowHolder(nil, exclusiveRow) != nil {
		return nil // another one has it
	}
	for range 500 {
		held, err := rowIsHeld(ctx, r.stage.store.Pool(), r.item)
		if err != nil || !held {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
	return fmt.Errorf("MySQL still holds the row of a connection that has ended")
}
