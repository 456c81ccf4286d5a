package soak

import (
	"math"
	"math/rand/v2"

	"stocklock/internal/lab/audit"
)

// Popularity says which items customers buy. The zero value has each item in turn.
type Popularity struct {
	drawn    bool
	exponent float64
}

// The ways to draw the items of an order. No order has an item twice.
var (
	// Uniform draws each item with the same chance.
	Uniform = Popularity{drawn: true}
	// Zipf draws the r-th item with a chance in proportion to 1/r.
	Zipf = Popularity{drawn: true, exponent: 1}
)

// draw returns the items that the n-th customer buys, always the same.
func (p Popularity) draw(n, size int, all []audit.Run) []audit.Run {
	rng := rand.New(rand.NewPCG(uint64(n), uint64(size)))
	weights, sum := make([]float64, len(all)), 0.0
	for i := range weights {
		weights[i] = math.Pow(float64(i+1), -p.exponent)
		sum += weights[i]
	}
	basket := make([]audit.Run, 0, size)
	for len(basket) < size {
		at, drawn := 0, rng.Float64()*sum
		for ; at < len(all)-1 && drawn >= weights[at]; at++ {
			drawn -= weights[at]
		}
		if weights[at] == 0 {
			continue // rounding led to an item that is in the basket
		}
		sum -= weights[at]
		weights[at] = 0
		basket = append(basket, all[at])
	}
	return basket
}
