package scenario

import (
	"math/rand/v2"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

// schedule chooses the requests that are injected into: one of the numbers 3 to 5, and from there
// one in every gap to gap+2. All come early, while there is stock: a request that finds none left
// does not reach its point.
func schedule(rng *rand.Rand, times, gap int, injection func() Injection) func(n int) Injection {
	chosen := make(map[int]Injection, times)
	at := 3 + rng.IntN(3)
	for range times {
		chosen[at] = injection()
		at += gap + rng.IntN(3)
	}
	return func(n int) Injection { return chosen[n] }
}

// stopHolders stops the holder's whole shop at write, while Redis loses the lock. A holder that only
// slept would learn from its watchdog that the lock is gone, and would not write. One is enough: the
// others are spares, in case the first is rejected as busy.
func stopHolders(rng *rand.Rand, lease time.Duration) func(n int) Injection {
	return schedule(rng, 3, 2, func() Injection {
		// So short that a lease which was renewed a third of it earlier is not over, and nothing but
		// the loss can have admitted a second holder.
		short := lease * 6 / 10
		return Injection{Fault: labmode.Fault{Point: sale.Write, Action: labmode.Stop, For: short}, Alone: true, InTurn: true}
	})
}
