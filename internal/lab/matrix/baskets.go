package matrix

import (
	"context"
	"errors"
	"time"

	"stocklock/internal/lab/basket"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
	"stocklock/internal/strategy"
)

// BasketPair is a way of taking several items under a scenario of package basket.
type BasketPair struct {
	Strategy strategy.Description
	Scenario basket.Scenario
}

// forBaskets completes a plan of cells of several items, which run one after the other, so that deadlocks are
// theirs.
func (p Plan) forBaskets() Plan {
	p.Lease, p.Wait, p.Shops, p.Trace, p.Pairs = basket.Lease, basket.Wait, basket.Shops, true, nil
	p = p.Completed()
	p.Parallel, p.Work = 1, pointer(time.Duration(0))
	return p
}

// OpenBasketSession is [OpenSession] for cells of several items: see [Session.RunBasket].
func OpenBasketSession(ctx context.Context, p Plan, status *Status) (*Session, error) {
	t, err := open(ctx, p.forBaskets(), status)
	if err != nil {
		return nil, err
	}
	return &Session{t}, nil
}

// RunBasket runs one cell of several items. Told is called with each line of its story. The session is one of
// [OpenBasketSession].
func (s *Session) RunBasket(ctx context.Context, pair BasketPair, seed uint64, told func(line string)) (trial.Result, error) {
	return basket.Run(ctx, s.testbeds.benches[0], pair.Strategy, pair.Scenario, seed, told)
}

// RunBaskets is [Run] for sales of several items. Of the plan count the servers, the seed and the number of
// runs.
func RunBaskets(ctx context.Context, p Plan, pairs []BasketPair, status *Status) (report.Report, error) {
	p = p.forBaskets()
	t, err := open(ctx, p, status)
	if err != nil {
		return report.Report{}, err
	}
	defer t.close()
	status.begin(len(pairs) * p.Runs)
	r := report.Report{Environment: t.environment()}
	for _, pair := range pairs {
		label := trial.Cell{Strategy: pair.Strategy, Scenario: scenario.Scenario{Name: pair.Scenario.Name}}
		var runs []trial.Result
		for n := range p.Runs {
			status.started(label)
			var result trial.Result
			if result, err = basket.Run(ctx, t.benches[0], pair.Strategy, pair.Scenario, p.Seed+uint64(n), nil); err != nil {
				break
			}
			status.finished(label, result, nil)
			runs = append(runs, result)
		}
		if err != nil {
			break
		}
		r.Cells = append(r.Cells, merge(runs))
		if len(r.Strategies) == 0 || r.Strategies[len(r.Strategies)-1].Name != pair.Strategy.Name {
			r.Strategies = append(r.Strategies, pair.Strategy)
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
