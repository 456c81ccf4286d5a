package scenario

import (
	"math/rand/v2"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy"
)

var overrun = Scenario{
	Name:    "overrun",
	Doc:     "the work inside the section takes one and a half to three leases",
	Attacks: strategy.Renews,
	Plan: func(rng *rand.Rand, lease time.Duration) Plan {
		return Plan{Inject: schedule(rng, 3, 5, func() Injection {
			long := lease*3/2 + time.Duration(rng.Int64N(int64(lease*3/2)))
			return Injection{Fault: labmode.Fault{Point: sale.Read, Action: labmode.Sleep, For: long}}
		})}
	},
}
