package soak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/stock"
	"stocklock/internal/strategy/declared"
)

// Demand is a load on items of their own by customers who order again as soon as they are answered.
type Demand struct {
	Shops      []*rig.TestbedShop // in turn
	Strategy   string             // empty for that of shops which are not in lab mode
	State      declared.State     // of the strategy, where it keeps stock of its own
	Items      int
	Popularity Popularity
	Units      int                         // of each line
	Lines      int                         // of each order; 0 for one
	AsPosted   bool                        // half of the orders have their lines in the opposite order, and the shop is told so
	Customers  int                         // at once
	Created    func(context.Context) error // waits until all servers have the items; nil for one server
	WarmUp     time.Duration
	Each       time.Duration // how long sales are counted after the warm-up; where nothing was sold by then, until so long after the first sale
}

// Supply is what became of a demand.
type Supply struct {
	Sold     float64       // units a second
	Orders   float64       // sold, a second
	Rejected float64       // orders a second: answered otherwise, or closed without an answer
	P99      time.Duration // of a sale
}

// window counts the answers to a demand, by times since its start.
type window struct {
	each, end      time.Duration
	sold, rejected int             // orders that were answered in it
	took           []time.Duration // by sales that were sent in it: the longest of them end after it
	early          time.Duration   // by the first sale that was sent before it
}

// answered counts an answer, and says whether the window is over.
func (w *window) answered(a load.Answer, sent time.Duration) (over bool) {
	at, sold := sent+a.Latency, a.Outcome == load.Sold
	if w.sold > 0 {
		over = at > w.end
	} else if over = at > longestMeasure; !over && at > w.end {
		if w.end = at; sold {
			w.end += w.each
		}
	}
	switch {
	case !sold || at < 0 || sent > w.end:
	case sent >= 0:
		w.took = append(w.took, a.Latency)
	default:
		w.early = cmp.Or(w.early, a.Latency)
	}
	switch {
	case over || at < 0:
	case sold:
		w.sold++
	default:
		w.rejected++
	}
	return over
}

// supply is what the window has counted, of orders of so many units.
func (w *window) supply(units int) (of Supply) {
	seconds := w.end.Seconds()
	of.Orders, of.Rejected = float64(w.sold)/seconds, float64(w.rejected)/seconds
	of.Sold = of.Orders * float64(units)
	if of.P99 = w.early; len(w.took) > 0 {
		slices.Sort(w.took)
		of.P99 = load.Percentile(w.took, 99)
	}
	return of
}

// longestMeasure is how long a first sale is waited for.
const longestMeasure = time.Minute

// Measure sells to a demand, until something is sold at least. It fails when the database has other orders than were
// answered.
func Measure(ctx context.Context, store *stock.Store, d Demand) (of Supply, err error) {
	const plenty = 1 << 40
	s := &soak{store: store, Options: Options{Seed: uint64(time.Now().UnixNano())}} // other keys each time
	s.items = []*items{{strategies: []declared.Strategy{{Name: d.Strategy, State: d.State}}, inTurn: true, popularity: d.Popularity}}
	if err := s.create(ctx, s.items[0], d.Items, plenty); err != nil {
		return of, err
	}
	if d.Created != nil {
		if err := d.Created(ctx); err != nil {
			return of, err
		}
	}
	s.customers = newCustomers(s.Seed, d.Shops, s.items)
	s.customers.units, s.customers.lines, s.customers.asPosted = d.Units, max(1, d.Lines), d.AsPosted
	from := time.Now().Add(d.WarmUp)
	measuring, cancel := context.WithCancel(ctx)
	defer cancel()
	counted := window{each: d.Each, end: d.Each}
	orders := load.Load{Workers: d.Customers, Timeout: time.Minute}
	err = orders.Run(measuring, s.customers.next, func(a load.Answer) {
		s.customers.answered(a)
		if counted.answered(a, a.Sent.Sub(from)) {
			cancel()
		}
	})
	of = counted.supply(d.Units * s.customers.lines)
	if err := errors.Join(err, context.Cause(ctx)); err != nil {
		return of, err
	}
	if of.Sold == 0 {
		return of, fmt.Errorf("%s sold nothing in %s", d.Strategy, longestMeasure)
	}
	var r Report
	open, err := s.customers.settle(ctx, orders.Timeout)
	if err != nil {
		return of, err
	}
	if open > 0 {
		r.find("%d customers do not know whether they bought", open)
	}
	if err := s.audit(ctx, &r); err != nil || r.Survived() {
		return of, err
	}
	return of, fmt.Errorf("%+v: %q", d, r.Findings)
}
