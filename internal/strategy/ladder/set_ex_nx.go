package ladder

import (
	"context"

	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var setExNx = readsUnder(strategy.Strategy{
	Name: "set-ex-nx",
	Doc:  "SET with NX and an expiry in one command, DEL to free it: frees whoever's lock it is by then",
}, declared.Strategy{
	Source:  "the SET command's page before it warns; the usual answer to setnx's deadlock",
	Guard:   "SET NX PX; DEL",
	Telling: "late-release",
	Properties: declared.Properties{
		Has:           declared.DurableAnswers | declared.Once | declared.Exclusive | declared.Recovers | declared.AtomicLease | declared.ClockFree,
		NotApplicable: declared.AtomicRelease,
	},
}, func(d strategy.Deps) strategy.Guard {
	return polledBy(d, func(ctx context.Context, key, _ string) (bool, error) {
		return d.Redis.SetNX(ctx, key, 1, d.Lease).Result()
	}, plainDel)
})
