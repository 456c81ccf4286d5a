// Package matrix runs many cells: strategies under scenarios, on servers and shops of its own or
// given by address.
//
// # Decisions
//
// Cells run side by side on testbeds. A testbed is a set of shops with Redis servers and proxies of
// its own. All testbeds share one MySQL. Most of a cell is waiting, so four testbeds complete the
// matrix in a quarter of the time. Cells of topologies have servers of their own, and run four at a
// time, too. A comparison of numbers uses one testbed. The shops' pools together stay below the
// max_connections of MySQL: a server that refuses connections would decide verdicts.
package matrix

import (
	"context"
	"slices"

	"stocklock/internal/lab/report"
	"stocklock/internal/lab/trial"
	"stocklock/internal/strategy/declared"
)

// Run runs the cells of a plan, and ends the servers and shops that it started. Those of one server come first, then those
// of baskets, of reservations and of topologies. When ctx ends it, or an error, the report has what there is. Where there is
// nothing, the end of ctx is an error. Shops or servers of the plan that cannot be used are an [AddressError].
func Run(ctx context.Context, p Plan, status *Status) (report.Report, error) {
	return joined(p.parts(), func(part Plan) (report.Report, error) { return part.run(ctx, status) })
}

// joined is one report of all parts. Without one of them it is interrupted.
func joined(parts []Plan, run func(Plan) (report.Report, error)) (all report.Report, err error) {
	for _, part := range parts {
		r, err := run(part)
		if len(all.Cells) == 0 {
			all = r
		} else {
			all.Cells = append(all.Cells, r.Cells...)
			for _, of := range r.Strategies {
				if !slices.ContainsFunc(all.Strategies, func(s declared.Strategy) bool { return s.Name == of.Name }) {
					all.Strategies = append(all.Strategies, of)
				}
			}
		}
		if all.Interrupted = r.Interrupted || err != nil; all.Interrupted {
			return all, err
		}
	}
	return all, nil
}

// run runs a plan whose cells have the same kind of bench.
func (p Plan) run(ctx context.Context, status *Status) (report.Report, error) {
	t, err := open(ctx, p.Completed(), status)
	if err != nil {
		return report.Report{}, err
	}
	defer func() { // the cells stand
		if err := t.close(); err != nil {
			status.Warn(err.Error())
		}
	}()
	cells, err := t.runAll(ctx, status)
	if p.ofAFew() { // strategy by strategy
		place := func(c trial.Result) int {
			return slices.IndexFunc(p.Strategies, func(s declared.Strategy) bool { return s.Name == c.Strategy })
		}
		slices.SortStableFunc(cells, func(a, b trial.Result) int { return place(a) - place(b) })
	}
	if ctx.Err() != nil && len(cells) > 0 {
		err = nil // what there is, is the result
	}
	return report.Report{Environment: t.environment(), Strategies: t.plan.Strategies, Cells: cells, Interrupted: ctx.Err() != nil}, err
}

// Session is a bench that stays between cells. Cells run on it one after another: it is not for
// concurrent use.
type Session struct{ testbeds *testbeds }

// OpenSession opens what the cells of a plan need, which all have the same kind of bench. Cells that the plan does not have
// run on it too, as far as it has the servers for them. The caller closes it.
func OpenSession(ctx context.Context, p Plan, status *Status) (*Session, error) {
	p.Parallel = 1
	t, err := open(ctx, p.Completed(), status)
	if err != nil {
		return nil, err
	}
	return &Session{t}, nil
}

// Options are those of the plan for cells of a scenario, for [Session.Run]. The options of the locks cannot be changed: the
// shops have them since they were started.
func (s *Session) Options(of trial.Scenario) trial.Options {
	o := s.testbeds.plan.options()
	if calm := s.testbeds.plan.calm; s.isCalm(of) {
		o.Lease, o.Wait, o.Circumstances, o.Conditions = calm.Lease, calm.Wait, calm.circumstances(), calm.conditions()
	}
	return o
}

// isCalm says whether cells of a scenario have the shops in which nothing goes wrong.
func (s *Session) isCalm(of trial.Scenario) bool { return s.testbeds.calm != nil && of.Comparable }

// Run runs the cells of a scenario. An error means that the session cannot go on, or that ctx has ended.
func (s *Session) Run(ctx context.Context, sc trial.Scenario, strategies []declared.Strategy, seed uint64, o trial.Options) ([]trial.Result, error) {
	open := s.testbeds.openers()[0]
	if s.isCalm(sc) {
		open = always(s.testbeds.calm)
	}
	return runTask(ctx, open, task{scenario: sc, strategies: strategies, seed: seed}, o)
}

// Environment is everything that may change the numbers.
func (s *Session) Environment() report.Environment { return s.testbeds.environment() }

// Close ends what was started.
func (s *Session) Close() error { return s.testbeds.close() }
