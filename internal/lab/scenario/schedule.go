package scenario

import "math/rand/v2"

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
