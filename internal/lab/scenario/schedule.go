package scenario

import "math/rand/v2"

// schedule gives cargo to some of the first requests: the first at number three to
// five, and then one in every gap to gap+2. They come early, while there is stock: a request
// that finds nothing left does not come to its point.
func schedule(rng *rand.Rand, times, gap int, cargo func() Cargo) func(n int) Cargo {
	carries := make(map[int]Cargo, times)
	at := 3 + rng.IntN(3)
	for range times {
		carries[at] = cargo()
		at += gap + rng.IntN(3)
	}
	return func(n int) Cargo { return carries[n] }
}
