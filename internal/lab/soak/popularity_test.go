package soak

import (
	"math"
	"slices"
	"testing"

	"stocklock/internal/lab/audit"
)

// TestItemsAreDrawnByTheirLaw: no basket has an item twice, and the first item has the share of its law.
func TestItemsAreDrawnByTheirLaw(t *testing.T) {
	const items, customers = 64, 100_000
	all, harmonic := make([]audit.Run, items), 0.0
	for i := range all {
		all[i].ItemID = uint64(i + 1)
		harmonic += 1 / float64(i+1)
	}
	for name, law := range map[string]struct {
		Popularity
		first float64 // its share of the orders of one line
	}{"uniform": {Uniform, 1.0 / items}, "zipf": {Zipf, 1 / harmonic}} {
		first := 0
		for n := range customers {
			for _, size := range []int{1, 20, items} {
				basket := law.draw(n, size, all)
				if len(basket) != size {
					t.Fatalf("%s: %d items, want %d", name, len(basket), size)
				}
				if size == 1 && basket[0].ItemID == 1 {
					first++
				}
				if n > 100 {
					break // sizes are looked at of the first customers
				}
				ids := make([]uint64, size)
				for i, item := range basket {
					ids[i] = item.ItemID
				}
				slices.Sort(ids)
				if len(slices.Compact(ids)) != size {
					t.Fatalf("%s: customer %d has an item twice", name, n)
				}
			}
		}
		if share := float64(first) / customers; math.Abs(share-law.first) > 4*math.Sqrt(law.first/customers) {
			t.Errorf("%s: the first item has %.4f of the orders, want %.4f", name, share, law.first)
		}
	}
}
