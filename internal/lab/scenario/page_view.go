package scenario

import (
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

var pageView = Scenario{
	Name:    "page-view",
	Doc:     "a page view has read the item's row when a sale writes it, and fills the cache after the sale has deleted or set the entry",
	Attacks: declared.FreshRead,
	Needs:   Rig,
	Play:    Play{At: sale.Viewed, Until: []Sight{Overtaken, CopyStored}},
}
