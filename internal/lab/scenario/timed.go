package scenario

import (
	"math/rand/v2"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

// Timed is a play for shops that the lab did not start: it cannot see what their sales do, so faults
// last for a guessed time, and there are several. It returns the fault of the n-th request, counted
// from 0. The same seed makes the same faults.
func (p Play) Timed(rng *rand.Rand, lease time.Duration) func(n int) labmode.Fault {
	const times, gap = 5, 4
	chosen := map[int]labmode.Fault{}
	at := First(rng)
	for range times {
		chosen[at] = p.timedFault(rng, lease)
		at += gap + rng.IntN(3)
	}
	return func(n int) labmode.Fault {
		fault, faulty := chosen[n]
		if !faulty && p.Third && !p.Kill { // so that another sale is in its section when a late one releases
			return labmode.Fault{Point: sale.Read, Action: labmode.Sleep, For: lease / 10}
		}
		return fault
	}
}

func (p Play) timedFault(rng *rand.Rand, lease time.Duration) labmode.Fault {
	switch {
	case p.At == "":
		return labmode.Fault{}
	case p.Kill:
		return labmode.Fault{Point: p.At, Action: labmode.Kill}
	case p.Lose:
		return labmode.Fault{Point: p.At, Action: labmode.Lose}
	case p.Paused:
		return labmode.Fault{Point: p.At, Action: labmode.Stop, For: 2 * lease}
	case p.Third: // just past the lease: by then the next holder is at work
		return labmode.Fault{Point: p.At, Action: labmode.Sleep, For: lease*51/50 + time.Duration(rng.Int64N(int64(lease/25)))}
	default:
		return labmode.Fault{Point: p.At, Action: labmode.Sleep, For: lease*3/2 + time.Duration(rng.Int64N(int64(lease*3/2)))}
	}
}

// First returns the number of the request whose sale is the first of a play, counted from 0. It comes
// early, while there is stock.
func First(rng *rand.Rand) int { return 3 + rng.IntN(3) }
