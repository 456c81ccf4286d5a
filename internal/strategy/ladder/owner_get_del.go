package ladder

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var ownerGetDel = readsUnder(strategy.Strategy{
	Name: "owner-get-del",
	Doc:  "SET NX PX with a value of one's own; GET, compare in Go, DEL: the lock can change hands between the look and the delete",
}, declared.Strategy{
	Source:     "the owner check as it is written without Lua",
	Guard:      "SET NX PX; GET, compare, DEL",
	Telling:    "split-release",
	Properties: declared.Properties{Has: ownerChecked.Declared.Has &^ declared.AtomicRelease},
}, func(d strategy.Deps) strategy.Guard { return polledBy(d, setOwner(d), getThenDel) })

// setOwner takes the lock with SET NX PX and the owner as its value.
func setOwner(d strategy.Deps) func(ctx context.Context, key, owner string) (bool, error) {
	return func(ctx context.Context, key, owner string) (bool, error) {
		return d.Redis.SetNX(ctx, key, owner, d.Lease).Result()
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
