package polling

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// NewWithoutLua returns a locker for platforms that forbid scripts. It takes a lock with SET NX PX.
// It extends and releases a lock with WATCH, GET, MULTI and EXEC, which occupies a connection of
// the pool each time.
func NewWithoutLua(client redis.UniversalClient, o Options) *Locker {
	o = o.withDefaults()
	return newLocker(watchStore{client, o.margin()}, o)
}

// watchStore compares and writes in a transaction that fails if the key has changed since it was
// read.
type watchStore struct {
	client redis.UniversalClient
	margin time.Duration
}

func (s watchStore) set(ctx context.Context, key, value string, lease time.Duration) (time.Duration, bool, error) {
	ok, err := once{s.client}.setNX(ctx, key, value, lease)
	return lease - s.margin, ok, err
}

func (s watchStore) extend(ctx context.Context, key, value string, lease time.Duration) (time.Duration, bool, error) {
	ok, err := s.ifMine(ctx, key, value, func(p redis.Pipeliner) { p.PExpire(ctx, key, lease) })
	return lease - s.margin, ok, err
}

func (s watchStore) drop(ctx context.Context, key, value string) (bool, error) {
	return s.ifMine(ctx, key, value, func(p redis.Pipeliner) { p.Del(ctx, key) })
}

func (s watchStore) ifMine(ctx context.Context, key, value string, write func(redis.Pipeliner)) (bool, error) {
	mine := false
	err := s.client.Watch(ctx, func(tx *redis.Tx) error {
		current, err := tx.Get(ctx, key).Result()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		if err != nil || current != value {
			return err
		}
		_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			write(p)
			return nil
		})
		mine = err == nil
		return err
	}, key)
	if errors.Is(err, redis.TxFailedErr) {
		return false, nil // it changed in between, so it is not ours any more
	}
	return mine, err
}
