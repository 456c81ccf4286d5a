package scenario

import (
	"context"
	"fmt"
	"slices"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/seen"
	"stocklock/internal/lab/topology"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/declared"
)

// ofEachKind are strategies that differ in how a sale meets a database that fails over. The others of their kinds end
// as they do.
var ofEachKind = []string{"redis-async", "ack-first", "redis-stream", "reentrant", "get-lock", "fenced", "for-update", "conditional"}

// toServers is what happens to the servers of a database, whatever their topology.
type toServers struct {
	name, doc string
	// attacks is the property without which more is sold than there is, or a sale is answered as sold without an
	// order. 0 attacks the topology alone.
	attacks   declared.Property
	otherwise verdict.Kind
	// forgets says that the primary is lost with what nobody else has. Where the topology is not durable, answers
	// rest on that. A strategy that counts in Redis, and does not recover, leaves the units of a sale that was on
	// its way.
	forgets bool
	only    []string // see [trial.Scenario]
	stock   int64
	play    func(*servers)
}

// happens lists, in the order of the tables, what decides something on which topology.
var happens = []struct {
	on  string
	all []toServers
}{
	{"single", []toServers{losing("failover", "the server is killed, and started again with its disk", failOver)}},
	{"async", []toServers{primaryLost, {
		name: "rewind", doc: "a sale has read; its primary is lost with the last sales, and others sell until the version is the same again",
		attacks: declared.RewindProof, otherwise: verdict.Oversold, forgets: true, stock: 24, play: rewound,
	}, {
		name: "switchover", doc: "the replica becomes the primary as planned, and a shop has connections to the old one, which is read-only",
		attacks: declared.SwitchoverProof, otherwise: verdict.Oversold, stock: 3, play: switchOver,
	}, comesBack}},
	{"semi-sync", []toServers{primaryLost, {
		name: "silent", doc: "the replica is silent until customers wait, and is heard again", only: ofEachKind, stock: 12, play: silent,
	}, comesBack}},
	{"semi-sync-timeout", []toServers{primaryLost}},
	{"replica-reads", []toServers{{
		name: late, doc: "the replica has not applied the last sale when the next one reads",
		attacks: declared.ReadsSource, otherwise: verdict.Oversold, stock: 3, play: lateCopy,
	}}},
	{"galera", []toServers{
		losing("failover", "the node that is written to is killed before the others applied its last commits, and another takes over", failOver),
		losing("isolated", "the node that is written to is cut off from the others, which go on", isolated, ofEachKind...),
	}},
	{"galera-writers", []toServers{{
		name: late, doc: "the second node has not applied the last sale when its own shop sells",
		attacks: declared.WritesAnywhere, otherwise: verdict.Oversold, stock: 3, play: lateCopy,
	}}},
}

var (
	primaryLost = losing("failover", "the primary is killed before its last commits were copied, and another server takes over", failOver)
	comesBack   = losing("errant", "after a failover the old primary comes back with transactions that nobody else has, and a shop is led to it", errant, ofEachKind...)
)

// losing makes one that loses the primary with what nobody else has.
func losing(name, doc string, play func(*servers), only ...string) toServers {
	return toServers{name: name, doc: doc, attacks: declared.DurableAnswers, otherwise: verdict.Lied, forgets: true, only: only, stock: 12, play: play}
}

// late is the name of what shows old reads, without any fault.
const late = "late"

// topologies are the scenarios of databases of several servers. Their names begin with that of the topology.
func topologies() (all []trial.Scenario) {
	for _, h := range happens {
		t := &topology.All[slices.IndexFunc(topology.All, func(t topology.Topology) bool { return t.Name == h.on })]
		for _, what := range h.all {
			demands := []trial.Demand{}
			if what.attacks != 0 {
				demands = append(demands, trial.Demand{Property: what.attacks, Otherwise: what.otherwise})
			}
			if what.forgets {
				demands = append(demands, trial.Demand{Durable: true, Otherwise: verdict.Lied},
					trial.Demand{Property: declared.Recovers, Otherwise: verdict.Held, Counted: verdict.Left})
			}
			all = append(all, trial.Scenario{
				Name: t.Name + "-" + what.name, Doc: what.doc, Group: t.Name, Topology: t, Attacks: what.attacks, Demands: demands,
				Only: what.only, Stock: []int64{what.stock}, Few: untilSoldOut(what.play),
			})
		}
	}
	return all
}

// OversellsUnderLoad reports whether a strategy sells by old reads on a topology, without any fault.
func OversellsUnderLoad(on topology.Topology, of declared.Strategy) bool {
	return slices.ContainsFunc(Of(on.Name), func(s trial.Scenario) bool {
		return s.Name == on.Name+"-"+late && s.Expected(of).Verdict == verdict.Oversold
	})
}

// untilSoldOut sells what is left after a play, and asks the servers what they have committed.
func untilSoldOut(play func(*servers)) func(context.Context, *trial.Group) error {
	return func(ctx context.Context, g *trial.Group) error {
		p := &servers{Group: g, ctx: ctx}
		play(p)
		p.each(func(ctx context.Context, s *trial.Show) error {
			if err := sellOut(ctx, s); err != nil {
				return err
			}
			return settle(ctx, s)
		})
		p.do(g.Record)
		return p.err
	}
}

// sell sells so many units, one after the other, at the first shop: others may have a node of their own, which
// is behind.
func sell(ctx context.Context, s *trial.Show, units int) error {
	for range units {
		if got := s.Buy(ctx, 0, 1); got != load.Sold {
			return fmt.Errorf("a customer before the failure was answered with %s", got)
		}
	}
	return nil
}

// The rest of the stock is sold to customers who come again when they are kept out, each so often at least, and for as
// long as [servesAgain].
const (
	mostAsks   = 40
	askAgainIn = 50 * time.Millisecond
)

// sellOut sells what is left, one unit after the other, at all shops in turn, until two customers were
// answered as sold out since the last sale.
func sellOut(ctx context.Context, s *trial.Show) error {
	refused, again, sold, last := 0, 0, int64(0), time.Now()
	var kept seen.Quiet
	for n := 0; refused < 2; n++ {
		switch got := s.Buy(ctx, n%len(s.Shops), 1); got {
		case load.Sold:
			refused, again, sold, last = 0, 0, sold+1, time.Now()
		case load.SoldOut:
			refused++
		default:
			again++
			if kept.Until(last, time.Now(), s.Scenario.Settings().Wait) > servesAgain(s) && again > mostAsks {
				s.Stuck = true
				return nil
			}
			if err := seen.Pause(ctx, askAgainIn); err != nil {
				return err
			}
		}
		if sold > 8*s.Items[0].InitialStock+mostAsks {
			return nil // the counts say enough
		}
	}
	return nil
}

// servesAgain is how long a server that comes back, or what a dead one has kept, may keep customers from a sale.
func servesAgain(s *trial.Show) time.Duration { return 3 * s.Scenario.Settings().Lease }

// settle waits until an order was written for every unit that was counted, or nothing is written any more: a worker
// takes over what another one has not written after a lease.
func settle(ctx context.Context, s *trial.Show) error {
	if !s.Of.Counts() {
		return nil
	}
	last, since := int64(-1), time.Now()
	return s.Await(ctx, "nothing is written any more", func() (bool, error) {
		counts, err := audit.Count(ctx, s.Store, s.Items[0])
		if counts.Sold != last {
			last, since = counts.Sold, time.Now()
		}
		return err == nil && (counts.Remaining <= 0 || time.Since(since) > servesAgain(s)), err
	})
}
