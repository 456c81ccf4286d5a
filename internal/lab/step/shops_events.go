package step

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/seen"
	"stocklock/internal/lab/words"
	"stocklock/internal/redisconn"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/declared"
)

func (r *shopsRun) inapplicable(e schedule.Event) words.Text {
	return Inapplicable(r.of, r.plan.Sales, e)
}

func (r *shopsRun) canHappen(e schedule.Event) bool {
	if e == schedule.Failover && r.slot.failedOver() {
		return false
	}
	if r.plan.Everything {
		return true
	}
	switch e {
	case schedule.Wait:
		return r.lock.Locked() || (r.plan.LocalClock || r.timed) && slices.ContainsFunc(r.buyers, func(b *buyer) bool { return b.state != absent })
	case schedule.Lag:
		return true
	case schedule.Forget:
		return r.lock.Locked() || r.lock.Kept != ""
	}
	return len(r.chosen) > 0
}

func (r *shopsRun) canHit(e schedule.Event, b *buyer) bool {
	switch {
	case e == schedule.Arrive:
		return b.state == absent
	case e == schedule.Lose && b.state == absent:
		return !r.of.AtPoints() // what is lost is the answer to the first step
	case e == schedule.Lose && r.of.AtPoints() && b.atStep() && b.next().Server != labmode.MySQLServer:
		return false // the step is no single request
	case b.state == absent || b.state == ended:
		return false
	}
	if r.plan.Everything {
		return true
	}
	switch e {
	case schedule.Lose:
		return b.atStep()
	case schedule.Pause:
		return (r.lock.Locked() || r.timed || r.of.Lease.Kept == declared.LeaseInMySQL) && b.last != nil
	case schedule.Cut:
		// A customer that is held after its last look at the lock is late with or without Redis, as
		// after pause.
		looks := b.next().Server != labmode.MySQLServer || b.request(b.next()).IsLook(r.schema)
		return r.lock.Locked() && b.last != nil && b.atStep() && looks && len(b.tx) == 0
	}
	return b.last != nil
}

// eventTouches is what an event touches that hits b, or all where b is nil.
func (r *shopsRun) eventTouches(e schedule.Event, b *buyer) []schedule.Touch {
	switch {
	case e == schedule.Arrive && r.plan.OneShop:
		return schedule.Everything("") // it can share what is under way in its process
	case e == schedule.Arrive || e == schedule.Lose:
		return nil // the customer's next step does
	case e == schedule.Kill && b.state == onRow, e == schedule.DBFailover:
		return schedule.Everything(labmode.MySQLServer) // MySQL may carry out what waits
	case e == schedule.Lag: // what is committed after it is not seen
		return []schedule.Touch{{Server: labmode.MySQLServer, Does: schedule.Reads}}
	case e == schedule.Kill: // its connections end
		return r.schema.Locks(b.holds())
	case e.Forgets():
		return schedule.Everything(r.lockServer())
	case r.plan.LocalClock:
		return schedule.Everything("")
	}
	return append(schedule.Everything(r.lockServer()), schedule.Touch{Server: labmode.MySQLServer, Thing: schedule.Clock, Does: schedule.Writes})
}

func (r *shopsRun) lockServer() string {
	switch {
	case r.of.NeedsEtcd:
		return labmode.EtcdServer
	case r.of.NeedsQuorum:
		return labmode.QuorumServer
	}
	return labmode.RedisServer
}

// inject makes an event happen that is not the same at the wire.
func (r *shopsRun) inject(ctx context.Context, c schedule.Choice) error {
	switch c.Event {
	case schedule.Cut:
		s := r.at(r.buyer(c.Customer))
		s.cut = true
		if err := s.shop.CutOff(); err != nil {
			return err
		}
		return r.passLease(ctx, c)
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
		return r.slot.FailOver(context.WithoutCancel(ctx)) // half a failover is not repaired
	case schedule.Lag:
		return r.slot.database.lag(ctx)
	case schedule.DBFailover: // nobody holds anything there any more
		for _, s := range r.customers {
			s.letGoOf()
			s.ordered, s.conn = false, 0
			for _, h := range append(s.underWay(), s.queue...) {
				h.conn = 0
			}
		}
		return r.slot.database.failOver(context.WithoutCancel(ctx))
	}
	return fmt.Errorf("no event %q", c.Event)
}

// passLease lets a lease end, and what has ended with it be returned by a shop that looks for it every quarter
// of a lease.
func (r *shopsRun) passLease(ctx context.Context, c schedule.Choice) error {
	if r.plan.Early && c.Event == schedule.Wait && r.onlyInRedis() {
		return r.endEarly(ctx)
	}
	r.waited(r.oneLease())
	return r.shops.sleep(ctx, r.oneLease())
}

// onlyInRedis says whether the lease is that of a key and of nothing else: no process goes by it, and nobody renews it.
func (r *shopsRun) onlyInRedis() bool {
	elsewhere := r.unseen || r.timed || r.keepsElsewhere() || r.of.NeedsQuorum || r.plan.LocalClock || r.plan.OneShop
	return r.lock.TTLMS > 0 && !r.renews && !elsewhere && len(r.of.State.Locks) == 0
}

func (r *shopsRun) endEarly(ctx context.Context) error {
	for _, key := range heldKeys(r.items, r.of.State) {
		if err := r.slot.Redis().Client.Do(ctx, "PEXPIRE", key, 1).Err; err != nil {
			return fmt.Errorf("end the lease: %w", err)
		}
	}
	ended, err := seen.Until(ctx, time.Millisecond, func() (bool, error) {
		now, err := r.askLock(ctx)
		return !now.Locked(), err
	})
	if err == nil && !ended {
		err = context.Cause(ctx)
	}
	return err
}

// oneLease is how long passLease waits: until the lease has ended, wherever it is kept.
func (r *shopsRun) oneLease() time.Duration {
	switch {
	case r.of.NeedsEtcd:
		return r.slot.oneLease() + etcdLate
	case r.of.Lease.Kept != declared.LeaseInMySQL:
		return r.slot.oneLease()
	}
	return r.slot.oneLease() + r.lease/2
}

// etcdLate is how much later than its lease a key can vanish: etcd looks for leases that are over twice a
// second.
const etcdLate = 600 * time.Millisecond

func (r *shopsRun) killed(_ context.Context, b *buyer) ([]uint64, error) {
	http.DefaultClient.CloseIdleConnections() // those to the shop are of no use any more
	r.slot.restart(r.at(b).shop)
	if len(b.holds()) == 0 {
		return nil, nil
	}
	return []uint64{r.at(b).conn}, nil
}
