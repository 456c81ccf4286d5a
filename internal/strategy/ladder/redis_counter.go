package ladder

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

var (
	//go:embed take_counted.lua
	takeCountedSource string
	takeCountedScript = redis.NewScript(takeCountedSource)
)

// counter keeps an item's stock in Redis. A missing counter is set from MySQL's stock, at most once
// a lease. Nothing else reconciles the two.
type counter struct{ strategy.Deps }

// counted has the keys of an item's counter, and of the mark that a process has set it, for a
// lease.
var counted = strategy.State{Keys: []string{"{%s}:left"}, RareKeys: []string{"{%s}:loading"}}

func counterKey(itemID uint64) string { return strategy.KeysOf(counted.Keys, itemID)[0] }

// take takes units by a script, and returns the units left. The script's first key is the counter,
// and its first argument is the number of units.
func (c counter) take(ctx context.Context, wanted stock.Sale, script *redis.Script, keys []string, args ...any) (left int64, err error) {
	keys = append([]string{counterKey(wanted.ItemID)}, keys...)
	args = append([]any{wanted.Quantity}, args...)
	for giveUp := time.Now().Add(c.Wait); ; {
		left, err = script.Run(ctx, c.Redis, keys, args...).Int64()
		switch {
		case err == nil && left < 0:
			return 0, stock.ErrSoldOut
		case err == nil:
			return left, nil
		case !errors.Is(err, redis.Nil):
			return 0, fmt.Errorf("take %d of item %d in Redis: %w", wanted.Quantity, wanted.ItemID, err)
		}
		if err := c.load(ctx, wanted.ItemID); err != nil {
			return 0, err
		}
		if time.Now().After(giveUp) {
			return 0, strategy.ErrBusy
		}
		select {
		case <-time.After(c.Retry):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// load sets a missing counter. Only one process does so in a lease.
func (c counter) load(ctx context.Context, itemID uint64) error {
	first, err := c.Redis.SetNX(ctx, strategy.KeysOf(counted.RareKeys, itemID)[0], 1, c.Lease).Result()
	if err != nil || !first {
		return err
	}
	item, err := c.Store.Read(ctx, itemID)
	if err != nil {
		return err
	}
	return c.Redis.SetNX(ctx, counterKey(itemID), item.Stock, 0).Err()
}
