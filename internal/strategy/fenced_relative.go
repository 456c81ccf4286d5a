package strategy

import (
	"context"
	"errors"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
)

var fencedRelative = Strategy{
	Name:         "fenced-relative",
	Doc:          "the reference lock, and one statement that subtracts, and raises the fence unless the holder was overtaken",
	Mixable:      true,
	Baskets:      true,
	RefusesEarly: true,
	Build: func(d Deps) (Guard, Decrement) {
		return Reference(d), RepeatConflicts(d.Options, sellFencedRelative)
	},
}

// sellFencedRelative passes the point read without reading, as [sellConditionally] does. A section
// that does more than count works at that point, under the lock.
func sellFencedRelative(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	sale.At(ctx, sale.Read)
	wanted.Ready = lastLook(ctx)
	order, err := store.DecrementFenced(ctx, wanted)
	if errors.Is(err, stock.ErrFenced) && ctx.Err() == nil {
		// As far as this process knows, nobody has taken over the lock: the fence is from a clock that was
		// ahead. A holder that is wrong about that lowers a newer fence: one that was paused after its last look, or
		// whose lock Redis has lost. It oversells nothing, because it subtracts.
		order, err = store.DecrementOverFence(ctx, wanted)
	}
	return Written(ctx, order, err)
}
