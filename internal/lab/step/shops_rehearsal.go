package step

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/seen"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/declared"
)

// rehearsal is a sale that a shop process has made before the first run.
type rehearsal struct {
	pid      int
	strategy string
}

// rehearsals is what is known of those that were.
type rehearsals struct {
	quorum sync.Mutex // of those that ask several servers: one at a time
	first  sync.Map   // by strategy, a heldReport: what each customer sends first
	tables sync.Map   // by strategy, a schedule.Schema: the tables that are there after its first sales
}

// rehearse has two customers buy at once at every shop of a slot: then connections are open,
// scripts are loaded, a lock that waits for messages listens, and the first step of a sale is
// known.
func (s *Shops) rehearse(ctx context.Context, l *slot, by declared.Strategy, p Plan) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	rehearsing, ctx := errgroup.WithContext(ctx)
	if by.NeedsQuorum { // each server has a fifth of the lease, and connections to all are to be opened
		s.rehearsals.quorum.Lock()
		defer s.rehearsals.quorum.Unlock()
		rehearsing.SetLimit(1)
	}
	for _, shop := range l.Shops {
		this := rehearsal{shop.PID(), by.Name}
		if l.rehearsed[this] {
			continue
		}
		l.rehearsed[this] = true
		rehearsing.Go(func() error { return s.rehearseAt(ctx, l, shop, by, p) })
	}
	err := rehearsing.Wait()
	if err != nil {
		for _, shop := range l.Shops {
			delete(l.rehearsed, rehearsal{shop.PID(), by.Name})
		}
	}
	return err
}

func (s *Shops) rehearseAt(ctx context.Context, l *slot, shop *rig.TestbedShop, by declared.Strategy, p Plan) error {
	item, err := l.database.newItem(ctx, by, 2)
	if err != nil {
		return err
	}
	if err := l.database.copied(ctx); err != nil {
		return err
	}
	ids := []string{fmt.Sprintf("rehearsal-%d-1", item), fmt.Sprintf("rehearsal-%d-2", item)}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	heard := func() {}
	if p.MaxSilence > 0 {
		limit := l.wait + p.MaxSilence
		alarm := time.AfterFunc(limit, func() { cancel(ErrSilent) })
		defer alarm.Stop()
		heard = func() { alarm.Reset(limit) }
	}
	var sent atomic.Int64
	var recorded atomic.Bool // the request that records an order was held
	defer s.reports.follow(l.name, []uint64{item}, ids, func(r heldReport) {
		heard()
		if r.loose() && p.MaxSilence > 0 {
			cancel(UnheldError{"Redis"})
		}
		if r.Hold == 0 {
			return
		}
		if r.Name == "insert" && strings.Contains(r.Text, "orders") {
			recorded.Store(true)
		}
		if sent.Add(1) == maxRehearsal {
			cancel(fmt.Errorf("%s: two sales by %s have sent %d requests: %w", shop.Name, by.Name, maxRehearsal, ErrEndless))
		}
		r.item = item
		s.rehearsals.first.LoadOrStore(by.Name, r)
		time.AfterFunc(rehearsalPace, func() { r.release(false) })
	})()
	second := make(chan string, 1)
	if by.NeedsQuorum || p.RehearsedAlone { // two that ask several servers at once can keep each other out
		second <- ""
	} else {
		go func() { second <- l.buy(ctx, shop.URL, []uint64{item}, by.Name, ids[1]) }()
	}
	answer := l.buy(ctx, shop.URL, []uint64{item}, by.Name, ids[0])
	other := <-second
	if cause := context.Cause(ctx); errors.Is(cause, ErrEndless) || errors.Is(cause, ErrSilent) || errors.As(cause, new(UnheldError)) {
		return cause
	}
	if answer != string(load.Sold) && other != string(load.Sold) { // one may be in the other's way
		return UnsoldError{shop.Name, by.Name, answer}
	}
	if p.MaxSilence == 0 {
		return nil
	}
	// A shop that answers first records the order later. An order is there after its request was held, or was not held at all.
	waiting, done := context.WithTimeout(ctx, dropAfter)
	defer done()
	_, err = seen.Until(waiting, lookAfter, func() (bool, error) {
		orders, err := l.database.store.ItemOrders(ctx, item)
		if err == nil && len(orders) > 0 && !recorded.Load() {
			err = UnheldError{"MySQL"}
		}
		return recorded.Load(), err
	})
	return err
}

// UnheldError is about sales that have sent a request with another context than that of the sale. It cannot be held.
type UnheldError struct{ Server string }

func (e UnheldError) Error() string {
	return "a request to " + e.Server + " was sent without the context of its sale"
}

// loose says that a request to Redis was sent without the context of a sale, and that it is no renewal, which is not held
// in any case.
func (r heldReport) loose() bool {
	command, _, _ := strings.Cut(r.Text, " ")
	renews := slices.Contains([]string{"EVALSHA", "FCALL", "EXPIRE", "PEXPIRE"}, command)
	return r.Own && r.Sale == "" && r.Server == labmode.RedisServer && !renews
}

// UnsoldError is about a strategy that does not sell: of two customers who wanted the two units that there were, none was
// sold one.
type UnsoldError struct{ shop, strategy, Answer string }

func (e UnsoldError) Error() string {
	return fmt.Sprintf("%s: a sale by %s before the first run was answered with %s", e.shop, e.strategy, e.Answer)
}

// rehearsalPace makes the sales of a rehearsal so slow that one of them meets the other.
const rehearsalPace = 2 * time.Millisecond

// maxRehearsal bounds the requests of a rehearsal: a lock that polls sends some hundreds.
const maxRehearsal = 2000

// firstStep is what each customer of a strategy sends first, about another item. Nothing holds it.
func (s *Shops) firstStep(of string, item uint64) *held {
	known, _ := s.rehearsals.first.Load(of)
	first, _ := known.(heldReport)
	h := first.held()
	h.id, h.Text = nil, first.about(item)
	return h
}
