package soak

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"stocklock/internal/sale"
)

// episode is a group of faults that overlap. The next episode begins when the shops have recovered
// from this one, so that each recovery can be measured.
type episode struct {
	calm   time.Duration // before it
	faults []fault
}

type fault struct {
	*kind
	shop  int           // where it is injected into one
	point sale.Point    // where it is injected into a sale
	after time.Duration // since the episode began
	lasts time.Duration

	missed bool // no sale reached the point
}

func (f fault) String() string {
	var b strings.Builder
	b.WriteString(f.name)
	if f.onShop {
		fmt.Fprintf(&b, " %d", f.shop+1)
	}
	if f.inSale {
		fmt.Fprintf(&b, " at %s", f.point)
	}
	if f.lasts > 0 {
		fmt.Fprintf(&b, " for %s", f.lasts)
	}
	return b.String()
}

// schedule makes episodes from its seed.
type schedule struct {
	rng   *rand.Rand
	shops int
	kinds []*kind
	deck  []*kind // what has not been injected since all were
}

func newSchedule(seed uint64, shops int, kinds []*kind) *schedule {
	return &schedule{rng: rand.New(rand.NewPCG(seed, 1)), shops: shops, kinds: kinds}
}

func (s *schedule) next() episode {
	e := episode{calm: s.between(300*time.Millisecond, 1500*time.Millisecond)}
	taken := map[string]bool{}
	for range 1 + s.rng.IntN(3) {
		f := s.draw()
		if slices.ContainsFunc(f.affects(f.shop), func(part string) bool { return taken[part] }) {
			s.deck = append(s.deck, f.kind) // later: two faults of one part would hide each other
			continue
		}
		for _, part := range f.affects(f.shop) {
			taken[part] = true
		}
		e.faults = append(e.faults, f)
	}
	return e
}

// points are those that a sale reaches under every strategy.
var points = []sale.Point{sale.Read, sale.Write, sale.Written}

// draw takes kinds as from a pack of cards, so that all are equally frequent.
func (s *schedule) draw() fault {
	if len(s.deck) == 0 {
		s.deck = slices.Clone(s.kinds)
	}
	i := s.rng.IntN(len(s.deck))
	f := fault{kind: s.deck[i]}
	s.deck = slices.Delete(s.deck, i, i+1)
	first := 0
	if f.ends && s.shops > 1 {
		first = 1 // shop 1 lives to the end: a leak grows in it for the whole time
	}
	f.shop = first + s.rng.IntN(s.shops-first)
	f.point = points[s.rng.IntN(len(points))]
	f.after = s.between(0, 800*time.Millisecond)
	f.lasts = s.between(f.shortest, f.longest)
	return f
}

// between rounds to tens of milliseconds.
func (s *schedule) between(least, most time.Duration) time.Duration {
	const grain = 10 * time.Millisecond
	return least + time.Duration(s.rng.Int64N(int64((most-least)/grain)+1))*grain
}
