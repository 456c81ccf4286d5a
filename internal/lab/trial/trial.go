// Package trial runs one cell: one strategy under one scenario.
//
// A trial makes an item of its own and orders it from the shops, while the scenario injects its
// faults. Then the trial repairs the testbed, waits until all is at rest, and counts the sales by
// SQL. The counts give a verdict, which is compared with the strategy's properties. A trial never
// trusts the shops' own statements.
//
//   - trial.go: the order of events
//   - attack.go: the load, and the faults meanwhile
//   - customers.go: the requests and their shops
//   - interventions.go: the interventions at the testbed
//   - purchases.go: what the customers buy, and buy again
//   - progress.go: the end of the attack
//   - afterwards.go: a restock, and customers after the attack
//   - changes.go: the notifications of Redis
//   - watch.go: what can be watched meanwhile
//   - verdict.go: the verdict
//   - result.go, timeline.go: the numbers
//
// # Decisions
//
// One sale is held between its release and its COMMIT. Where a strategy releases first, chance
// would decide whether another sale reads in between. In each cell of such a strategy, one of the
// first three sales is held there until another one has read, or until MySQL makes it wait. The
// scenario's own play begins after that.
//
// The lab asks the server for innodb_snapshot_isolation. With it, MariaDB refuses to write over
// what has changed since the snapshot, and a strategy may have more properties. --mysql-set starts
// a server with it.
//
// Every run has its own item, and therefore its own lock key. A late request of one run cannot
// affect the next run, and nothing has to be deleted between runs.
//
// Only the first sale has a lease that ends. All others have a lease of ten seconds in these cells,
// and nothing waits for its end. A machine that stands still for a second therefore changes no
// verdict, and no cell is run again. A stall makes a cell invalid only where the record names a
// sale that was inside past its lease without a fault. Where a strategy answers before it writes,
// the cell is counted when what it answered is written.
//
// A cell is stuck as soon as its record shows it. Every customer was refused since the last sale.
// Either the lock has no end within the cell, by its server, or it belongs to the sale that waits
// for it. Or the fence refused all of them: where tokens grow, the fence admits the latest.
//
// MariaDB's tables of waits are read by one reader. It fills them anew only when nobody has read
// them for 0.1 s, so the testbeds of a server share a reader.
//
// A restock comes when all is at rest. All is sold, every request was answered and nothing is held.
// A strategy that is not mixable promises nothing for a restock between its read and its write:
// whether that is lost would be chance. A strategy that counts units in Redis is not restocked,
// because it never finds them. An explanation speaks of the attack before the restock.
//
// Customers go on after the restock. A few buy side by side, and then one after another. With
// nothing else under way, the units say what each answer must be. So a refusal that no fault causes
// is seen: a fencing token that is too low, or a sold out that is never forgotten.
//
// A cell that may have lied or left units is counted again when it has settled. An order can be
// written after its answer. A cell has settled after 2 s without a new order, or after 10 s in any
// case.
package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/redisconn"
	"stocklock/internal/stock"
	"stocklock/internal/strategy/declared"
)

// Bench is where cells run, one at a time.
type Bench struct {
	Shops   []Shop
	Store   *stock.Store // for the item and the audit, apart from the shops' own
	Testbed *rig.Testbed // nil where servers and shops were given by address
	// Redis is where locks are looked at without a Testbed. It may be nil.
	Redis redisconn.Client
	// Waits asks the MySQL of the Store. Strategies that wait there need it.
	Waits *MySQLWaits
	// Alone means that no other bench uses the same MySQL, so that its counts are this bench's.
	Alone    bool
	NoQuorum string // why strategies that need a quorum cannot run here; empty where they can
	NoEtcd   string // why strategies that need etcd cannot
}

// Shop is one of the shops that sell.
type Shop struct {
	URL   string
	Trace string // the file that it writes its trace to, empty without one
}

// Cell is what to run.
type Cell struct {
	Strategy declared.Strategy
	Scenario scenario.Scenario
	Seed     uint64
}

// Options are the settings that all cells of a run share.
type Options struct {
	Stock    int64               // units to sell
	Requests int                 // of a fixed load; the other scenarios go on until all is sold
	Workers  int                 // customers who buy at once; each waits for its answer
	Shape    load.Shape          // how requests are sent over time; the zero value sends as customers are free
	Timeout  time.Duration       // of one request
	Records  *load.Records       // where every request is written down, nil for nowhere
	Watch    Watch               // told what is seen while a cell runs, nil for nobody
	Lease    time.Duration       // of the locks
	Wait     time.Duration       // for a lock, until a sale is rejected as busy
	Offered  []declared.Strategy // by the shop: where one breaks, some of these would have held
	declared.Circumstances
}

// maxCell bounds a cell that neither sells out nor gets stuck, besides the time that its load
// takes.
const maxCell = 90 * time.Second

// Run runs one cell, once. An error means that the harness cannot go on. A cell that ctx interrupted
// returns ctx's cause.
func Run(ctx context.Context, b Bench, c Cell, o Options) (Result, error) {
	r := newResult(c, o, len(b.Shops))
	why := unfit(b, c, o)
	if why.reason == "" {
		err := b.ready(ctx)
		if err == nil {
			why, err = b.lacks(ctx, c.Strategy)
		}
		if err != nil {
			return Result{}, err
		}
	}
	if why.reason != "" {
		r.Unfit = why.what
		r.Conclude(verdict.Judgement{Kind: cmp.Or(why.kind, verdict.Skipped), Problem: why.reason})
		return *r, nil
	}
	run, err := audit.Start(ctx, b.Store, audit.Run{
		ID: audit.NewID(c.Strategy.Name, c.Scenario.Name, c.Seed, 0), Strategy: c.Strategy.Name, Scenario: c.Scenario.Name,
		InitialStock: o.Stock, State: c.Strategy.State,
	})
	if err != nil {
		return Result{}, err
	}
	started := time.Now()
	a := newAttack(b, c, o, run)
	failed := a.run(ctx)
	if err := a.repair(ctx); err != nil {
		failed = errors.Join(failed, fmt.Errorf("after: %w", err))
	}
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	if err := a.measure(ctx, r); err != nil {
		return Result{}, err
	}
	evidence, err := a.evidence(ctx)
	if err != nil {
		return Result{}, err
	}
	r.Conclude(a.judge(r, evidence, failed))
	if verdict.Of(r.Verdict).Bad {
		r.WouldHold = c.Scenario.WouldHold(c.Strategy, o.Offered)
	}
	a.see(Look{At: time.Now(), Counts: audit.Counts{InitialStock: o.Stock, Restocked: r.Restocked, Remaining: r.Remaining, Sold: r.Sold, Oversold: r.Oversold}})
	a.see(evidence)
	r.Timeline = timeline(evidence, a.customers.hits)
	if r.Verdict != verdict.Invalid {
		evidence.Verdict = r.Verdict
		r.Explanation = explain.Explain(ctx, evidence)
	}
	r.Seconds = round(time.Since(started).Seconds(), 2)
	return *r, o.Records.Write(c.Strategy.Name+"/"+c.Scenario.Name, a.customers.records())
}

// misfit is why a cell cannot be run here, and whether its strategy or its scenario is the cause.
type misfit struct {
	what   Unfit
	reason string
	kind   verdict.Kind // Skipped for the zero value
}

// unfit says why a cell cannot be run here. The reason is empty where it can.
func unfit(b Bench, c Cell, o Options) misfit {
	play := c.Scenario.Play
	switch {
	case c.Scenario.Needs == scenario.Rig && (b.Testbed == nil || !b.Testbed.CommandsServers()):
		return misfit{what: UnfitScenario, reason: "needs servers that loadtest has started, and these were given by address. " +
			"Run it without --mysql, --redis and --shop, or with docker compose run --rm lab"}
	case c.Scenario.ShortWait && o.Wait >= o.Lease:
		return misfit{what: UnfitScenario, reason: fmt.Sprintf("needs a wait shorter than the lease, and these are %s and %s", o.Wait, o.Lease)}
	case c.Strategy.Inapplicable[c.Scenario.Name] != "":
		return misfit{what: UnfitEach, reason: c.Strategy.Inapplicable[c.Scenario.Name], kind: verdict.Inapplicable}
	case c.Scenario.Misses(c.Strategy) != "":
		return misfit{what: UnfitEach, reason: fmt.Sprintf("its %s never pass the point %s", c.Scenario.Play.Passing(), c.Scenario.Misses(c.Strategy)), kind: verdict.Inapplicable}
	case b.Testbed == nil && !play.IsZero() && !play.Kill:
		return misfit{what: UnfitScenario, reason: "needs shops that loadtest has started, and these were given by address. " +
			"Run it without --shop: --mysql and --redis may stay"}
	case o.Lease < c.Strategy.ShortestLease:
		return misfit{what: UnfitStrategy, reason: fmt.Sprintf("needs a lease of %s or more, and this one is %s: give --lease %[1]s", c.Strategy.ShortestLease, o.Lease)}
	case c.Strategy.NeedsQuorum:
		return misfit{what: UnfitStrategy, reason: b.NoQuorum}
	case c.Strategy.NeedsEtcd:
		return misfit{what: UnfitStrategy, reason: b.NoEtcd}
	default:
		return misfit{}
	}
}

// lacks asks Redis whether it knows a command that the strategy needs.
func (b Bench) lacks(ctx context.Context, of declared.Strategy) (misfit, error) {
	client := b.Redis
	switch {
	case len(of.NeedsCommand) == 0:
		return misfit{}, nil
	case client == nil && b.Testbed == nil:
		return misfit{what: UnfitStrategy, reason: fmt.Sprintf("needs a Redis that knows %s: say with --redis where the one of the shops is",
			strings.Join(of.NeedsCommand, " or "))}, nil
	case client == nil:
		client = b.Testbed.Redis().Client
	}
	reason, err := rig.Lacks(ctx, client, of.NeedsCommand)
	return misfit{what: UnfitStrategy, reason: reason}, err
}

// ready repairs the testbed if something of it does not work. It waits for shops that were given by
// address and are still being restarted.
func (b Bench) ready(ctx context.Context) error {
	if b.Testbed == nil {
		b.awaitShops(ctx)
		return nil
	}
	broken := b.Testbed.Check(ctx)
	if broken == nil {
		return nil
	}
	if err := b.Testbed.Repair(ctx); err != nil {
		return errors.Join(broken, err, context.Cause(ctx))
	}
	return nil
}
