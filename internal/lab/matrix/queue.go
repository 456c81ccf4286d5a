package matrix

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"stocklock/internal/lab/report"
	"stocklock/internal/lab/trial"
	"stocklock/internal/strategy/declared"
)

// task is one run of a cell.
type task struct {
	trial.Cell
	at int // the index of its pair in the plan
}

// tasks lists the runs of all cells.
func (p Plan) tasks() []task {
	var tasks []task
	for at, c := range p.Pairs {
		for n := range p.Runs {
			tasks = append(tasks, task{trial.Cell{Strategy: c.Strategy, Scenario: c.Scenario, Seed: p.Seed + uint64(n)}, at})
		}
	}
	return tasks
}

// ran is a run of a cell that has ended.
type ran struct {
	task
	result trial.Result
}

// runAll runs every cell, as many at once as there are testbeds. It returns what is done, in the
// order of the plan, even when it ends early.
func (t *testbeds) runAll(ctx context.Context, status *Status) ([]trial.Result, error) {
	tasks := t.plan.tasks()
	status.begin(len(tasks))
	isCalm := func(t task) bool { return t.Scenario.Comparable }
	calm, others := []task(nil), tasks
	if t.calm != nil {
		calm = slices.DeleteFunc(slices.Clone(tasks), func(t task) bool { return !isCalm(t) })
		others = slices.DeleteFunc(slices.Clone(tasks), isCalm)
	}
	var apart, all []ran
	running, runCtx := errgroup.WithContext(ctx)
	running.Go(func() (err error) {
		all, err = t.runOn(runCtx, t.benches, others, status)
		return err
	})
	if t.calm != nil {
		running.Go(func() (err error) {
			apart, err = t.runOn(runCtx, []trial.Bench{*t.calm}, calm, status)
			return err
		})
	}
	err := running.Wait()
	all = append(all, apart...)
	runs := make([][]trial.Result, len(t.plan.Pairs))
	for _, r := range all {
		runs[r.at] = append(runs[r.at], r.result)
	}
	var done []trial.Result
	for _, of := range runs {
		if len(of) > 0 {
			done = append(done, merge(of))
		}
	}
	if len(done) == 0 && err == nil {
		err = errors.New("no cell was run")
	}
	return done, err
}

// runOn runs tasks, one at a time on each bench. It returns those that ended, in that order, even
// when it ends early.
func (t *testbeds) runOn(ctx context.Context, benches []trial.Bench, tasks []task, status *Status) ([]ran, error) {
	queue := make(chan task)
	var mu sync.Mutex // guards done
	var done []ran
	working, workCtx := errgroup.WithContext(ctx)
	for _, bench := range benches {
		working.Go(func() error {
			for next := range queue {
				name := next.Strategy.Name + ":" + next.Scenario.Name
				status.started(name)
				result, err := trial.Run(workCtx, bench, next.Cell, t.plan.of(next.Cell).options())
				status.finished(name, result, err)
				if err != nil {
					return err
				}
				mu.Lock()
				done = append(done, ran{next, result})
				mu.Unlock()
			}
			return nil
		})
	}
	working.Go(func() error {
		defer close(queue)
		for _, next := range tasks {
			select {
			case queue <- next:
			case <-workCtx.Done():
				return context.Cause(workCtx)
			}
		}
		return nil
	})
	err := working.Wait()
	return done, err
}

// group is cells that run together, with the same seed.
type group struct {
	strategies []declared.Strategy
	scenario   string
	run        func(ctx context.Context, seed uint64) ([]trial.Result, error) // of each strategy
}

// runGroups runs so many groups at once. It returns what is done, strategy by strategy, even when it ends early.
func (p Plan) runGroups(ctx context.Context, atOnce int, groups []group, status *Status) (r report.Report, err error) {
	r.Strategies = p.Strategies
	for _, g := range groups {
		status.begin(len(g.strategies) * p.Runs)
	}
	done := make([][]trial.Result, len(groups))
	running, runCtx := errgroup.WithContext(ctx)
	running.SetLimit(atOnce)
	for i, g := range groups {
		running.Go(func() (err error) {
			if runCtx.Err() == nil {
				done[i], err = p.runGroup(runCtx, g, status)
			}
			return cmp.Or(err, context.Cause(runCtx))
		})
	}
	err = running.Wait()
	r.Cells = slices.Concat(done...)
	at := func(c trial.Result) int {
		return slices.IndexFunc(p.Strategies, func(s declared.Strategy) bool { return s.Name == c.Strategy })
	}
	slices.SortStableFunc(r.Cells, func(a, b trial.Result) int { return at(a) - at(b) })
	r.Interrupted = err != nil
	if ctx.Err() != nil && len(r.Cells) > 0 {
		err = nil // what there is, is the result
	}
	if len(r.Cells) == 0 && err == nil {
		err = errors.New("no cell was run")
	}
	return r, err
}

// runGroup makes the runs of a group one after the other, and one result of each of its cells.
func (p Plan) runGroup(ctx context.Context, g group, status *Status) (done []trial.Result, err error) {
	runs := make([][]trial.Result, len(g.strategies))
	for n := 0; n < p.Runs && len(runs) > 0 && err == nil; n++ {
		for _, of := range g.strategies {
			status.started(of.Name + ":" + g.scenario)
		}
		var results []trial.Result
		results, err = g.run(ctx, p.Seed+uint64(n))
		for i, result := range results {
			status.finished(result.Name(), result, nil)
			runs[i] = append(runs[i], result)
		}
	}
	for _, of := range runs {
		if len(of) > 0 {
			done = append(done, merge(of))
		}
	}
	return done, err
}

// merge makes one result of several runs of a cell: the first surprising run, or else the one with
// the median of sales per second, with the number of runs that went as expected.
func merge(runs []trial.Result) trial.Result {
	bySales := slices.SortedStableFunc(slices.Values(runs), func(a, b trial.Result) int {
		return cmp.Compare(a.SalesPerSecond, b.SalesPerSecond)
	})
	merged := bySales[(len(runs)-1)/2]
	for _, r := range runs {
		if r.Surprise() {
			merged = r
			break
		}
	}
	merged.Runs, merged.Agreed, merged.Seconds = len(runs), 0, 0
	for _, r := range runs {
		merged.Agreed += r.Agreed
		merged.Seconds += r.Seconds
	}
	merged.Seconds = math.Round(merged.Seconds*100) / 100
	return merged
}
