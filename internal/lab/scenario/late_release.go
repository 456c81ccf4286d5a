package scenario

import (
	"math/rand/v2"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy"
)

var lateRelease = Scenario{
	Name:    "late-release",
	Doc:     "a holder has written, and releases when its lease is over, another is in its section and a third waits",
	Attacks: strategy.OwnerChecked,
	Plan:    lateAt(sale.Written),
}

// lateAt delays several holders, and makes the other sales work long: each late release must fall
// into the section of another sale, and not between two sections.
func lateAt(p sale.Point) func(*rand.Rand, time.Duration) Plan {
	return func(rng *rand.Rand, lease time.Duration) Plan {
		late := schedule(rng, 7, 2, func() Injection {
			// Just past the lease: by then the next holder has read the stock and is at work.
			d := lease*51/50 + time.Duration(rng.Int64N(int64(lease/25)))
			return Injection{Fault: labmode.Fault{Point: p, Action: labmode.Sleep, For: d}}
		})
		return Plan{Inject: func(n int) Injection {
			if i := late(n); i.HasFault() {
				return i
			}
			return Injection{Work: lease / 10}
		}}
	}
}
