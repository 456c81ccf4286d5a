package scenario

import "math/rand/v2"

// schedule gives injection to some of the first requests: the first at number three to
// five, and then one in every gap to gap+2. They come early, while there is stock: a request
// that finds nothing left does not come to its point.
func schedule(rng *rand.Rand, times, gap int, injection func() Injection) func(n int) Injection {
	carries := make(map[int]Injection, times)
	at := 3 + rng.IntN(3)
	for range times {
		carries[at] = injection()
		at += gap + rng.IntN(3)
	}
	return func(n int) Injection { return carries[n] }
}
