package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/seen"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/declared"
)

// maxTries is how often a run is made whose tries fail. After every triesWithLease that the machine was too
// slow for, its lease is doubled. It is doubled at once where the machine may have kept a lease from being renewed.
const (
	maxTries       = 10
	triesWithLease = 3
)

// ErrEndless is in the chain of an error about sales that go on without end.
var ErrEndless = errors.New("the sales do not end")

// ErrSilent is in the chain of an error about sales of which nothing was heard for too long.
var ErrSilent = errors.New("nothing is heard of the sales")

// errSharedEnded is about a run on shops of which one has ended, and that other runs use, too. One of these can have ended it.
var errSharedEnded = errors.New("a shop has ended that other runs use, too")

// How many steps a run may have where its plan does not say so: maxSteps, or one for each polledEvery of its patience. A sale
// that polls MySQL while a lease passes sends that many.
const (
	maxSteps    = 5000
	polledEvery = time.Millisecond
)

// manyError is about sales that have sent more than that.
type manyError struct{ words.Text }

// Unwrap returns what it says.
func (e manyError) Unwrap() error { return e.Text }

func (manyError) Is(target error) bool { return target == ErrEndless }

// pairLeases is how much longer leases are, and the time a sale waits for its lock, where a server of MySQL is
// stopped or waited for: none is to end by that.
const pairLeases = 4

// calmDown is how much longer each time a run waits before it is made again.
const calmDown = 50 * time.Millisecond

// rehearsalError is a rehearsal that failed: the strategy does not sell.
type rehearsalError struct{ error }

func (e rehearsalError) Unwrap() error { return e.error }

// How often an order of steps, a silent run, and a rehearsal, is tried before it is said that it cannot be. A machine
// that stalls can end more than one rehearsal.
const (
	sureTries      = 2
	rehearsalTries = 5
)

// Play runs one schedule on a fresh item and a free slot. A run in which a lease may have ended
// although none was to pass is made again, on the next slot that is free, and in the end with longer leases.
func (s *Shops) Play(ctx context.Context, p Plan, choose func() explore.Chooser) (schedule.Record, error) {
	of, err := s.shop.Any(p.Strategy)
	if err != nil {
		return schedule.Record{}, err
	}
	if p.Baskets = p.Baskets || of.OnlyBaskets; p.Baskets && of.Baskets == nil {
		return schedule.Record{}, fmt.Errorf("%w: %s sells one item at a time", explore.ErrCannot, of.Name)
	}
	kind := kindFor(p.Events)
	kind.etcd, kind.quorum, kind.reserving = of.NeedsEtcd, of.NeedsQuorum, p.Reservations
	kind.lease = s.options.Lease
	if kind.crossing = p.Baskets && len(p.Events) == 0; kind.crossing {
		kind.lease *= 10
	}
	if kind.Paired {
		kind.lease *= pairLeases
	}
	slots, spoiled, silent := s.Slots(p.Events), 0, 0
	for try := 1; ; try++ {
		from, err := s.poolOf(kind, slots)
		if err != nil {
			return schedule.Record{}, err
		}
		record, err := s.playOnFree(ctx, from, p, of, choose())
		if silent++; p.MaxSilence == 0 || !errors.Is(err, ErrSilent) {
			silent = 0
		}
		endless := silent == sureTries || errors.As(err, new(manyError)) || errors.As(err, new(UnheldError)) ||
			errors.As(err, new(rehearsalError)) && (try >= rehearsalTries || errors.Is(err, ErrEndless))
		if p.MaxSteps == 0 && errors.As(err, new(manyError)) { // others may end
			return record, fmt.Errorf("%w: %w", explore.ErrGivenUp, err)
		}
		final := err == nil || errors.Is(err, explore.ErrStop) || errors.Is(err, explore.ErrCannot) && try >= sureTries || endless
		if final || ctx.Err() != nil {
			return record, err
		}
		if try == maxTries {
			return schedule.Record{}, fmt.Errorf("%w: %s, tried %d times: %w", explore.ErrGivenUp, p.Strategy, try, err)
		}
		if errors.Is(err, errSharedEnded) {
			kind.Alone, slots = true, cmp.Or(s.options.OwnSlots, ownSlots)
		}
		slow, is := errors.AsType[slowError](err)
		if is && !slow.doubts {
			spoiled++
		}
		if slow.doubts || spoiled == triesWithLease {
			spoiled = 0
			kind.lease *= 2
			if kind.Alone {
				slots = 1
			}
		}
		if err := seen.Pause(ctx, time.Duration(try)*calmDown); err != nil {
			return schedule.Record{}, err
		}
	}
}

// playOnFree makes one try of a run. Its error says which shops have ended.
func (s *Shops) playOnFree(ctx context.Context, from *pool, p Plan, of declared.Strategy, choose explore.Chooser) (schedule.Record, error) {
	var l *slot
	select {
	case l = <-from.slots:
	case <-ctx.Done():
		return schedule.Record{}, context.Cause(ctx)
	}
	defer func() { from.slots <- l }()
	record, err := s.playOn(ctx, l, p, of, choose)
	if err == nil || errors.Is(err, explore.ErrStop) {
		return record, err
	}
	l.starting.Wait()
	if dead := l.dead(); dead != "" {
		err = fmt.Errorf("%w: %s", err, dead)
	}
	return record, err
}

func (s *Shops) playOn(ctx context.Context, l *slot, p Plan, of declared.Strategy, choose explore.Chooser) (schedule.Record, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if p.Reservations { // a sweep ends what is overdue of all
		s.reserving.Lock()
		defer s.reserving.Unlock()
	}
	if err := l.restarted(ctx); err != nil {
		return schedule.Record{}, err
	}
	processes := l.processes()
	if !p.Reservations { // all come at the start, so that no first step has to be known
		if err := s.rehearse(ctx, l, of, p); err != nil {
			return schedule.Record{}, rehearsalError{err}
		}
	}
	s.turns <- struct{}{}
	defer func() { <-s.turns }()
	number, units := 1, int64(p.Customers-1)
	if p.Baskets {
		number, units = basketItems, int64(p.Customers)
	}
	if p.Reservations {
		units, p.Requests = reservableUnits, reserving(p.Customers)
		if err := l.database.sweepBefore(ctx); err != nil {
			return schedule.Record{}, err
		}
	}
	items := make([]uint64, number)
	for i := range items {
		var err error
		if items[i], err = l.database.newItem(ctx, of, units); err != nil {
			return schedule.Record{}, err
		}
	}
	if err := l.prepare(ctx, p); err != nil {
		return schedule.Record{}, err
	}
	schema, err := s.schemaFor(ctx, l.database.store, of.Name)
	if err != nil {
		return schedule.Record{}, err
	}
	r := s.newRun(l, p, of, schema, units, items)
	var ids []string
	for _, b := range r.buyers {
		ids = append(ids, b.id)
	}
	unfollow := s.reports.follow(l.name, r.items, ids, func(report heldReport) {
		if report.Hold == 0 && len(r.messages) > cap(r.messages)/2 {
			return // what the shops do on their own is shown, not needed
		}
		r.messages <- report
	})
	arriving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	if p.Reservations {
		for _, b := range r.buyers {
			r.come(arriving, b)
		}
	}
	record, err := r.play(ctx, choose)
	unfollow()
	r.letGo()
	if p.Reservations { // what is reserved later would be overdue in the next run
		defer time.AfterFunc(restLimit, end).Stop()
		r.sending.Wait()
	}
	unanswered := slices.ContainsFunc(r.buyers, func(b *buyer) bool { return b.answer == load.NoAnswer }) // the end of a process is noticed later
	if err == nil && l.shared && (unanswered || slices.ContainsFunc(processes, over)) {
		err = errSharedEnded
	}
	return record, err
}

func (s *Shops) newRun(l *slot, p Plan, of declared.Strategy, schema schedule.Schema, units int64, items []uint64) *shopsRun {
	r := &shopsRun{run: newRun(p, schema, units, pace{
		lease: l.lease, strict: true, renews: of.Standing(declared.Renews) == declared.Has, leased: of.Lease.Kept == declared.LeaseInMySQL, certain: l.lease >= certainFrom*s.options.Lease,
		patience: max(l.patience(), p.MaxSilence), restLimit: cmp.Or(p.MaxSilence, restLimit), lookLimit: restLimit, starved: &s.starved,
	}), shops: s, slot: l, of: of, items: items}
	r.run.source, r.unseen = r, of.AtPoints()
	run := s.runs.Add(1)
	for i, c := range schedule.Customers(p.Customers) {
		if p.OneShop {
			i = 0
		}
		lines := slices.Clone(items)
		if (c-'A')%2 == 1 {
			slices.Reverse(lines)
		}
		b := newBuyer(c, fmt.Sprintf("step-%d-%s", run, c), l.Shops[i])
		if !p.Reservations {
			b.first = s.firstStep(p.Strategy, lines[0])
		}
		r.buyers = append(r.buyers, b)
		r.customers = append(r.customers, &shopper{buyer: b, lines: lines, shop: l.Shops[i], asked: map[string]bool{}})
	}
	return r
}

// certainFrom is how many times the usual lease the lease of a run is that counts in any case.
const certainFrom = 4

// basketItems is how many items each customer of a run with baskets buys.
const basketItems = 2

// letGo ends a run that was given up: what is still held goes on, so that the shops are free.
func (r *shopsRun) letGo() {
	for _, b := range r.customers {
		r.dropHeld(b.buyer)
		if b.cut {
			b.shop.Reconnect()
		}
	}
	for {
		select {
		case m := <-r.messages:
			if report, ok := m.(heldReport); ok && report.Hold != 0 {
				report.release(false)
			}
		default:
			return
		}
	}
}
