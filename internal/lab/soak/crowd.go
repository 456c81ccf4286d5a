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
	"stocklock/internal/strategy"
)

// CrowdOptions are the settings of a measurement of crowds.
type CrowdOptions struct {
	Shop        string // the program that is started as the shop, empty for the one of the checkout
	Connections []int
	Each        time.Duration // how long each crowd is measured in one round
	Rounds      int           // how often; the ratios are the medians
	Log         io.Writer     // the progress
}

// Crowd is so many connections at one shop, each of which orders again as soon as it is answered.
type Crowd struct {
	Connections int
	Items       int // the orders go to so many, in turn

	Sales    float64 // a second
	Rejected float64 // a second: answered with 503, or closed without an answer
	Ratio    float64 // Sales, divided by those of the smallest crowd on as many items
}

// MeasureCrowds measures one shop with its default settings under crowds, on private servers. It fails
// when the database has other orders than were answered.
func MeasureCrowds(ctx context.Context, o CrowdOptions) (crowds []Crowd, err error) {
	s := &soak{Options: Options{Shop: o.Shop, Shops: 1, Log: o.Log}}
	err = s.onServers(ctx, rig.TestbedOptions{}, func() error {
		for _, items := range []int{1, 64} {
			samples := make([][]Crowd, len(o.Connections))
			for round := range o.Rounds {
				for i, n := range o.Connections {
					s.say("round %d of %d: %d connections, items: %d", round+1, o.Rounds, n, items)
					c := Crowd{Connections: n, Items: items, Ratio: 1}
					if err := s.crowd(ctx, o.Each, &c); err != nil {
						return err
					}
					if i > 0 {
						c.Ratio = c.Sales / samples[0][round].Sales
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

// crowd measures one crowd. At first, its customers connect and the queues fill.
func (s *soak) crowd(ctx context.Context, each time.Duration, c *Crowd) error {
	const plenty = 1 << 40
	s.Seed++ // other keys
	s.items = []*items{{strategies: []strategy.Description{{}}, inTurn: true}}
	if err := s.create(ctx, s.items[0], c.Items, plenty); err != nil {
		return err
	}
	s.customers = newCustomers(s.Seed, s.testbed.Shops, s.items)
	s.customers.public = true
	from := time.Now().Add(warmUp)
	to := from.Add(each)
	measuring, cancel := context.WithDeadline(ctx, to)
	defer cancel()
	crowd := load.Load{Workers: c.Connections, Timeout: time.Minute}
	err := crowd.Run(measuring, s.customers.next, func(a load.Answer) {
		s.customers.answered(a)
		switch answered := a.Sent.Add(a.Latency); {
		case answered.Before(from) || answered.After(to):
		case a.Outcome == load.Sold:
			c.Sales++
		case a.Outcome == load.Busy || a.Status == 0:
			c.Rejected++
		}
	})
	c.Sales /= each.Seconds()
	c.Rejected /= each.Seconds()
	if err := errors.Join(err, context.Cause(ctx), s.customers.settle(ctx, crowd.Timeout)); err != nil {
		return err
	}
	var r Report
	if err := s.audit(ctx, &r); err != nil || r.Survived() {
		return err
	}
	return fmt.Errorf("%d connections: %q", c.Connections, r.Findings)
}

// PrintCrowds writes a table for people.
func PrintCrowds(out io.Writer, crowds []Crowd) {
	w := newTable("connections", "items", "sales/s", "rejected/s", "sales")
	for _, c := range crowds {
		w.AppendRow([]any{c.Connections, c.Items, fmt.Sprintf("%.0f", c.Sales), fmt.Sprintf("%.0f", c.Rejected), fmt.Sprintf("× %.2f", c.Ratio)})
	}
	w.SetColumnConfigs(tabular.Right(1, 5))
	fmt.Fprintln(out, w.Render())
}
