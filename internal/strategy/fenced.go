package strategy

import (
	"context"
	"errors"

	"stocklock/internal/stock"
)

var fenced = Strategy{
	Name:         "fenced",
	Doc:          "the reference lock, and a database that refuses an overtaken holder: raise the fence, read, write",
	Baskets:      true,
	RefusesEarly: true,
	Build:        func(d Deps) (Guard, Decrement) { return Reference(d), RepeatConflicts(d.Options, FencedReadThenWrite) },
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
