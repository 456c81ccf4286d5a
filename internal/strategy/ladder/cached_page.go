package ladder

import "stocklock/internal/strategy"

var cachedPage = strategy.Strategy{
	Name:      "cached-page",
	Doc:       "the page shows the cache, and the sale reads the row: inside the reference lock, with a fence",
	Source:    "cached-read, mended: a copy is for those who look, and the row for those who decide",
	Guard:     strategy.ReferenceGuard,
	Decrement: "raise the fence, read, write where the fence is one's own; DEL the copy",
	Telling:   "page-view",
	Servers:   strategy.WritesAnywhere | strategy.RewindProof | strategy.SwitchoverProof,
	Properties: strategy.Properties{
		Has: reentrant.Properties.Has | strategy.StorageChecked | strategy.FreshRead,
	},
	State: copied,
	View:  viewThroughCache,
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return strategy.Reference(d), thenDelete(cache{d}, strategy.RepeatConflicts(d.Options, strategy.FencedReadThenWrite))
	},
}
