package strategy

import (
	"context"

	"stocklock/internal/stock"
)

var fenced = Strategy{
	Name:      "fenced",
	Doc:       "the reference lock, and a database that refuses whoever was overtaken: raise the fence, read, write",
	Source:    "Kleppmann, How to do distributed locking, 2016; the fence raised before the read",
	Guard:     reentrant.Guard,
	Decrement: "raise the fence, read, write where the fence is one's own",
	Telling:   "pause",
	Properties: Exclusive | Recovers | AtomicLease | Renews | OwnerChecked | AtomicRelease | Reentrant | ClockFree |
		LossAware | StorageChecked,
	build: func(d Deps) (guard, decrement) {
		g, _ := reentrant.build(d)
		return g, fencedReadThenWrite
	},
}

func fencedReadThenWrite(ctx context.Context, store *stock.Store, sale stock.Sale) (stock.Order, error) {
	if err := store.RaiseFence(ctx, sale.ItemID, sale.Token); err != nil {
		return stock.Order{}, err
	}
	return readThen(ctx, store, sale, store.WriteFenced)
}
