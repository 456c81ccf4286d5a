package scenario

import (
	"context"

	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

// ofOneServer are the scenarios of a crowd at one server.
var ofOneServer = []trial.Scenario{
	contention,
	{
		Name: "crash", Doc: "a shop is killed with kill -9 inside its section, right after it read the stock, and starts again",
		Attacks: declared.Recovers,
		Demands: []trial.Demand{{Property: declared.Exclusive, Otherwise: verdict.Oversold}, {Property: declared.DurableAnswers, Otherwise: verdict.Left}, {Property: declared.Recovers, Otherwise: verdict.Stuck, Counted: verdict.Left}},
		Crowd:   killAt(sale.Read),
	},
	{
		Name: "crash-acquiring", Doc: "a shop is killed with kill -9 at the earliest moment at which Redis has its lock, and starts again",
		Attacks: declared.AtomicLease,
		Demands: []trial.Demand{{Property: declared.Exclusive, Otherwise: verdict.Oversold}, {Property: declared.Recovers, Otherwise: verdict.Stuck}, {Property: declared.AtomicLease, Otherwise: verdict.Stuck}},
		Crowd:   killAt(sale.Acquiring),
	},
	{
		Name: "crash-answered", Doc: "a shop is killed with kill -9 right after it has answered a sale, and starts again",
		Attacks: declared.DurableAnswers,
		Demands: []trial.Demand{{Property: declared.Exclusive, Otherwise: verdict.Oversold}, {Property: declared.DurableAnswers, Otherwise: verdict.Lied}},
		Crowd:   killAt(sale.Answered),
	},
	{
		Name: "overrun", Doc: "the work inside the section takes longer than the lease",
		Attacks: declared.Renews,
		Crowd:   trial.Play{At: sale.Read, Until: []trial.Sight{trial.LeaseOver, trial.Another}},
	},
	{
		Name: "late-release", Doc: "a holder has written, and releases after its lease: another is in the section, and a third waits",
		Attacks: declared.OwnerChecked,
		Crowd:   trial.Play{At: sale.Written, Until: []trial.Sight{trial.LeaseOver, trial.Another}, Third: true},
	},
	{
		Name: "split-release", Doc: "a holder is late inside its release: between the check and the delete where there are two steps, before the only step where there is one",
		Attacks: declared.AtomicRelease,
		Demands: []trial.Demand{{Property: declared.Exclusive, Otherwise: verdict.Oversold}, {Property: declared.OwnerChecked, Otherwise: verdict.Oversold}, {Property: declared.AtomicRelease, Otherwise: verdict.Oversold}},
		Crowd:   trial.Play{At: sale.Releasing, Until: []trial.Sight{trial.LeaseOver, trial.Another}, Third: true},
	},
	{
		Name: "nested", Doc: "the sale takes its own lock a second time on the way, and the wait is shorter than the lease",
		Attacks: declared.Reentrant,
		Demands: []trial.Demand{{Property: declared.Reentrant, Otherwise: verdict.Stuck}, {Property: declared.Exclusive, Otherwise: verdict.Oversold}},
		// A wait longer than the lease would outlive the deadlock: busy for long, not stuck.
		ShortWait: true,
		Crowd:     trial.Play{Nested: true, Until: []trial.Sight{trial.Again}},
	},
	{
		Name: "clock-skew", Doc: "one shop's clock runs ahead by ten leases, while a sale of another shop is in its section",
		Attacks: declared.ClockFree, Needs: trial.Rig,
		Crowd: trial.Play{
			At: sale.Read, Settled: true, Until: []trial.Sight{trial.Another}, FromFirstShop: true,
			Prepare: shiftClock(ahead.String()), Restore: shiftClock(""), Intervention: "clock-ahead " + ahead.String(),
		},
	},
	{
		Name: "partition", Doc: "one shop silently loses Redis, but not MySQL, and its work takes longer than the lease",
		Attacks: declared.LossAware, Needs: trial.Rig,
		Demands: []trial.Demand{{Property: declared.Exclusive, Otherwise: verdict.Oversold}, {Property: declared.Recovers, Otherwise: verdict.Stuck, Counted: verdict.Held}, {Property: declared.LossAware, Otherwise: verdict.Oversold}},
		Crowd: trial.Play{
			At: sale.Read, Until: []trial.Sight{trial.LeaseOver, trial.Another},
			Intervene: func(_ context.Context, testbed *rig.Testbed, at trial.Reached) error {
				return testbed.Shops[at.Shop].CutOff()
			},
			Relieve: func(_ context.Context, testbed *rig.Testbed, at trial.Reached) error {
				testbed.Shops[at.Shop].Reconnect()
				return nil
			},
			Intervention: "redis-cut",
		},
	},
	{
		Name: "failover", Doc: "replication lags, a holder is in its section, the primary dies and the replica that does not know the lock takes over",
		Attacks: declared.SurvivesDataLoss, Needs: trial.Rig,
		Crowd: duringLoss(trial.Play{
			Prepare:      func(_ context.Context, testbed *rig.Testbed) error { return testbed.HoldBackReplication() },
			Intervene:    func(ctx context.Context, testbed *rig.Testbed, _ trial.Reached) error { return testbed.FailOver(ctx) },
			Intervention: "primary-lost",
		}),
	},
	{
		Name: "redis-restart", Doc: "a holder is in its section, and Redis is killed and starts again without its data; of a quorum, one server",
		Attacks: declared.SurvivesDataLoss, Needs: trial.Rig,
		Crowd: duringLoss(trial.Play{
			Intervene: func(ctx context.Context, testbed *rig.Testbed, _ trial.Reached) error {
				return testbed.RestartRedis(ctx)
			},
			Intervention: "redis-emptied",
		}),
	},
	{
		// The shop of the holder is stopped, so that nothing touches its lock, which becomes the key that
		// Redis has not used for the longest time.
		Name: "eviction", Doc: "a holder is in its section, and Redis under allkeys-lru runs out of memory and evicts its lock; of a quorum, one server",
		Attacks: declared.SurvivesDataLoss, Needs: trial.Rig,
		Crowd: duringLoss(trial.Play{
			Intervene: func(ctx context.Context, testbed *rig.Testbed, at trial.Reached) error {
				return testbed.Evict(ctx, at.Keys)
			},
			Intervention: "memory-full",
		}),
	},
	{
		Name: "pause", Doc: "a whole shop is stopped with SIGSTOP after its last look at the lock, right before its UPDATE, until past its lease",
		Attacks: declared.PauseProof,
		Crowd:   trial.Play{At: sale.Write, Paused: true, Until: []trial.Sight{trial.LeaseOver, trial.Another}},
	},
	{
		Name: "page-view", Doc: "a page view has read the item's row when a sale writes it, and fills the cache after the sale has deleted or set the entry",
		Attacks: declared.FreshRead, Needs: trial.Rig,
		Crowd: trial.Play{At: sale.Viewed, Until: []trial.Sight{trial.Overtaken, trial.CopyStored}},
	},
	{
		Name: "commit-unanswered", Doc: "MySQL carries out the COMMIT of a sale, and the connection breaks before the answer",
		Attacks: declared.Once,
		Demands: []trial.Demand{{Property: declared.Exclusive, Otherwise: verdict.Oversold}, {Property: declared.Once, Otherwise: verdict.Twice}},
		Crowd:   trial.Play{At: sale.Write, Lose: true, Until: []trial.Sight{trial.AnswerLost}},
	},
}

var contention = trial.Scenario{
	Name: "contention", Doc: "many customers want the last units at once; nothing else goes wrong",
	Attacks: declared.Exclusive, Comparable: true,
}

func killAt(p sale.Point) trial.Play {
	return trial.Play{At: p, Kill: true, Until: []trial.Sight{trial.Exited, trial.Another}, Third: true}
}

// duringLoss stops the holder's whole shop at write, while Redis loses the lock. A holder that was
// only held would learn from its watchdog that the lock is gone.
func duringLoss(p trial.Play) trial.Play {
	p.At, p.Paused, p.Settled, p.Until = sale.Write, true, true, []trial.Sight{trial.Another}
	return p
}

const ahead = 10 * trial.LongLease

// shiftClock restarts the first shop with another clock.
func shiftClock(by string) func(context.Context, *rig.Testbed) error {
	return func(ctx context.Context, testbed *rig.Testbed) error {
		return testbed.Shops[0].RestartWith(ctx, "SHOP_LAB_CLOCK_SKEW", by)
	}
}
