package ladder

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
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
var counted = declared.State{Keys: []string{"{%s}:left"}, RareKeys: []string{"{%s}:loading"}}

func counterKey(itemID uint64) string { return declared.KeysOf(counted.Keys, itemID)[0] }

// take takes units by a script, and returns the units left. The script's first key is the counter,
// and its first argument is the number of units. A sale is refused while the counter is missing and
// another process is to set it.
func (c counter) take(ctx context.Context, wanted stock.Sale, script *redis.Script, keys []string, args ...any) (left int64, err error) {
	keys = append([]string{counterKey(wanted.ItemID)}, keys...)
	args = append([]any{wanted.Quantity}, args...)
	refused := sync.OnceFunc(func() { sale.At(ctx, sale.Waiting) })
	err = Poll(ctx, c.Options, func(context.Context) (bool, error) {
		left, err = script.Run(ctx, c.Redis, keys, args...).Int64()
		switch {
		case err == nil && left < 0:
			return false, stock.ErrSoldOut
		case err == nil:
			return true, nil
		case !errors.Is(err, redis.Nil):
			return false, fmt.Errorf("take %d of item %d in Redis: %w", wanted.Quantity, wanted.ItemID, err)
		}
		first, err := c.load(ctx, wanted.ItemID)
		if err == nil && !first {
			refused()
		}
		return false, err
	})
	return left, err
}

// load sets a missing counter, and says whether it did. Only one process does so in a lease.
func (c counter) load(ctx context.Context, itemID uint64) (first bool, err error) {
	first, err = c.Redis.SetNX(ctx, declared.KeysOf(counted.RareKeys, itemID)[0], 1, c.Lease).Result()
	if err != nil || !first {
		return false, err
	}
	item, err := c.Store.Read(ctx, itemID)
	if err != nil {
		return false, err
	}
	return true, c.Redis.SetNX(ctx, counterKey(itemID), item.Stock, 0).Err()
}
