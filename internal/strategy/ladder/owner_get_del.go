package ladder

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var ownerGetDel = Declare(strategy.Strategy{
	Name: "owner-get-del",
	Doc:  "SET NX PX with a value of one's own; GET, compare in Go, DEL: the lock can change hands between the look and the delete",
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return polled{Options: d.Options, try: ownedBy(d, getThenDel)}, strategy.ReadThenWrite
	},
}, declared.Strategy{
	Source:     "the owner check as it is written without Lua",
	Guard:      "SET NX PX; GET, compare, DEL",
	Decrement:  "read-then-write",
	Telling:    "split-release",
	Servers:    declared.RewindProof,
	Properties: declared.Properties{Has: ownerChecked.Declared.Has &^ declared.AtomicRelease},
})

// ownedBy takes the lock with SET NX PX under a value of its own, which is freed by what by returns.
func ownedBy(d strategy.Deps, by func(client redis.UniversalClient, key, owner string) release) func(context.Context, string) (release, error) {
	return func(ctx context.Context, key string) (release, error) {
		owner := ownerID()
		ok, err := d.Redis.SetNX(ctx, key, owner, d.Lease).Result()
		if err != nil || !ok {
			return nil, err
		}
		sale.At(ctx, sale.Acquiring)
		return by(d.Redis, key, owner), nil
	}
}

// getThenDel frees the lock in two commands.
func getThenDel(client redis.UniversalClient, key, owner string) release {
	return func(ctx context.Context) error {
		is, err := client.Get(ctx, key).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		if is != owner {
			return errNotOwner
		}
		sale.At(ctx, sale.Releasing)
		return client.Del(ctx, key).Err()
	}
}
