// Package trial runs one cell: one strategy under one scenario.
//
// A trial makes an item of its own, attacks it through the shops, lets the
// scenario strike, heals, waits for quiet, and has SQL count what was sold. From
// that comes a verdict, and whether it is the one that the strategy's properties
// promise. What the shops say of themselves is never trusted.
package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// Bench is what cells run on. A bench runs one cell at a time.
type Bench struct {
	Shops   []string     // base URLs
	Store   *stock.Store // for the item and the audit, apart from the shops' own
	Testbed *rig.Testbed // nil where servers and shops were given by address
	Redis   *redis.Client
	// Redis is for looking at locks where there is no Testbed; it may be nil.
	// Alone: no other bench uses the same MySQL, so that its counts are this bench's.
	Alone    bool
	NoQuorum string // why strategies that need a quorum cannot run here; empty where they can
}

// Cell is what to run.
type Cell struct {
	Strategy strategy.Strategy
	Scenario scenario.Scenario
	Seed     uint64
}

// Options are the settings that all cells of a run share.
type Options struct {
	Stock    int64         // units there are
	Requests int           // requests under contention; the other scenarios go on until all is sold
	Workers  int           // customers who buy at once; each waits for its answer
	Shape    Shape         // how they are sent over time; without one, as customers are free
	Timeout  time.Duration // of one request
	Records  *Records      // where every request is written down, nil for nowhere
	strategy.Options
}

// maxCell bounds a cell that neither sells out nor gets stuck, besides the time that its load takes.
const maxCell = 90 * time.Second

// maxTries is how often a cell is run that says nothing about its strategy, because the machine stalled or
// because a fault or a repair failed.
const maxTries = 3

// Run runs one cell. An error means that the harness cannot go on; what only
// spoils this cell is the verdict Invalid, after [maxTries] at most. A cell that was interrupted by ctx
// returns ctx's cause.
func Run(ctx context.Context, b Bench, c Cell, o Options) (Result, error) {
	var spoiled []string
	for {
		result, hits, err := runOnce(ctx, b, c, o)
		result.Spoiled = spoiled
		if err != nil {
			return result, err
		}
		if !result.again || len(spoiled) == maxTries-1 {
			return result, o.Records.write(result, hits)
		}
		spoiled = append(spoiled, result.Reason)
	}
}

func runOnce(ctx context.Context, b Bench, c Cell, o Options) (Result, []*hit, error) {
	result := newResult(c, o, len(b.Shops))
	if c.Scenario.Needs == scenario.Rig && (b.Testbed == nil || !b.Testbed.CommandsServers()) {
		return result.skip("it commands servers, and these were given by address"), nil, nil
	}
	if c.Scenario.ShortWait && o.Wait >= o.Lease {
		return result.skip(fmt.Sprintf("it needs a wait shorter than the lease, and these are %s and %s", o.Wait, o.Lease)), nil, nil
	}
	if c.Strategy.NeedsQuorum && b.NoQuorum != "" {
		return result.skip(b.NoQuorum), nil, nil
	}
	if b.Testbed != nil {
		if err := b.Testbed.Check(ctx); err != nil {
			if err := b.Testbed.Repair(ctx); err != nil {
				return result, nil, errors.Join(err, context.Cause(ctx))
			}
		}
	}
	runID := fmt.Sprintf("%s-%s-%d-%s", c.Strategy.Name, c.Scenario.Name, c.Seed, time.Now().UTC().Format("150405.000000"))
	run, err := audit.Start(ctx, b.Store, audit.Run{
		ID: runID, Strategy: c.Strategy.Name, Scenario: c.Scenario.Name, InitialStock: o.Stock,
	})
	if err != nil {
		return result, nil, err
	}
	rng := rand.New(rand.NewPCG(c.Seed, 0))
	plan := c.Scenario.Plan(rng, o.Lease)
	started := time.Now()
	a := newAttack(b, c, o, plan, run)
	if err := a.run(ctx); err != nil {
		result = result.spoil(err.Error())
	}
	if repairErr := a.repair(ctx); repairErr != nil && ctx.Err() == nil {
		result = result.spoil("after: " + repairErr.Error())
	}
	if ctx.Err() != nil {
		return result, nil, context.Cause(ctx)
	}
	if err := quiet(ctx, b.Store, run.ID, a.unknown() > 0, o.Lease); err != nil {
		return result, nil, err
	}
	result.fill(a)
	if err := count(ctx, b.Store, run.ID, a.hits, &result); err != nil {
		return result, nil, err
	}
	result.judge(a)
	evidence, err := a.evidence(ctx)
	if err != nil {
		return result, nil, err
	}
	if result.Surprise() && result.Verdict != scenario.Invalid {
		if why := cmp.Or(evidence.Stall(), a.stall()); why != "" {
			result = result.spoil(fmt.Sprintf("%s, but the machine stalled: %s", result.Verdict, why))
		}
	}
	result.Timeline = timeline(evidence, a.hits)
	if result.Verdict != scenario.Invalid {
		result.Explanation = explain.Explain(evidence)
	}
	result.Seconds = round(time.Since(started).Seconds(), 2)
	return result, a.hits, nil
}

// quiet waits until no order can come any more. When every request has its answer,
// that is now; when some have none, it is when the orders have not grown for a lease.
func quiet(ctx context.Context, store *stock.Store, run string, doubtful bool, lease time.Duration) error {
	if !doubtful {
		return nil
	}
	orders, since := int64(-1), time.Now()
	for time.Since(since) < lease {
		a, err := audit.Count(ctx, store, run)
		if err != nil {
			return err
		}
		if a.Orders != orders {
			orders, since = a.Orders, time.Now()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lease / 10):
		}
	}
	return nil
}

// count has the database count, and holds the answers against the orders.
func count(ctx context.Context, store *stock.Store, run string, hits []*hit, r *Result) error {
	a, err := audit.Count(ctx, store, run)
	if err != nil {
		return err
	}
	orders, err := audit.Requests(ctx, store, run)
	if err != nil {
		return err
	}
	r.Sold, r.Remaining, r.Oversold, r.LostUpdates, r.Duplicates = a.Sold, a.Remaining, a.Oversold, a.LostUpdates, a.Duplicates
	for _, h := range hits {
		switch n := orders[h.id]; {
		case h.outcome == Sold && n == 0:
			r.AnswersWithoutOrder++
		case h.outcome != Sold && n > 0:
			r.OrdersWithoutAnswer += n
		}
	}
	return nil
}

// ErrInterrupted: the run was ended from outside.
var ErrInterrupted = errors.New("interrupted")
