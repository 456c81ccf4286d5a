package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/declared"
)

// Group is a scenario on its bench, for all strategies that share it: one, or several whose database fails over for all
// of them. Its exported methods are for plays: one goroutine at a time calls them, unless they say more.
type Group struct {
	*Bench
	Scenario Scenario
	Shows    []*Show
	Seed     uint64 // of the cells

	o       Options
	feed    *feed
	traces  []traceFile
	history // of the servers of a topology
}

// patience bounds the play of a few. What was not seen by then makes its cells invalid.
const (
	patience           = 30 * time.Second
	patienceOfTopology = 2 * time.Minute  // servers start meanwhile
	patienceOfService  = 10 * time.Minute // of which each answer may take a minute
)

// Run runs the cells of a scenario with these strategies, once, on a bench that they share. All but those of a topology
// have one strategy. An error means that the harness cannot go on. Run returns ctx's cause when ctx interrupts it.
func Run(ctx context.Context, b *Bench, sc Scenario, strategies []declared.Strategy, seed uint64, o Options) ([]Result, error) {
	g := &Group{Bench: b, Scenario: sc, Seed: seed, o: o, feed: newFeed()}
	began := time.Now()
	results := make([]Result, len(strategies))
	for i, of := range strategies {
		results[i] = newResult(sc, of, seed, o, len(b.Shops))
		show, why, err := g.admit(ctx, of)
		switch {
		case err != nil:
			return nil, err
		case show != nil:
			show.result = &results[i]
			g.Shows = append(g.Shows, show)
		default:
			results[i].Unfit = why.what
			results[i].Lacks = why.reason
			results[i].Conclude(verdict.Judgement{Kind: why.kind, Problem: why.reason.String()})
		}
	}
	if len(g.Shows) == 0 {
		return results, nil
	}
	var err error
	if sc.Few == nil {
		err = g.Shows[0].attack(ctx)
	} else {
		err = g.play(ctx)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, show := range g.Shows {
		if err != nil && show.result.Verdict == "" { // it is in the report, too
			show.result.Conclude(verdict.Failed("%v", err))
		}
		show.result.Seconds = round(time.Since(began).Seconds()/float64(len(g.Shows)), 2)
	}
	return results, err
}

// admit makes the items of a strategy, or says why it is no cell here.
func (g *Group) admit(ctx context.Context, of declared.Strategy) (*Show, misfit, error) {
	why := unfit(*g.Bench, g.Scenario, of, g.o)
	if why.reason.IsZero() {
		err := g.Bench.ready(ctx)
		if err == nil {
			why, err = g.Bench.lacks(ctx, of)
		}
		if err != nil {
			return nil, why, err
		}
	}
	if !why.reason.IsZero() {
		return nil, why, nil
	}
	show := &Show{Group: g, Of: of, run: audit.NewID(of.Name, g.Scenario.Name, g.Seed, len("-50"))}
	stocks := g.Scenario.Stock
	if stocks == nil {
		stocks = []int64{g.o.Stock}
	}
	for i, units := range stocks {
		id := show.run
		if len(stocks) > 1 {
			name := i + 1
			if g.Scenario.Named {
				name = len(stocks) - i
			}
			id = fmt.Sprint(id, "-", name)
		}
		item := audit.Run{ID: id, Strategy: of.Name, Scenario: g.Scenario.Name, InitialStock: units, State: of.State}
		var err error
		if g.Service != nil {
			item.ItemID, err = g.Service.Offer(ctx, units)
		} else {
			item, err = audit.Start(ctx, g.Store, item)
		}
		if err != nil {
			return nil, why, err
		}
		show.Items = append(show.Items, item)
	}
	show.customers = newCustomers(len(g.Shops), fmt.Sprint(show.Items[0].ItemID), newWishes(g.Scenario, of, g.Seed, show.Items[0]))
	return show, why, nil
}

// play has a few customers do what the scenario says, and judges the cells.
func (g *Group) play(ctx context.Context) error {
	limit := patience
	switch {
	case g.Service != nil:
		limit = patienceOfService
	case g.Database != nil:
		limit = patienceOfTopology
		g.history = newHistory(len(g.Database.Nodes))
		if err := g.Database.Copied(ctx); err != nil {
			return err
		}
	}
	if g.Scenario.OfBaskets() { // in whose Redis every key is the cell's: a lock of a way may be no item's
		if err := g.Testbed.Redis().Client.Do(ctx, "FLUSHALL").Err; err != nil {
			return err
		}
	}
	deadlocks := g.countDeadlocks(ctx)
	playing, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	following, stop := context.WithCancel(ctx)
	g.markTraces()
	for shop := range g.traces {
		g.feed.following.Go(func() { g.follow(following, shop, g.feed.add) })
	}
	failed := g.Scenario.Few(playing, g)
	for _, show := range g.Shows {
		failed = errors.Join(failed, show.finish(playing, failed != nil))
	}
	stop()
	g.feed.following.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if g.Database == nil && g.Service == nil {
		if err := g.Testbed.Repair(ctx); err != nil {
			return fmt.Errorf("after %s: %w", g.Scenario.Name, err)
		}
	}
	for _, show := range g.Shows {
		if err := show.conclude(ctx, failed); err != nil {
			return err
		}
		show.result.Deadlocks = deadlocks()
	}
	return nil
}

// ErrNotSeen is in the chain of the error of a play that was to see something and did not.
var ErrNotSeen = errors.New("what the play waits for was never seen")

// Await waits until is reports true, or ctx ends. What says what that is. An error of is counts when ctx ends.
func (g *Group) Await(ctx context.Context, what string, is func() (bool, error)) error {
	var last error
	seen := g.feed.await(ctx, func() (so bool) {
		so, last = is()
		return so
	})
	if seen {
		return nil
	}
	return fmt.Errorf("%w: %s: %w", ErrNotSeen, what, errors.Join(last, context.Cause(ctx)))
}

// atOnce is how many strategies sell at the same time, where they need not wait for each other.
const atOnce = 8

// Each calls do for every strategy, several at a time. An error is of that strategy's cell alone, unless ctx
// has ended.
func (g *Group) Each(ctx context.Context, do func(context.Context, *Show) error) error {
	var all errgroup.Group
	all.SetLimit(atOnce)
	for _, s := range g.Shows {
		all.Go(func() error {
			s.Fail(do(ctx, s))
			return ctx.Err()
		})
	}
	return all.Wait()
}

// Beside returns a show without a result, whose sales are to be had beside the others.
func (g *Group) Beside(ctx context.Context, strategy string, units int64) (*Show, error) {
	run := audit.Run{ID: "beside-" + time.Now().UTC().Format("150405.000000"), Strategy: strategy, InitialStock: units}
	item, err := audit.Start(ctx, g.Store, run)
	return &Show{Group: g, Of: declared.Strategy{Name: strategy}, Items: []audit.Run{item}, run: item.ID,
		customers: newCustomers(len(g.Shops), fmt.Sprint(item.ItemID), wishes{})}, err
}

// ShopsReady waits until all shops can sell.
func (g *Group) ShopsReady(ctx context.Context) error {
	return g.Await(ctx, "every shop is ready", func() (bool, error) {
		for _, shop := range g.Shops {
			if err := rig.Ready(ctx, shop.URL); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}
