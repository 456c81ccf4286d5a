package ladder

import (
	"context"

	"stocklock/internal/sale"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var setExNx = Declare(strategy.Strategy{
	Name: "set-ex-nx",
	Doc:  "SET with NX and an expiry in one command, DEL to free it: frees whoever's lock it is by then",
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return polled{Options: d.Options, try: func(ctx context.Context, key string) (release, error) {
			ok, err := d.Redis.SetNX(ctx, key, 1, d.Lease).Result()
			if err != nil || !ok {
				return nil, err
			}
			sale.At(ctx, sale.Acquiring)
			return plainDel(d.Redis, key), nil
		}}, strategy.ReadThenWrite
	},
}, declared.Strategy{
	Source:    "the SET command's page before it warns; the usual answer to setnx's deadlock",
	Guard:     "SET NX PX; DEL",
	Decrement: "read-then-write",
	Telling:   "late-release",
	Servers:   declared.RewindProof,
	Properties: declared.Properties{
		Has:           declared.DurableAnswers | declared.Once | declared.Exclusive | declared.Recovers | declared.AtomicLease | declared.ClockFree,
		NotApplicable: declared.AtomicRelease,
	},
})
