package scenario

import (
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

var lateRelease = Scenario{
	Name:    "late-release",
	Doc:     "a holder has written, and releases when its lease is over, another is in its section and a third waits",
	Attacks: declared.OwnerChecked,
	Play:    Play{At: sale.Written, Until: []Sight{LeaseOver, Another}, Third: true},
}
