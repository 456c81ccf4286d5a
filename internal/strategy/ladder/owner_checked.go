package ladder

import (
	"context"
	_ "embed"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var ownerChecked = Declare(strategy.Strategy{
	Name: "owner-checked",
	Doc:  "SET NX PX with a value of one's own, freed by a script that deletes only that value: right until work outlasts the lease",
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return polled{Options: d.Options, try: ownedBy(d, compareAndDelete)}, strategy.ReadThenWrite
	},
}, declared.Strategy{
	Source:    "redis.io, Distributed Locks with Redis, the single-instance algorithm",
	Guard:     "SET NX PX; script: GET equals, DEL",
	Decrement: "read-then-write",
	Telling:   "overrun",
	Servers:   declared.RewindProof,
	Properties: declared.Properties{
		Has: declared.DurableAnswers | declared.Once | declared.Exclusive | declared.Recovers | declared.AtomicLease |
			declared.OwnerChecked | declared.AtomicRelease | declared.ClockFree,
	},
})

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
