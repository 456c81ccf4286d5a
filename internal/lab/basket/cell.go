package basket

import (
	"context"
	"fmt"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/redisconn"
	"stocklock/internal/strategy/declared"
)

// The shops of baskets have these settings. No lease ends but that of a play, and a customer who is kept
// out is refused while the play goes on.
const (
	Lease = 10 * time.Second
	Wait  = time.Second
	// Shops is how many of them a play needs.
	Shops = 3
)

// patience bounds a play. What was not seen by then makes the cell invalid.
const patience = 30 * time.Second

// cell is one way under one scenario. Its methods are called by the play alone.
type cell struct {
	bench     trial.Bench
	of        declared.Strategy
	scenario  Scenario
	seed      uint64
	id        string // under which its orders are counted
	items     []audit.Run
	customers []*customer
	feed      *trial.Points
	redis     redisconn.Client

	stuckAt string // the lock without an end that refuses everybody, empty for none
	story   []string
	told    func(line string) // is called with each line of the story
}

// Run runs one cell, once. It calls told, unless that is nil, with each line of the story when that was seen.
// An error means that the harness cannot go on.
func Run(ctx context.Context, b trial.Bench, of declared.Strategy, s Scenario, seed uint64, told func(line string)) (trial.Result, error) {
	expected := s.Expected(of)
	r := trial.Result{Strategy: of.Name, Scenario: s.Name, Baskets: true, Seed: seed, Runs: 1, Shops: len(b.Shops), Expected: expected.Verdict, Because: expected.Because}
	if expected.Verdict == verdict.Inapplicable {
		r.Conclude(verdict.Judgement{Kind: verdict.Inapplicable, Problem: "the way has nothing that this scenario attacks"})
		return r, nil
	}
	c := &cell{bench: b, of: of, scenario: s, seed: seed, told: told, id: audit.NewID(of.Name, s.Name, seed, len("-1"))}
	began := time.Now()
	if err := c.prepare(ctx); err != nil {
		return trial.Result{}, err
	}
	deadlocks, err := audit.Deadlocks(ctx, b.Store)
	if err != nil {
		return trial.Result{}, err
	}
	failed := c.run(ctx)
	if err := b.Testbed.Repair(ctx); err != nil {
		return trial.Result{}, fmt.Errorf("after %s: %w", c.id, err)
	}
	if ctx.Err() != nil {
		return trial.Result{}, context.Cause(ctx)
	}
	facts, err := c.count(ctx, &r)
	if err != nil {
		return trial.Result{}, err
	}
	if now, err := audit.Deadlocks(ctx, b.Store); err == nil {
		now -= deadlocks
		r.Deadlocks = &now
	}
	judgement := facts.Verdict()
	if failed != nil {
		judgement = verdict.Failed("%v", failed)
	}
	if judgement.Kind == verdict.Stuck {
		r.Waiting = facts.Waiting
	}
	r.Story, r.Seconds = c.story, time.Since(began).Seconds()
	r.Conclude(judgement)
	return r, nil
}

// prepare makes the items, and an empty Redis, in which every key is the cell's.
func (c *cell) prepare(ctx context.Context) error {
	c.redis = c.bench.Testbed.Redis().Client
	if err := c.redis.Do(ctx, "FLUSHALL").Err; err != nil {
		return err
	}
	for i, units := range c.scenario.stock {
		name := i + 1
		if c.scenario.named {
			name = len(c.scenario.stock) - i
		}
		item, err := audit.Start(ctx, c.bench.Store, audit.Run{
			ID: fmt.Sprint(c.id, "-", name), Strategy: c.of.Name, Scenario: c.scenario.Name, InitialStock: units, State: c.of.State,
		})
		if err != nil {
			return err
		}
		c.items = append(c.items, item)
	}
	return nil
}

// run plays, and waits for the answers of all customers.
func (c *cell) run(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	following, stop := context.WithCancel(ctx)
	c.feed = trial.FollowPoints(following, c.bench.Shops, func(run string) bool { return run == c.id })
	defer func() {
		for _, customer := range c.customers {
			c.release(context.WithoutCancel(ctx), customer)
		}
		for _, shop := range c.bench.Testbed.Shops {
			_ = shop.Resume() // of one that runs, it does nothing
		}
		for _, customer := range c.customers {
			answered := func() bool {
				c.release(ctx, customer) // it may be held again
				return customer.answered()
			}
			if !c.await(ctx, answered) && err == nil {
				err = fmt.Errorf("%s was never answered", customer.name)
			}
		}
		stop()
		c.feed.Wait()
	}()
	return c.scenario.play(ctx, c)
}

// tell adds a line to the story.
func (c *cell) tell(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	c.story = append(c.story, line)
	if c.told != nil {
		c.told(line)
	}
}
