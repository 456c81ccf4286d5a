package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"

	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/soak"
	"stocklock/internal/lab/tabular"
	"stocklock/internal/lab/topology"
	"stocklock/internal/strategy"
)

// onTopologies are the strategies that are measured there: one of each kind.
var onTopologies = []string{"conditional", "batched", "fenced-relative", "fenced", "reentrant"}

// topologyItems are how many items are sold at once.
var topologyItems = []int{1, 64}

// Topology is what a strategy sold on the servers of a topology.
type Topology struct {
	Topology string `json:"topology"`
	Strategy string `json:"strategy"`
	// Ratios are the units sold a second, divided by those of the strategy on one server: of one item, and of many.
	// There are none where Not says why.
	Ratios []float64 `json:"ratios,omitempty"`
	Not    string    `json:"not,omitempty"`
}

// RunTopologies measures sales without any fault on each topology in turn, on private servers, which end with it.
func RunTopologies(ctx context.Context, o Options, all []strategy.Description) ([]Topology, error) {
	var measured []Topology
	base := map[string][]float64{} // of one server, by strategy
	for _, t := range topology.All {
		fmt.Fprintln(o.Log, t.Name)
		of, err := o.onTopology(ctx, t, all)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		for i := range of {
			if base[of[i].Strategy] == nil {
				base[of[i].Strategy] = slices.Clone(of[i].Ratios)
			}
			for n := range of[i].Ratios {
				of[i].Ratios[n] /= base[of[i].Strategy][n]
			}
		}
		measured = append(measured, of...)
	}
	return measured, nil
}

// onTopology measures units a second in place of ratios.
func (o Options) onTopology(ctx context.Context, t topology.Topology, all []strategy.Description) (measured []Topology, err error) {
	for _, name := range onTopologies {
		i := slices.IndexFunc(all, func(of strategy.Description) bool { return of.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("the shop has no %s", name)
		}
		m := Topology{Topology: t.Name, Strategy: name}
		if missing := t.Missing(); missing != nil {
			m.Not = missing.Error()
		} else if t.OversellsUnderLoad(all[i]) {
			m.Not = "oversells"
		}
		measured = append(measured, m)
	}
	if t.Missing() != nil {
		return measured, nil
	}
	r, err := rig.New(o.Shop)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	r.RedisProgram = o.Redis
	testbed, store, err := t.Testbed(ctx, r, map[string]string{"SHOP_WAIT": "20s"})
	if store != nil {
		defer store.Close()
	}
	if err != nil {
		return nil, err
	}
	sold := make([][][]float64, len(measured)) // by items, by round
	for round := range o.Rounds {
		for i, m := range measured {
			if m.Not != "" {
				continue
			}
			sold[i] = append(sold[i], nil)
			for _, items := range topologyItems {
				got, err := soak.Measure(ctx, store, soak.Demand{
					Shops: testbed.Shops, Strategy: m.Strategy, Items: items, Units: 1, Customers: o.Workers, WarmUp: o.Each / 5, Each: o.Each,
				})
				if err != nil {
					return nil, fmt.Errorf("%s: %w", m.Strategy, err)
				}
				sold[i][round] = append(sold[i][round], got.Sold)
			}
		}
	}
	for i := range measured {
		for n := range topologyItems {
			var of []float64
			for _, round := range sold[i] {
				of = append(of, round[n])
			}
			if len(of) > 0 {
				measured[i].Ratios = append(measured[i].Ratios, median(of))
			}
		}
	}
	return measured, nil
}

// PrintTopologies writes a table for people.
func PrintTopologies(out io.Writer, measured []Topology) {
	w := tabular.New()
	header := table.Row{"topology"}
	for _, name := range onTopologies {
		for _, items := range topologyItems {
			header = append(header, fmt.Sprintf("%s\n%d", name, items))
			name = ""
		}
	}
	w.AppendHeader(header)
	for row := range slices.Chunk(measured, len(onTopologies)) {
		cells := table.Row{row[0].Topology}
		for _, m := range row {
			for n := range topologyItems {
				cell := "–"
				if m.Not == "" {
					cell = fmt.Sprintf("%.2f", m.Ratios[n])
				}
				cells = append(cells, cell)
			}
		}
		w.AppendRow(cells)
	}
	w.SetColumnConfigs(tabular.Right(2, len(header)))
	fmt.Fprintln(out, w.Render())
	said := map[string]bool{}
	for _, m := range measured {
		if m.Not == "" || said[m.Topology+m.Not] {
			continue
		}
		said[m.Topology+m.Not] = true
		fmt.Fprintf(out, "not measured on %s: what %s\n", m.Topology, m.Not)
	}
}
