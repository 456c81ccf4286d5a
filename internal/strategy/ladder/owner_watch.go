package ladder

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var ownerWatch = readsUnder(strategy.Strategy{
	Name: "owner-watch",
	Doc:  "SET NX PX with a value of one's own; WATCH, GET, MULTI, DEL, EXEC: an atomic release where scripts are forbidden",
}, declared.Strategy{
	Source:     "the owner check with Redis transactions, as on platforms without EVAL",
	Guard:      "SET NX PX; WATCH, GET, MULTI, DEL, EXEC",
	Telling:    "nested",
	Properties: ownerChecked.Declared.Properties,
}, func(d strategy.Deps) strategy.Guard { return polledBy(d, setOwner(d), watchedDel) })

// watchedDel frees the lock in a transaction that fails if the lock has changed since it was read.
func watchedDel(client redis.UniversalClient, key, owner string) release {
	return func(ctx context.Context) error {
		return client.Watch(ctx, func(tx *redis.Tx) error {
			is, err := tx.Get(ctx, key).Result()
			if err != nil && !errors.Is(err, redis.Nil) {
				return err
			}
			if is != owner {
				return errNotOwner
			}
			sale.At(ctx, sale.Releasing)
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				return p.Del(ctx, key).Err()
			})
			return err
		}, key)
	}
}
