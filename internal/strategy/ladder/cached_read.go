package ladder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var cachedRead = Declare(strategy.Strategy{
	Name: "cached-read",
	Doc:  "the reference lock around a sale that reads the stock from the page's cache, and deletes the entry after its COMMIT",
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		c := cache{d}
		return strategy.Reference(d), thenDelete(c, strategy.ReadThenWriteBy(c.read))
	},
}, declared.Strategy{
	Source:     "cache-aside as the manuals of caches have it, used for a decision",
	Guard:      ReferenceGuard,
	Decrement:  "GET the copy, or SELECT and SET; UPDATE, INSERT; DEL the copy",
	Telling:    "page-view",
	Servers:    declared.RewindProof,
	Properties: reentrant.Declared.Properties,
	State:      copied,
}).viewedBy(viewThroughCache)

// copied has the key of the copy of an item's stock that its page shows.
var copied = declared.State{Copies: []string{"%s:page"}}

// copyExpiry is how long a copy lives. It bounds how long an old one does harm, and prevents none.
const copyExpiry = time.Minute

// cache keeps a copy of an item's stock in Redis.
type cache struct{ strategy.Deps }

func copyKey(itemID uint64) string { return declared.KeysOf(copied.Copies, itemID)[0] }

// read reads the copy, and says so. Without a copy it reads the row, and stores what it has read.
func (c cache) read(ctx context.Context, itemID uint64) (item stock.Item, from string, err error) {
	item, there, err := c.get(ctx, itemID)
	if err != nil || there {
		return item, sale.FromCache, err
	}
	if item, err = c.Store.Read(ctx, itemID); err != nil {
		return item, "", err
	}
	return item, "", c.set(ctx, itemID, item.Stock)
}

// viewThroughCache shows the copy. Without one it reads the row and stores that, as [cache.read] does. No lock
// keeps a sale from writing between the two.
func viewThroughCache(d strategy.Deps) View {
	c := cache{d}
	return func(ctx context.Context, itemID uint64) (stock.Item, error) {
		item, there, err := c.get(ctx, itemID)
		if err != nil || there {
			return item, err
		}
		if item, err = c.Store.Read(ctx, itemID); err != nil {
			return item, err
		}
		read := slog.Int64("stock", item.Stock)
		sale.At(ctx, sale.Viewed, read)
		if err := c.set(ctx, itemID, item.Stock); err != nil {
			return item, err
		}
		sale.At(ctx, sale.Stored, read)
		return item, nil
	}
}

// get reads the copy. It has no more than the stock.
func (c cache) get(ctx context.Context, itemID uint64) (item stock.Item, there bool, err error) {
	item.ID = itemID
	item.Stock, err = c.Redis.Get(ctx, copyKey(itemID)).Int64()
	if errors.Is(err, redis.Nil) {
		return item, false, nil
	}
	if err != nil {
		return item, false, fmt.Errorf("read the copy of item %d: %w", itemID, err)
	}
	return item, true, nil
}

func (c cache) set(ctx context.Context, itemID uint64, left int64) error {
	if err := c.Redis.Set(ctx, copyKey(itemID), left, copyExpiry).Err(); err != nil {
		return fmt.Errorf("store a copy of item %d: %w", itemID, err)
	}
	return nil
}

// thenDelete deletes the copy when a sale is made.
func thenDelete(c cache, sell strategy.Decrement) strategy.Decrement {
	return then(sell, func(ctx context.Context, made stock.Order) error {
		return c.Redis.Del(ctx, copyKey(made.ItemID)).Err()
	})
}

// then calls renew when a sale is made. The sale stands if that fails, and the copy is an old one.
func then(sell strategy.Decrement, renew func(context.Context, stock.Order) error) strategy.Decrement {
	return func(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
		order, err := sell(ctx, store, wanted)
		if err != nil {
			return order, err
		}
		if err := renew(context.WithoutCancel(ctx), order); err != nil {
			slog.WarnContext(ctx, "the copy of an item is an old one", "item", wanted.ItemID, "error", err)
		}
		return order, nil
	}
}
