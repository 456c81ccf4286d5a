package matrix

import (
	"cmp"
	"context"
	"errors"
	"time"

	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/topology"
	"stocklock/internal/lab/trial"
	"stocklock/internal/strategy"
)

// RunTopologies is [Run] for databases of more than one server. All strategies of a case share its servers. Of the
// plan count the seed, the number of runs and the programs.
func RunTopologies(ctx context.Context, p Plan, cases []topology.Case, strategies []strategy.Description, status *Status) (report.Report, error) {
	p.Lease, p.Wait, p.Retry, p.Shops, p.Workers, p.Work = topology.Lease, topology.Wait, topology.Retry, topology.Shops, 1, pointer(time.Duration(0))
	p = p.Completed()
	r := report.Report{Strategies: strategies, Environment: (&testbeds{plan: p}).environment()}
	r.Environment.Testbeds, r.Environment.ServersGiven = 1, false
	total := 0
	for _, c := range cases {
		total += len(c.Of(strategies)) * p.Runs
	}
	status.begin(total)
	runs := map[string][]trial.Result{}
	var err error
	for _, c := range cases {
		strategies := c.Of(strategies)
		if len(strategies) == 0 {
			continue
		}
		for n := range p.Runs {
			label := func(of strategy.Description) trial.Cell {
				return trial.Cell{Strategy: of, Scenario: scenario.Scenario{Name: c.Name()}}
			}
			status.Say("starting " + c.Topology.Name)
			var results []trial.Result
			var versions topology.Versions
			if results, versions, err = topology.Run(ctx, c, strategies, p.Shop, p.Seed+uint64(n), nil); err != nil {
				break
			}
			r.Environment.MySQL, r.Environment.Redis = cmp.Or(versions.MySQL, r.Environment.MySQL), cmp.Or(versions.Redis, r.Environment.Redis)
			for i, result := range results {
				status.started(label(strategies[i]))
				status.finished(label(strategies[i]), result, nil)
				runs[result.Name()] = append(runs[result.Name()], result)
			}
		}
		if err != nil {
			break
		}
	}
	for _, of := range strategies {
		for _, c := range cases {
			if done := runs[trial.Result{Strategy: of.Name, Scenario: c.Name()}.Name()]; len(done) > 0 {
				r.Cells = append(r.Cells, merge(done))
			}
		}
	}
	r.Interrupted = err != nil
	if ctx.Err() != nil && len(r.Cells) > 0 {
		err = nil // what there is, is the result
	}
	if len(r.Cells) == 0 && err == nil {
		err = errors.New("no cell was run")
	}
	return r, err
}
