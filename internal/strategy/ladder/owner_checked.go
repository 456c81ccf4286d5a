package ladder

import (
	"context"
	_ "embed"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var ownerChecked = readsUnder(strategy.Strategy{
	Name: "owner-checked",
	Doc:  "SET NX PX with a value of one's own, freed by a script that deletes only that value: right until work outlasts the lease",
}, declared.Strategy{
	Source:  "redis.io, Distributed Locks with Redis, the single-instance algorithm",
	Guard:   "SET NX PX; script: GET equals, DEL",
	Telling: "overrun",
	Properties: declared.Properties{
		Has: declared.DurableAnswers | declared.Once | declared.Exclusive | declared.Recovers | declared.AtomicLease |
			declared.OwnerChecked | declared.AtomicRelease | declared.ClockFree,
	},
}, func(d strategy.Deps) strategy.Guard { return polledBy(d, setOwner(d), compareAndDelete) })

var (
	//go:embed compare_and_delete.lua
	compareAndDeleteSource string
	compareAndDeleteScript = redis.NewScript(compareAndDeleteSource)
)

// compareAndDelete frees the lock in one script, and only its own.
func compareAndDelete(client redis.UniversalClient, key, owner string) release {
	return func(ctx context.Context) error {
		sale.At(ctx, sale.Releasing)
		return compareAndDeleteScript.Run(ctx, client, []string{key}, owner).Err()
	}
}
