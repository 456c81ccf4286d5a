// Package matrix runs many cells: strategies under scenarios, on servers and shops of its own or
// given by address.
//
// plan.go plans the cells and how many run at once. testbeds.go starts or opens the testbeds.
// queue.go runs the cells side by side, and makes one result of several runs of a cell.
//
// # Decisions
//
// Cells run side by side on testbeds. A testbed is a set of shops with Redis servers and proxies of
// its own. All testbeds share one MySQL. Most of a cell is waiting, so four testbeds complete the
// matrix in a quarter of the time. Cases of topologies have servers of their own, and run four at a
// time, too. A comparison of numbers uses one testbed. The shops' pools together stay below the
// max_connections of MySQL: a server that refuses connections would decide verdicts.
package matrix

import (
	"context"

	"stocklock/internal/lab/report"
	"stocklock/internal/lab/trial"
)

// Run runs the cells of a plan, and ends the servers and shops that it started. When ctx ends it,
// or an error, the report has what there is. Shops or servers of the plan that cannot be used are
// an [AddressError].
func Run(ctx context.Context, p Plan, status *Status) (report.Report, error) {
	switch {
	case len(p.Baskets) > 0:
		return p.runBaskets(ctx, status)
	case len(p.Cases) > 0:
		return p.runCases(ctx, status)
	}
	p = p.Completed()
	t, err := open(ctx, p, status)
	if err != nil {
		return report.Report{}, err
	}
	defer t.close()
	cells, err := t.runAll(ctx, status)
	if ctx.Err() != nil {
		err = nil // what there is, is the result
	}
	return report.Report{Environment: t.environment(), Strategies: p.Strategies, Cells: cells, Interrupted: ctx.Err() != nil || err != nil}, err
}

// Session is one testbed that stays between cells. Cells run on it one after another: it is not for
// concurrent use.
type Session struct{ testbeds *testbeds }

// OpenSession starts or opens what the cells of a plan need. Cells that the plan does not have run
// on it too, as far as it has the servers for them. The caller closes it.
func OpenSession(ctx context.Context, p Plan, status *Status) (*Session, error) {
	p.Parallel = 1
	t, err := open(ctx, p.Completed(), status)
	if err != nil {
		return nil, err
	}
	return &Session{t}, nil
}

// Options are those of the plan, for [Session.Run]. The options of the locks cannot be changed: the
// shops have them since they were started.
func (s *Session) Options() trial.Options { return s.testbeds.plan.options() }

// Run runs one cell. An error means that the session cannot go on, or that ctx has ended.
func (s *Session) Run(ctx context.Context, c trial.Cell, o trial.Options) (trial.Result, error) {
	if calm := s.testbeds.plan.calm; s.testbeds.calm != nil && c.Scenario.Comparable {
		o.Lease, o.Wait, o.Circumstances = calm.Lease, calm.Wait, calm.circumstances()
		return trial.Run(ctx, *s.testbeds.calm, c, o)
	}
	return trial.Run(ctx, s.testbeds.benches[0], c, o)
}

// Environment is everything that may change the numbers.
func (s *Session) Environment() report.Environment { return s.testbeds.environment() }

// Close ends what was started.
func (s *Session) Close() { s.testbeds.close() }
