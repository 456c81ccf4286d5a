package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/tabular"
	"stocklock/internal/stock"
	"stocklock/internal/strategy/declared"
)

// CrowdOptions are the settings of a measurement of crowds.
type CrowdOptions struct {
	Shop        string // the program that is started as the shop, empty for the one of the checkout
	Redis       string // the program that is started as Redis, empty for the one of the machine
	Connections []int
	Each        time.Duration // how long each crowd is measured in one round
	Rounds      int           // how often; the ratios are the medians
	Log         io.Writer     // the progress
}

// Crowd is so many connections at one shop, each of which orders again as soon as it is answered.
type Crowd struct {
	Connections int
	Items       int // the orders go to so many, in turn
	Supply
	Ratio float64 // of the sales to those of the first crowd on as many items
}

// MeasureCrowds measures one shop with its default settings under crowds, on private servers. It fails
// when the database has other orders than were answered.
func MeasureCrowds(ctx context.Context, o CrowdOptions) (crowds []Crowd, err error) {
	s := &soak{Options: Options{Shop: o.Shop, Redis: o.Redis, Shops: 1, Log: o.Log}}
	err = s.onServers(ctx, rig.TestbedOptions{}, func() error {
		s.began = time.Now()
		for _, items := range []int{1, 64} {
			samples := make([][]Crowd, len(o.Connections))
			for round := range o.Rounds {
				for i, n := range o.Connections {
					s.say("round %d of %d: %d connections, items: %d", round+1, o.Rounds, n, items)
					c := Crowd{Connections: n, Items: items, Ratio: 1}
					var err error
					c.Supply, err = Measure(ctx, s.store, Demand{Shops: s.testbed.Shops, Items: items, Units: 1, Customers: n, WarmUp: min(warmUp, o.Each), Each: o.Each})
					if err != nil {
						return err
					}
					if i > 0 {
						c.Ratio = c.Sold / samples[0][round].Sold
					}
					samples[i] = append(samples[i], c)
				}
			}
			for _, of := range samples {
				slices.SortFunc(of, func(a, b Crowd) int { return int(1e6 * (a.Ratio - b.Ratio)) })
				crowds = append(crowds, of[o.Rounds/2])
			}
		}
		return nil
	})
	return crowds, err
}

// Demand is a load on items of their own by customers who order again as soon as they are answered.
type Demand struct {
	Shops      []*rig.TestbedShop // in turn
	Strategy   string             // empty for that of shops which are not in lab mode
	Items      int
	Popularity Popularity
	Units      int                         // of each line
	Lines      int                         // of each order; 0 for one
	AsPosted   bool                        // half of the orders have their lines in the opposite order, and the shop is told so
	Customers  int                         // at once
	Created    func(context.Context) error // waits until all servers have the items; nil for one server
	WarmUp     time.Duration
	Each       time.Duration // how long sales are counted after the warm-up: longer if nothing was answered by then
}

// Supply is what became of a demand.
type Supply struct {
	Sold     float64 // units a second
	Rejected float64 // orders a second: answered otherwise, or closed without an answer
}

// Measure sells to a demand. It fails when the database has other orders than were answered.
func Measure(ctx context.Context, store *stock.Store, d Demand) (of Supply, err error) {
	const plenty = 1 << 40
	s := &soak{store: store, Options: Options{Seed: uint64(time.Now().UnixNano())}} // other keys each time
	s.items = []*items{{strategies: []declared.Strategy{{Name: d.Strategy}}, inTurn: true, popularity: d.Popularity}}
	if err := s.create(ctx, s.items[0], d.Items, plenty); err != nil {
		return of, err
	}
	if d.Created != nil {
		if err := d.Created(ctx); err != nil {
			return of, err
		}
	}
	s.customers = newCustomers(s.Seed, d.Shops, s.items)
	s.customers.units, s.customers.lines, s.customers.public = d.Units, max(1, d.Lines), d.Strategy == ""
	s.customers.asPosted = d.AsPosted
	from := time.Now().Add(d.WarmUp)
	measuring, cancel := context.WithCancel(ctx)
	defer cancel()
	var lasted time.Duration
	orders := load.Load{Workers: d.Customers, Timeout: time.Minute}
	err = orders.Run(measuring, s.customers.next, func(a load.Answer) {
		s.customers.answered(a)
		after := a.Sent.Add(a.Latency).Sub(from)
		if after >= d.Each {
			cancel()
		}
		switch {
		case after < 0 || after > d.Each && lasted > 0:
			return
		case a.Outcome == load.Sold:
			of.Sold += float64(d.Units * s.customers.lines)
		default:
			of.Rejected++
		}
		lasted = max(after, d.Each)
	})
	of.Sold, of.Rejected = of.Sold/lasted.Seconds(), of.Rejected/lasted.Seconds()
	if err := errors.Join(err, context.Cause(ctx)); err != nil {
		return of, err
	}
	var r Report
	if err := errors.Join(s.customers.settle(ctx, orders.Timeout), s.audit(ctx, &r)); err != nil || r.Survived() {
		return of, err
	}
	return of, fmt.Errorf("%+v: %q", d, r.Findings)
}

// PrintCrowds writes a table for people.
func PrintCrowds(out io.Writer, crowds []Crowd) {
	w := newTable("connections", "items", "sales/s", "rejected/s", "sales")
	for _, c := range crowds {
		w.AppendRow([]any{c.Connections, c.Items, fmt.Sprintf("%.0f", c.Sold), fmt.Sprintf("%.0f", c.Rejected), fmt.Sprintf("× %.2f", c.Ratio)})
	}
	w.SetColumnConfigs(tabular.Right(1, 5))
	fmt.Fprintln(out, w.Render())
}
