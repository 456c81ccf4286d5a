package ladder

import (
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var cachedPage = Declare(strategy.Strategy{
	Name: "cached-page",
	Doc:  "the page shows the cache, and the sale reads the row: inside the reference lock, with a fence",
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return strategy.Reference(d), thenDelete(cache{d}, strategy.RepeatConflicts(d.Options, strategy.FencedReadThenWrite))
	},
}, declared.Strategy{
	Source:    "cached-read, mended: a copy is for those who look, and the row for those who decide",
	Guard:     ReferenceGuard,
	Decrement: "raise the fence, read, write where the fence is one's own; DEL the copy",
	Telling:   "page-view",
	Servers:   declared.WritesAnywhere | declared.RewindProof | declared.SwitchoverProof,
	Properties: declared.Properties{
		Has: reentrant.Declared.Has | declared.StorageChecked | declared.FreshRead,
	},
	State: copied,
}).viewedBy(viewThroughCache)
