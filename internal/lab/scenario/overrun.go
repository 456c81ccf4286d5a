package scenario

import (
	"stocklock/internal/sale"
	"stocklock/internal/strategy"
)

var overrun = Scenario{
	Name:    "overrun",
	Doc:     "the work inside the section takes longer than the lease",
	Attacks: strategy.Renews,
	Play:    Play{At: sale.Read, Until: []Sight{LeaseOver, Another}},
}
