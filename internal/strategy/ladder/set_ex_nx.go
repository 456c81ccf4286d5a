package ladder

import (
	"context"

	"stocklock/internal/sale"
	"stocklock/internal/strategy"
)

var setExNx = strategy.Strategy{
	Name:      "set-ex-nx",
	Doc:       "SET with NX and an expiry in one command, DEL to free it: frees whoever's lock it is by then",
	Source:    "the SET command's page before it warns; the usual answer to setnx's deadlock",
	Guard:     "SET NX PX; DEL",
	Decrement: "read-then-write",
	Telling:   "late-release",
	Servers:   strategy.RewindProof,
	Properties: strategy.Properties{
		Has: strategy.DurableAnswers | strategy.Once | strategy.Exclusive | strategy.Recovers | strategy.AtomicLease |
			strategy.ClockFree,
		NotApplicable: strategy.AtomicRelease,
	},
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return polled{Options: d.Options, try: func(ctx context.Context, key string) (lease, error) {
			ok, err := d.Redis.SetNX(ctx, key, 1, d.Lease).Result()
			if err != nil || !ok {
				return nil, err
			}
			sale.At(ctx, sale.Acquiring)
			return plainDel{d.Redis, key}, nil
		}}, strategy.ReadThenWrite
	},
}
