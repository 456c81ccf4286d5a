package strategy

import (
	"context"

	"stocklock/internal/stock"
)

var fenced = Strategy{
	Name:      "fenced",
	Doc:       "the reference lock, and a database that refuses an overtaken holder: raise the fence, read, write",
	Source:    "Kleppmann, How to do distributed locking, 2016; the fence raised before the read",
	Guard:     ReferenceGuard,
	Decrement: "raise the fence, read, write where the fence is one's own",
	Telling:   "pause",
	Properties: Properties{Has: DurableAnswers | Once | Exclusive | Recovers | AtomicLease | Renews | OwnerChecked | AtomicRelease |
		Reentrant | ClockFree | LossAware | StorageChecked},
	Build: func(d Deps) (Guard, Decrement) { return Reference(d), repeatConflicts(d.Options, FencedReadThenWrite) },
}

// FencedReadThenWrite raises the fence of the item to the sale's token, reads the stock, and writes
// if the fence is still the sale's token. The tokens of the lock must grow with each holder.
func FencedReadThenWrite(ctx context.Context, store *stock.Store, sale stock.Sale) (stock.Order, error) {
	if err := store.RaiseFence(ctx, sale.ItemID, sale.Token); err != nil {
		return stock.Order{}, err
	}
	return readThen(ctx, store, sale, store.WriteFenced)
}
