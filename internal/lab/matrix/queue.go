package matrix

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"

	"stocklock/internal/lab/trial"
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

// runAll runs every cell, as many at once as there are testbeds. It returns what is done, in the
// order of the plan, even when it ends early.
func (t *testbeds) runAll(ctx context.Context, status *Status) ([]trial.Result, error) {
	tasks := t.plan.tasks()
	status.begin(len(tasks))
	queue := make(chan task)
	var mu sync.Mutex // guards results
	results := make([][]trial.Result, len(t.plan.Pairs))
	working, workCtx := errgroup.WithContext(ctx)
	for _, bench := range t.benches {
		working.Go(func() error {
			for next := range queue {
				status.started(next.Cell)
				result, err := trial.Run(workCtx, bench, next.Cell, t.plan.options())
				status.finished(next.Cell, result, err)
				if err != nil {
					return err
				}
				mu.Lock()
				results[next.at] = append(results[next.at], result)
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
	var done []trial.Result
	for _, runs := range results {
		if len(runs) > 0 {
			done = append(done, merge(runs))
		}
	}
	if len(done) == 0 && err == nil {
		err = errors.New("no cell was run")
	}
	return done, err
}
