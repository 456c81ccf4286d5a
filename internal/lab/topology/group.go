package topology

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/stock"
	"stocklock/internal/strategy/declared"
)

// The shops have these settings. A sale that is held has the longest lease there is, and nobody waits for that.
const (
	Lease = 4 * time.Second
	Wait  = time.Second
	Retry = 2 * time.Millisecond
	// Shops is how many of them sell.
	Shops = 3
)

// patience bounds the play of a case. What was not seen by then makes its cells invalid.
const patience = 2 * time.Minute

// atOnce is how many strategies sell at the same time, where they need not wait for each other.
const atOnce = 8

// group is the strategies of a case, on its servers and shops.
type group struct {
	Case
	*servers
	rig      *rig.Rig
	testbed  *rig.Testbed
	shops    []trial.Shop
	store    *stock.Store // on the server that counts now
	points   *trial.Points
	counts   int // the server that store is on
	cells    []*cell
	versions Versions
	unfit    map[string]string // why a strategy cannot run here, by its name
	told     func(server string, what explain.Text)
	history  // of the servers
}

// Programs are what is started: the shop, empty for the one of the checkout, and Redis, empty for the one of the machine.
type Programs struct{ Shop, Redis string }

// Versions are those of the servers.
type Versions struct{ MySQL, Redis string }

// Run runs a case for all of these strategies, on servers and shops of its own, which end with it. Where the servers
// cannot start on this machine, all are skipped, without versions. Run calls told, unless that is nil, with what a server
// does or meets, when that was seen. An error means that the harness cannot go on.
func Run(ctx context.Context, c Case, strategies []declared.Strategy, programs Programs, seed uint64, told func(server string, what explain.Text)) ([]trial.Result, Versions, error) {
	if missing := c.Topology.Missing(); missing != nil {
		return skipped(c, strategies, seed, missing), Versions{}, nil
	}
	began := time.Now()
	g, err := open(ctx, c, strategies, programs)
	if err != nil {
		return nil, Versions{}, err
	}
	defer g.close()
	g.told = told
	playing, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	following, stop := context.WithCancel(ctx)
	g.points = trial.FollowPoints(following, g.shops, func(run string) bool {
		return slices.ContainsFunc(g.cells, func(c *cell) bool { return c.item.ID == run })
	})
	failed := c.Scenario.play(playing, g)
	if failed == nil {
		failed = g.each(playing, func(ctx context.Context, c *cell) error { return errors.Join(c.sellOut(ctx), c.settle(ctx)) })
	}
	if failed == nil {
		failed = g.record(playing)
	}
	stop()
	g.points.Wait()
	if ctx.Err() != nil {
		return nil, Versions{}, context.Cause(ctx)
	}
	var results []trial.Result
	seconds := time.Since(began).Seconds() / float64(len(strategies))
	for _, of := range strategies {
		r := newResult(c, of, seed)
		if why := g.unfit[of.Name]; why != "" {
			r.Unfit = trial.UnfitStrategy
			r.Conclude(verdict.Judgement{Kind: verdict.Skipped, Problem: why})
		} else if err := g.cell(of.Name).conclude(ctx, failed, &r); err != nil {
			return nil, Versions{}, err
		}
		r.Seconds = seconds
		results = append(results, r)
	}
	return results, g.versions, nil
}

func open(ctx context.Context, c Case, strategies []declared.Strategy, programs Programs) (_ *group, err error) {
	g := &group{Case: c, unfit: map[string]string{}}
	defer func() {
		if err != nil {
			g.close()
		}
	}()
	if g.rig, err = rig.New(programs.Shop); err != nil {
		return nil, err
	}
	g.rig.RedisProgram = programs.Redis
	if g.servers, err = c.Topology.start(ctx, g.rig); err != nil {
		return nil, err
	}
	g.history = newHistory(len(g.nodes))
	if err := g.countOn(0); err != nil {
		return nil, err
	}
	if err := g.store.Migrate(ctx, slog.New(slog.DiscardHandler)); err != nil {
		return nil, err
	}
	if err := g.copied(ctx); err != nil {
		return nil, err
	}
	quorum := 0
	if slices.ContainsFunc(strategies, func(s declared.Strategy) bool { return s.NeedsQuorum }) {
		quorum = rig.QuorumServers
	}
	if g.testbed, err = g.servers.testbed(ctx, g.rig, rig.TestbedOptions{Quorum: quorum, Trace: true, Env: map[string]string{
		"SHOP_LEASE": Lease.String(), "SHOP_WAIT": Wait.String(), "SHOP_RETRY": Retry.String(),
	}}); err != nil {
		return nil, err
	}
	if err := g.askVersions(ctx); err != nil {
		return nil, err
	}
	for _, shop := range g.testbed.Shops {
		g.shops = append(g.shops, trial.Shop{URL: shop.URL, Trace: shop.Trace()})
	}
	for _, of := range strategies {
		lacking, err := g.rig.Lacks(ctx, of.NeedsCommand)
		if err != nil {
			return nil, err
		}
		if lacking != "" {
			g.unfit[of.Name] = lacking
			continue
		}
		item, err := audit.Start(ctx, g.store, audit.Run{
			ID:       of.Name + "-" + time.Now().UTC().Format("150405.000000"), // each case has databases of its own
			Strategy: of.Name, Scenario: c.Name(), InitialStock: c.Scenario.stock, State: of.State,
		})
		if err != nil {
			return nil, err
		}
		g.cells = append(g.cells, &cell{group: g, of: of, item: item})
	}
	return g, g.copied(ctx)
}

func (g *group) askVersions(ctx context.Context) (err error) {
	if g.versions.MySQL, err = g.store.Version(ctx); err != nil {
		return err
	}
	if !strings.Contains(g.versions.MySQL, "MariaDB") {
		g.versions.MySQL = "MySQL " + g.versions.MySQL
	}
	g.versions.Redis, err = rig.RedisVersion(ctx, g.testbed.Redis().Client)
	return err
}

func (g *group) close() {
	if g.store != nil {
		g.store.Close()
	}
	if g.rig != nil {
		g.rig.Close()
	}
}

// countOn counts on a server from now on.
func (g *group) countOn(node int) error {
	if g.store != nil {
		g.store.Close()
	}
	var err error
	g.counts = node
	g.store, err = stock.Open(g.nodes[node].DSN())
	return err
}

// each calls do for every strategy, several at a time. An error is of that strategy's cell alone, unless ctx
// has ended.
func (g *group) each(ctx context.Context, do func(context.Context, *cell) error) error {
	var all errgroup.Group
	all.SetLimit(atOnce)
	for _, c := range g.cells {
		all.Go(func() error {
			if err := do(ctx, c); err != nil && c.problem == nil {
				c.problem = err
			}
			return ctx.Err()
		})
	}
	return all.Wait()
}

// noteAll adds it to the records of all cells.
func (g *group) noteAll(server int, what explain.Phrase, f explain.Facts) {
	for _, c := range g.cells {
		c.note(server, what, f)
	}
	if g.told != nil {
		g.told(g.history.of[server].Name, explain.Text{Phrase: what, Facts: f})
	}
}

// ready waits until all shops can sell.
func (g *group) ready(ctx context.Context) error {
	return g.await(ctx, "every shop is ready", func() (bool, error) {
		for _, shop := range g.shops {
			if err := rig.Ready(ctx, shop.URL); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

var errNotSeen = errors.New("what the play waits for was never seen")

const lookEvery = 10 * time.Millisecond

// await waits until is reports true. What says what that is.
func (g *group) await(ctx context.Context, what string, is func() (bool, error)) error {
	for {
		so, err := is()
		if so {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %s: %w", errNotSeen, what, errors.Join(err, context.Cause(ctx)))
		case <-time.After(lookEvery):
		}
	}
}

// cell returns the cell of a strategy.
func (g *group) cell(name string) *cell {
	return g.cells[slices.IndexFunc(g.cells, func(c *cell) bool { return c.of.Name == name })]
}

func newResult(c Case, of declared.Strategy, seed uint64) trial.Result {
	expected := c.Expected(of)
	return trial.Result{
		Strategy: of.Name, Scenario: c.Name(), Topology: c.Topology.Name, Seed: seed, Runs: 1, Shops: Shops, InitialStock: c.Scenario.stock,
		Expected: expected.Verdict, Because: expected.Because,
	}
}

// skipped are the results of a case whose servers cannot start on this machine.
func skipped(c Case, strategies []declared.Strategy, seed uint64, missing error) []trial.Result {
	results := make([]trial.Result, len(strategies))
	for i, of := range strategies {
		results[i] = newResult(c, of, seed)
		results[i].Unfit = trial.UnfitScenario
		results[i].Conclude(verdict.Judgement{Kind: verdict.Skipped, Problem: missing.Error()})
	}
	return results
}
