package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/wire"
	"stocklock/internal/lab/words"
)

func (r *serviceRun) inapplicable(e schedule.Event) words.Text {
	if e == schedule.Cut || e == schedule.Forget || e == schedule.Lag || e == schedule.DBFailover {
		return words.Of("inapplicable.shops")
	}
	return words.Text{}
}

func (r *serviceRun) canHappen(e schedule.Event) bool {
	if e == schedule.Wait {
		// Of what a search has ended one after the other, all may end in the first wait of its own time.
		again := r.plan.Everything && !r.plan.Early && len(r.chosen) > 0 && r.chosen[len(r.chosen)-1].Event == schedule.Wait
		return again || r.ending != "" && (r.plan.Everything || r.ending != r.main || !r.renews)
	}
	return e.Forgets() && (r.keeps || r.plan.Everything)
}

func (r *serviceRun) canHit(e schedule.Event, b *buyer) bool {
	holds := len(r.leases(b.customer)) > 0 || r.plan.Everything && len(r.leases(0)) > 0
	switch {
	case b.state == ended || b.state == absent:
		return false
	case e == schedule.Pause:
		return holds
	case e == schedule.Withhold:
		return holds && r.renews
	case e == schedule.Kill:
		return r.plan.Everything || b.last != nil
	}
	return e == schedule.Lose && b.atStep()
}

// eventTouches is everything, as long as the wire does not say what an event can change.
func (r *serviceRun) eventTouches(e schedule.Event, _ *buyer) []schedule.Touch {
	if e == schedule.Lose {
		return nil // the customer's next step does
	}
	return schedule.Everything("")
}

// passLease has leases end: all those of who is stopped, or the first that ends.
func (r *serviceRun) passLease(ctx context.Context, c schedule.Choice) (err error) {
	all := r.leases(c.Customer)
	switch {
	case c.Event == schedule.Wait:
		all = []string{r.ending}
	case len(all) == 0:
		all = r.leases(0)
	}
	r.other = r.other || !slices.Contains(all, r.main)
	began := time.Now()
	for _, name := range all {
		err = cmp.Or(err, r.endKey(ctx, name, r.plan.Early))
	}
	r.waited(time.Since(began))
	return err
}

// inject makes an event happen that is not the same in our shop.
func (r *serviceRun) inject(ctx context.Context, c schedule.Choice) error {
	if c.Event != schedule.Withhold {
		return r.breakRedis(ctx, c.Event)
	}
	r.withhold(c.Customer)
	defer r.withhold(0)
	return r.passLease(ctx, c)
}

// breakRedis has Redis lose what it has. Where the sale has nothing there that could be lost, it met nothing.
func (r *serviceRun) breakRedis(ctx context.Context, e schedule.Event) error {
	all, err := r.keysNow(ctx)
	if err != nil {
		return err
	}
	own := r.ownAmong(all)
	if len(own) == 0 {
		return errNothing
	}
	switch e {
	case schedule.FlushAll:
		return r.service.on.Redis().Do(ctx, "FLUSHALL").Err
	case schedule.Evict:
		if n := r.service.on.Processes[0].Redis.Database(); n != 0 {
			return fmt.Errorf("an eviction is played in database 0 of Redis, and the service uses %d", n)
		}
		met, err := r.service.on.Evict(ctx, own)
		if err == nil && !met { // they have ended since
			err = errNothing
		}
		return err
	case schedule.Failover:
		err = r.service.on.FailOver(ctx)
	default:
		err = r.service.on.RestartRedis(ctx)
	}
	// Who was held at a request has lost its connection, and does not send that one any more.
	for i, b := range r.buyers {
		r.service.cold[i] = true
		b.queue = slices.DeleteFunc(b.queue, func(h *held) bool {
			if h.Server == wire.Redis {
				h.drop()
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

// killed ends what was left of a process. It is started again before anybody else buys there.
func (r *serviceRun) killed(ctx context.Context, b *buyer) (conns []uint64, err error) {
	c := r.of(b)
	r.service.dirty[b.customer-'A'] = true
	r.dead[b.customer-'A'].Store(true)
	c.stopAsking()
	select {
	case <-c.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	conns = slices.AppendSeq(slices.Collect(maps.Keys(b.tx)), maps.Keys(b.named))
	for _, thread := range conns {
		r.conns[thread].Cut()
	}
	return conns, nil
}

// ErrUnmet is in the chain of an error about a fault that met nothing: the sale had ended, or kept no lease. It is none of a
// sale that waits: that goes on, or nothing is known of the place.
var ErrUnmet = errors.New("the fault met nothing")

var errNothing = fmt.Errorf("%w: the sale has nothing in Redis here", ErrUnmet)

// Fault has one customer make so many steps, injects an event that hits it, has the other customer buy, and
// then the first one go on. With inTime, leases end by themselves.
func (s *Service) Fault(ctx context.Context, event schedule.Event, steps int, inTime bool) (schedule.Record, error) {
	what := schedule.Choice{Event: event}
	if event.HitsOne() {
		what.Customer = 'A'
	}
	p := s.Plan(2, event)
	p.Everything, p.Early = true, !inTime
	// Who was there when a server broke shows little: see [schedule.Record.Undecided]. Who is held while another one misses
	// an answer can be overdue.
	p.Late = inTime || event.Forgets() || event == schedule.Lose
	return s.Play(ctx, p, func() explore.Chooser {
		made, happened := 0, false
		return func(next explore.Next) (int, error) {
			if !happened {
				first, hit := next.Of('A'), next.Index(what)
				switch {
				case made == steps && hit >= 0:
					happened = true
					return hit, nil
				case made == steps && first >= 0, slices.Contains(next.Ended, 'A'):
					return 0, ErrUnmet
				case first >= 0: // also what looks like a poll: nobody else goes on
					made++
					return first, nil
				}
				return explore.LetTimePass, nil
			}
			of := schedule.Customer('B')
			if event == schedule.Lose { // who has lost an answer goes on at once
				of = 'A'
			}
			for _, c := range []schedule.Customer{of, 'A' + 'B' - of} {
				if i := next.Of(c); i >= 0 && !next.Options[i].Retry && !next.Options[i].RowHeld {
					return i, nil
				}
			}
			return explore.LetTimePass, nil
		}
	})
}

// longestOutwait bounds how long a customer is held for another one whose wait is to end.
const longestOutwait = 10 * time.Second

// ErrOutlasted says that a customer still waited for a lock when its holder had to go on.
var ErrOutlasted = errors.New("the other customer waits for longer than the first was held")

// Outwait has one customer make so many steps, and then the other one try until it does not wait for the first one any
// more, and buy. Then the first one goes on. The error is in [ErrUnmet] where nobody waits, and in [ErrOutlasted] where the
// wait is longer than half of a lease: the first one's would end.
func (s *Service) Outwait(ctx context.Context, steps int) (schedule.Record, error) {
	held := longestOutwait
	if s.lease > 0 {
		held = min(held, s.lease/2)
	}
	return s.Play(ctx, s.Plan(2), func() explore.Chooser {
		made, waits, since := 0, false, time.Time{}
		return func(next explore.Next) (int, error) {
			first, second := next.Of('A'), next.Of('B')
			switch {
			case made < steps && first >= 0:
				made++
				return first, nil
			case made < steps && slices.Contains(next.Ended, 'A'):
				return 0, ErrUnmet
			case made < steps:
				return explore.LetTimePass, nil
			case since.IsZero():
				since = time.Now()
			}
			switch {
			case slices.Contains(next.Ended, 'B') && !waits:
				return 0, ErrUnmet
			case slices.Contains(next.Ended, 'B'):
				return next.ByDefault(), nil
			case time.Since(since) > held:
				return 0, ErrOutlasted
			case second < 0 && !slices.Contains(next.Timed, 'B'):
				return 0, ErrUnmet // it waits for a row, or for a message
			}
			if second < 0 || next.Options[second].Retry { // how often one polls in that time is no part of the schedule
				waits = true
				return explore.LetTimePass, nil
			}
			return second, nil
		}
	})
}
