package step

import (
	"strings"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/declared"
)

// LocalClock says whether a strategy goes by other times than those of keys in Redis, as far as it
// declares: by the clock of its process, or by times in rows of its own.
func LocalClock(of declared.Strategy) bool {
	return of.Standing(declared.ClockFree) == declared.Lacks || of.Standing(declared.LossAware) == declared.Has || of.Lease.Kept == declared.LeaseInMySQL
}

// Inapplicable says why an event says nothing about a strategy, and nothing where it does.
func Inapplicable(of declared.Strategy, as schedule.Sales, e schedule.Event) words.Text {
	breaksRedis := e == schedule.FlushAll || e == schedule.Failover
	switch {
	case e == schedule.Kill && as.OneShop:
		return words.Of("inapplicable.one-shop")
	case e.AtTheWire():
		return words.Of("inapplicable.service")
	case of.NeedsEtcd && (breaksRedis || e == schedule.Forget):
		return words.Of("inapplicable.etcd")
	case of.NeedsQuorum && breaksRedis:
		return words.Of("inapplicable.quorum")
	case of.Lease.Kept == declared.LeaseInMySQL && e == schedule.Cut:
		return words.Of("inapplicable.lease")
	}
	return words.Text{}
}

// Unplayable says why schedules of a strategy cannot be played, and nothing where they can.
func Unplayable(of declared.Strategy) words.Text {
	switch {
	case of.ByChance:
		return words.Of("unplayable.chance")
	case len(of.State.Locks) > 0 && !strings.Contains(of.State.Locks[0], "%s"):
		return words.Of("unplayable.one-lock")
	case of.Background:
		return words.Of("unplayable.background")
	}
	return words.Text{}
}
