package matrix

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/declared"
)

// task is one run of the cells of a scenario that share a bench.
type task struct {
	scenario   trial.Scenario
	strategies []declared.Strategy
	at         []int // the indexes of their pairs in the plan
	seed       uint64
}

func (t task) names() []string {
	names := make([]string, len(t.strategies))
	for i, of := range t.strategies {
		names[i] = of.Name + ":" + t.scenario.Name
	}
	return names
}

// tasks lists the runs of all cells. All strategies of a topology share its servers.
func (p Plan) tasks() []task {
	var once []task
	for at, c := range p.Pairs {
		i := -1
		if c.Scenario.Topology != nil {
			i = slices.IndexFunc(once, func(t task) bool { return t.scenario.Name == c.Scenario.Name })
		}
		if i < 0 {
			i, once = len(once), append(once, task{scenario: c.Scenario})
		}
		once[i].strategies, once[i].at = append(once[i].strategies, c.Strategy), append(once[i].at, at)
	}
	var tasks []task
	for _, t := range once {
		for n := range p.Runs {
			t.seed = p.Seed + uint64(n)
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// ran is a run of a cell that has ended.
type ran struct {
	at     int // the index of its pair in the plan
	result trial.Result
}

// runAll runs every cell, as many at once as there are benches. It returns what is done, in the
// order of the plan, even when it ends early.
func (t *testbeds) runAll(ctx context.Context, status *Status) ([]trial.Result, error) {
	status.begin(len(t.plan.Pairs) * t.plan.Runs)
	isCalm := func(of task) bool { return t.calm != nil && of.scenario.Comparable }
	others := t.plan.tasks()
	calm := slices.DeleteFunc(slices.Clone(others), func(of task) bool { return !isCalm(of) })
	others = slices.DeleteFunc(others, isCalm)
	var apart, all []ran
	running, runCtx := errgroup.WithContext(ctx)
	running.Go(func() (err error) {
		all, err = t.runOn(runCtx, t.openers(), others, status)
		return err
	})
	running.Go(func() (err error) {
		apart, err = t.runOn(runCtx, []opener{always(t.calm)}, calm, status)
		return err
	})
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

// opener returns the bench of a task. Done is called when it has run.
type opener func(context.Context, task) (bench *trial.Bench, done func(), err error)

// always has the same bench for every task.
func always(bench *trial.Bench) opener {
	return func(context.Context, task) (*trial.Bench, func(), error) { return bench, func() {}, nil }
}

// openers are those of the tasks that run at once.
func (t *testbeds) openers() []opener {
	all := make([]opener, t.plan.Parallel)
	for i := range all {
		if all[i] = t.openTopology; t.benches != nil {
			all[i] = always(t.benches[i])
		}
	}
	return all
}

// runOn runs tasks, one at a time on each bench. It returns those that ended, in that order, even
// when it ends early.
func (t *testbeds) runOn(ctx context.Context, openers []opener, tasks []task, status *Status) ([]ran, error) {
	queue := make(chan task)
	var mu sync.Mutex // guards done
	var done []ran
	working, workCtx := errgroup.WithContext(ctx)
	for _, open := range openers {
		working.Go(func() error {
			for next := range queue {
				status.started(next.names()...)
				results, err := runTask(workCtx, open, next, t.plan.Of(next.scenario).options())
				status.finished(next.names(), results)
				mu.Lock()
				for i, result := range results {
					done = append(done, ran{next.at[i], result})
				}
				mu.Unlock()
				if err != nil {
					return err
				}
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

func runTask(ctx context.Context, open opener, next task, o trial.Options) ([]trial.Result, error) {
	bench, done, err := open(ctx, next)
	if err != nil {
		return nil, err
	}
	defer done()
	return trial.Run(ctx, bench, next.scenario, next.strategies, next.seed, o)
}

// merge makes one result of several runs of a cell, with the number of runs that went as expected. It is the first
// surprising run that is not invalid, or else the first invalid one. Without a surprise it is the run with the median
// of sales per second.
func merge(runs []trial.Result) trial.Result {
	bySales := slices.SortedStableFunc(slices.Values(runs), func(a, b trial.Result) int {
		return cmp.Compare(a.SalesPerSecond, b.SalesPerSecond)
	})
	merged := bySales[(len(runs)-1)/2]
	for _, r := range slices.Backward(runs) {
		if r.Surprise() && (r.Verdict != verdict.Invalid || merged.Verdict == verdict.Invalid || !merged.Surprise()) {
			merged = r
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
