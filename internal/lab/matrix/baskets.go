package matrix

import (
	"context"
	"slices"
	"time"

	"stocklock/internal/lab/basket"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/trial"
	"stocklock/internal/strategy/declared"
)

// BasketPair is a way of taking several items under a scenario of package basket.
type BasketPair struct {
	Strategy declared.Strategy
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

// runBaskets is [Run] for sales of several items. Of the plan count the servers, the seed and the number of runs.
func (p Plan) runBaskets(ctx context.Context, status *Status) (report.Report, error) {
	p = p.forBaskets()
	t, err := open(ctx, p, status)
	if err != nil {
		return report.Report{}, err
	}
	defer t.close()
	var groups []group
	for _, pair := range p.Baskets {
		p.Strategies = append(p.Strategies, pair.Strategy)
		groups = append(groups, group{[]declared.Strategy{pair.Strategy}, pair.Scenario.Name, func(ctx context.Context, seed uint64) ([]trial.Result, error) {
			result, err := basket.Run(ctx, t.benches[0], pair.Strategy, pair.Scenario, seed, nil)
			if err != nil {
				return nil, err
			}
			return []trial.Result{result}, nil
		}})
	}
	p.Strategies = slices.CompactFunc(p.Strategies, func(a, b declared.Strategy) bool { return a.Name == b.Name })
	r, err := p.runGroups(ctx, 1, groups, status)
	r.Environment = t.environment()
	return r, err
}
