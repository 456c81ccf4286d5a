package strategy

import (
	"context"
	"errors"

	"stocklock/internal/stock"
)

var fenced = Strategy{
	Name:      "fenced",
	Doc:       "the reference lock, and a database that refuses an overtaken holder: raise the fence, read, write",
	Source:    "Kleppmann, How to do distributed locking, 2016; the fence raised before the read",
	Guard:     ReferenceGuard,
	Decrement: "raise the fence, read, write where the fence is one's own",
	Telling:   "pause",
	Servers:   WritesAnywhere | RewindProof | SwitchoverProof,
	Properties: Properties{Has: DurableAnswers | Once | Exclusive | Recovers | AtomicLease | Renews | OwnerChecked | AtomicRelease |
		Reentrant | ClockFree | LossAware | StorageChecked},
	Baskets: &basketsUnderLocks,
	Build:   func(d Deps) (Guard, Decrement) { return Reference(d), repeatConflicts(d.Options, FencedReadThenWrite) },
}

// FencedReadThenWrite raises the fence of each item to the line's token, reads the stock, and writes
// if the fences are still the tokens. The tokens of a lock must grow with each holder.
func FencedReadThenWrite(ctx context.Context, store *stock.Store, sale stock.Sale) (stock.Order, error) {
	if err := raiseFences(ctx, store, sale); err != nil {
		return stock.Order{}, err
	}
	return readThen(ctx, store, sale, store.WriteFenced)
}

// raiseFences leaves out an item that does not exist: the read finds that out, too, and names all lines
// that cannot be had.
func raiseFences(ctx context.Context, store *stock.Store, sale stock.Sale) error {
	for _, line := range sale.Lines() {
		if err := store.RaiseFence(ctx, line.ItemID, line.Token); err != nil && !errors.Is(err, stock.ErrNotFound) {
			return err
		}
	}
	return nil
}
