package scenario

import (
	"stocklock/internal/lab/trial"
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

var pageView = trial.Scenario{
	Name:    "page-view",
	Doc:     "a page view has read the item's row when a sale writes it, and fills the cache after the sale has deleted or set the entry",
	Attacks: declared.FreshRead,
	Needs:   trial.Rig,
	Crowd:   trial.Play{At: sale.Viewed, Until: []trial.Sight{trial.Overtaken, trial.CopyStored}},
}
