// Package trial runs the cells of a scenario: strategies whose customers buy on a bench, while the scenario plays.
//
// Each strategy sells items of its own. A crowd buys one of them while the scenario's [Play] holds, kills or pauses a sale;
// or a few customers do what the scenario's function says, on a bench that several strategies may share. Then the trial
// repairs the testbed, waits until all is at rest, and counts the sales by SQL. The counts give a verdict, which is
// compared with the strategy's properties. A trial never trusts the shops' own statements.
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
// Only the first sale has a lease that ends. All others have a lease of ten seconds in these cells, or a
// reservation of four leases, and nothing waits for its end. A machine that is paused for a second
// therefore changes no verdict, and no cell is run again. A stall makes a cell invalid only where the
// record names another sale that was inside past its lease, also one that the play held. Where a strategy
// answers before it writes, the cell is counted when what it answered is written.
//
// No purchase is sent beside itself until the first sale is at its point, nor while a second and a third
// one are to meet. A repeat would keep units reserved whose lease is taken for the first sale's. Two sales
// of one purchase that meet buy its units once, and a broken lock would hold.
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
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/count"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/seen"
	"stocklock/internal/lab/topology"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
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
	Waits *seen.MySQL
	// Alone means that no other bench uses the same MySQL, so that its counts are this bench's.
	Alone    bool
	NoQuorum words.Text // why strategies that need a quorum cannot run here; empty where they can
	NoEtcd   words.Text // why strategies that need etcd cannot
	Service  Service    // in the place of the lab's shops and tables; nil for those
	// Database is the servers of a topology, nil for a single one. Where they fail over, Store is opened anew.
	Database *topology.Servers
}

// LocksIn is the Redis that has the locks: the one given by address, or else that of the testbed. It is nil where
// nobody said where that is.
func (b Bench) LocksIn() redisconn.Client {
	if b.Redis == nil && b.Testbed != nil {
		return b.Testbed.Redis().Client
	}
	return b.Redis
}

// Service sells, and counts what it has sold, as a file describes it.
type Service interface {
	// Offer makes an item with so many units.
	Offer(ctx context.Context, units int64) (item uint64, err error)
	// Send has the customer of an order buy, at the shop of the order.
	Send(ctx context.Context, o load.Order) load.Answer
	// Count returns how many units of an item are left, and its orders by their customers: the ids of the requests.
	Count(ctx context.Context, item uint64) (left int64, orders map[string][]count.Order, err error)
	// Settle waits until no sale changes that any more, of an item that had so many units.
	Settle(ctx context.Context, item uint64, units int64) error
}

// Shop is one of the shops that sell.
type Shop struct {
	URL   string
	Staff string // the listener of the staff, empty without one
	Trace string // the file that it writes its trace to, empty without one
}

// ShopsOf are those of a testbed.
func ShopsOf(testbed *rig.Testbed) []Shop {
	var shops []Shop
	for _, shop := range testbed.Shops {
		shops = append(shops, Shop{URL: shop.URL, Staff: shop.Staff, Trace: shop.Trace()})
	}
	return shops
}

// Options are the settings that all cells of a run share.
type Options struct {
	Stock    int64               // units to sell
	Requests int                 // of a fixed load; the other scenarios go on until all is sold
	Workers  int                 // customers who buy at once; so many in a row that come to nothing end a cell
	Shape    load.Shape          // how requests are sent over time; the zero value sends as customers are free
	Timeout  time.Duration       // of one request
	Records  *load.Records       // where every request is written down, nil for nowhere
	Watch    Watch               // told what is seen while a cell of a crowd runs, nil for nobody
	Told     func(words.Text)    // called with each line of the story of a few; nil for nobody
	Lease    time.Duration       // of the locks
	Wait     time.Duration       // for a lock, until a sale is rejected as busy
	Offered  []declared.Strategy // by the shop: where one breaks, some of these would have held
	declared.Circumstances
	Conditions
}

// Conditions of the locks and of the work inside them may make numbers differ.
type Conditions struct {
	LeaseMS float64 `json:"lease_ms"`
	WaitMS  float64 `json:"wait_ms"`
	RetryMS float64 `json:"retry_ms"`
	WorkMS  float64 `json:"work_ms"`
}

// atOnce is how many requests may be under way: those with a shape are sent whether others are answered or not.
func (o Options) atOnce() int {
	if o.Shape.IsZero() {
		return o.Workers
	}
	return 1000
}

// maxCell bounds a cell that neither sells out nor gets stuck, besides the time that its load
// takes.
const maxCell = 90 * time.Second

// misfit is why a cell cannot be run here, and whether its strategy or its scenario is the cause.
type misfit struct {
	what   Unfit
	reason words.Text
	kind   verdict.Kind
}

// unfit says why a cell cannot be run here. The reason is empty where it can.
func unfit(b Bench, sc Scenario, of declared.Strategy, o Options) misfit {
	skipped := func(what Unfit, reason words.Text) misfit { return misfit{what, reason, verdict.Skipped} }
	switch {
	case sc.Topology != nil && sc.Topology.Missing() != nil:
		return skipped(UnfitScenario, words.Of("missing", "why", sc.Topology.Missing().Error()))
	case sc.OfBaskets() && sc.Expected(of).Verdict == verdict.Inapplicable:
		return misfit{UnfitEach, words.Of("unfit.nothing"), verdict.Inapplicable}
	case sc.Few != nil:
		return misfit{}
	case sc.Needs == Rig && (b.Testbed == nil || !b.Testbed.CommandsServers()):
		return skipped(UnfitScenario, words.Of("unfit.servers"))
	case sc.ShortWait && o.Wait >= o.Lease:
		return skipped(UnfitScenario, words.Of("unfit.wait", "wait", o.Wait.String(), "lease", o.Lease.String()))
	case of.Inapplicable[sc.Name] != "":
		return misfit{UnfitEach, words.AsItStands(of.Inapplicable[sc.Name]), verdict.Inapplicable}
	case sc.Misses(of) != "":
		return misfit{UnfitEach, sc.Crowd.neverPassed(sc.Misses(of)), verdict.Inapplicable}
	case b.Testbed == nil && !sc.Crowd.IsZero() && !sc.Crowd.Kill:
		return skipped(UnfitScenario, words.Of("unfit.shops"))
	case b.Testbed != nil && o.Lease > longestPlayed && of.Lease.Kept != declared.NoLease && (sc.Crowd.Kill || slices.Contains(sc.Crowd.Until, LeaseOver)):
		return skipped(UnfitScenario, words.Of("unfit.lease-long", "most", longestPlayed.String(), "lease", o.Lease.String()))
	case o.Lease < of.ShortestLease:
		return skipped(UnfitStrategy, words.Of("unfit.lease-short", "least", of.ShortestLease.String(), "lease", o.Lease.String()))
	case of.NeedsQuorum:
		return skipped(UnfitStrategy, b.NoQuorum)
	case of.NeedsEtcd:
		return skipped(UnfitStrategy, b.NoEtcd)
	default:
		return misfit{}
	}
}

// lacks asks Redis whether it knows a command that the strategy needs.
func (b Bench) lacks(ctx context.Context, of declared.Strategy) (misfit, error) {
	client := b.LocksIn()
	if client == nil && len(of.NeedsCommand) > 0 {
		return misfit{UnfitStrategy, words.Of("unfit.command-unasked", "commands", strings.Join(of.NeedsCommand, " or ")), verdict.Skipped}, nil
	}
	reason, err := rig.Lacks(ctx, client, of.NeedsCommand) // which asks nothing for no command
	return misfit{UnfitStrategy, reason, verdict.Skipped}, err
}

// ready repairs the testbed if something of it does not work. It waits for shops that were given by
// address and are still being restarted.
func (b Bench) ready(ctx context.Context) error {
	switch {
	case b.Service != nil:
		return nil
	case b.Testbed == nil:
		b.awaitShops(ctx)
		return nil
	}
	if err := b.Testbed.Repair(ctx); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return nil
}
