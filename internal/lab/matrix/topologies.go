package matrix

import (
	"cmp"
	"context"
	"sync"
	"time"

	"stocklock/internal/lab/report"
	"stocklock/internal/lab/topology"
	"stocklock/internal/lab/trial"
)

// casesAtOnce is how many cases run at once: each waits for its servers, most of the time.
const casesAtOnce = 4

// runCases is [Run] for databases of more than one server. All strategies of a case share its servers. Of the plan count
// the seed, the number of runs, how many run at once and the programs.
func (p Plan) runCases(ctx context.Context, status *Status) (report.Report, error) {
	p.Lease, p.Wait, p.Retry, p.Shops, p.Workers, p.Work = topology.Lease, topology.Wait, topology.Retry, topology.Shops, 1, pointer(time.Duration(0))
	atOnce := p.Parallel
	p = p.Completed()
	where := (&testbeds{plan: p}).environment()
	where.Testbeds, where.ServersGiven = 1, false
	var mu sync.Mutex // guards where
	var groups []group
	for _, c := range p.Cases {
		strategies := c.Of(p.Strategies)
		groups = append(groups, group{strategies, c.Name(), func(ctx context.Context, seed uint64) ([]trial.Result, error) {
			status.Say("starting " + c.Topology.Name)
			results, versions, err := topology.Run(ctx, c, strategies, topology.Programs{Shop: p.Shop, Redis: p.RedisServer}, seed, nil)
			mu.Lock()
			defer mu.Unlock()
			where.MySQL, where.Redis = cmp.Or(versions.MySQL, where.MySQL), cmp.Or(versions.Redis, where.Redis)
			return results, err
		}})
	}
	r, err := p.runGroups(ctx, cmp.Or(atOnce, casesAtOnce), groups, status)
	r.Environment = where
	return r, err
}
