package scale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/soak"
	"stocklock/internal/lab/tabular"
	"stocklock/internal/lab/topology"
	"stocklock/internal/strategy/declared"
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

// RunTopologies measures sales without any fault, on private servers, which end with it. The topologies come in turn,
// so that all meet the same noise.
func RunTopologies(ctx context.Context, o Options, all []declared.Strategy) (_ []Topology, err error) {
	r, err := rig.New(o.Shop)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	r.RedisProgram = o.Redis
	var measured []Topology
	testbeds := map[string]topology.Testbed{}
	for _, t := range topology.All {
		missing := t.Missing()
		for _, name := range onTopologies {
			i := slices.IndexFunc(all, func(of declared.Strategy) bool { return of.Name == name })
			if i < 0 {
				return nil, fmt.Errorf("the shop has no %s", name)
			}
			m := Topology{Topology: t.Name, Strategy: name}
			switch {
			case missing != nil:
				m.Not = missing.Error()
			case t.OversellsUnderLoad(all[i]):
				m.Not = "oversells"
			}
			measured = append(measured, m)
		}
		if missing != nil {
			continue
		}
		fmt.Fprintln(o.Log, "starting", t.Name)
		testbed, err := t.Testbed(ctx, r, map[string]string{"SHOP_WAIT": "20s"})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		defer testbed.Close()
		testbeds[t.Name] = testbed
	}
	err = o.measureTopologies(measured, func(on string, d soak.Demand) (float64, error) {
		d.Shops, d.Created = testbeds[on].Shops, testbeds[on].Copied
		got, err := soak.Measure(ctx, testbeds[on].Store, d)
		return got.Sold, err
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return measured, err
}

// measureTopologies adds the medians of the ratios of all rounds. The first topology is that of the base.
func (o Options) measureTopologies(measured []Topology, unitsPerSecond func(on string, d soak.Demand) (float64, error)) error {
	for _, strategy := range onTopologies {
		for _, items := range topologyItems {
			fmt.Fprintf(o.Log, "%s, items: %d\n", strategy, items)
			ratios := make([][]float64, len(measured))
			for range o.Rounds {
				var base float64
				for i, m := range measured {
					if m.Strategy != strategy || m.Not != "" {
						continue
					}
					sold, err := unitsPerSecond(m.Topology, soak.Demand{
						Strategy: strategy, Items: items, Units: 1, Customers: o.Workers, WarmUp: o.Each / 5, Each: o.Each,
					})
					if err != nil {
						return fmt.Errorf("%s on %s: %w", strategy, m.Topology, err)
					}
					base = cmp.Or(base, sold)
					ratios[i] = append(ratios[i], sold/base)
				}
			}
			for i, of := range ratios {
				if of != nil {
					measured[i].Ratios = append(measured[i].Ratios, median(of))
				}
			}
		}
	}
	return nil
}

// PrintTopologies writes a table for people.
func PrintTopologies(out io.Writer, measured []Topology) {
	w := tabular.New()
	header := table.Row{"topology", "items"}
	for _, name := range onTopologies {
		header = append(header, name)
	}
	w.AppendHeader(header)
	for of := range slices.Chunk(measured, len(onTopologies)) {
		name := of[0].Topology
		for n, items := range topologyItems {
			row := table.Row{name, items}
			for _, m := range of {
				cell := "–"
				if m.Not == "" {
					cell = fmt.Sprintf("× %.2f", m.Ratios[n])
				}
				row = append(row, cell)
			}
			w.AppendRow(row)
			name = ""
		}
	}
	w.SetColumnConfigs(tabular.Right(2, len(header)))
	fmt.Fprintln(out, w.Render())
	for of := range slices.Chunk(measured, len(onTopologies)) {
		var left []string
		not := ""
		for _, m := range of {
			if m.Not != "" {
				left, not = append(left, m.Strategy), m.Not
			}
		}
		if not != "" {
			fmt.Fprintf(out, "not measured on %s: %s: %s\n", of[0].Topology, strings.Join(left, ", "), not)
		}
	}
}
