package scenario

import (
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

var overrun = Scenario{
	Name:    "overrun",
	Doc:     "the work inside the section takes longer than the lease",
	Attacks: declared.Renews,
	Play:    Play{At: sale.Read, Until: []Sight{LeaseOver, Another}},
}
