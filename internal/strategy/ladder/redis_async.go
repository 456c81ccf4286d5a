package ladder

import (
	"context"
	"errors"
	"log/slog"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var redisAsync = Declare(strategy.Strategy{
	Name: "redis-async",
	Doc:  "a script takes the units in Redis, the shop answers, and a goroutine writes the order later",
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		workers, c := NewWorkers(), counter{d}
		return workers, func(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
			left, err := c.take(ctx, wanted, takeCountedScript, nil)
			if err != nil {
				return stock.Order{}, err
			}
			sale.At(ctx, sale.Read, slog.Int64("stock", left+wanted.Quantity))
			sale.At(ctx, sale.Write)
			workers.Go(func(context.Context) { writeLater(context.WithoutCancel(ctx), store, wanted, left) })
			return stock.Order{
				ItemID: wanted.ItemID, Quantity: wanted.Quantity, StockRead: left + wanted.Quantity, StockWritten: left,
				Strategy: wanted.Strategy, Run: wanted.Run, Shop: wanted.Shop, RequestID: wanted.RequestID,
			}, nil
		}
	},
}, declared.Strategy{
	Source:       "most examples of flash sales",
	Guard:        "nothing",
	Decrement:    "script: GET, DECRBY; later UPDATE, INSERT",
	Telling:      "crash-answered",
	Servers:      declared.EveryServer, // while there is a counter: without one, a server that is behind can set it
	AnswersFirst: true,
	State:        counted,
	Scripts:      map[string]string{takeCountedScript.Hash(): "take"},
	// The counter is not a lock: nobody holds it.
	Properties: declared.Properties{
		Has: declared.Exclusive | declared.ClockFree | declared.Once,
		NotApplicable: declared.Recovers | declared.AtomicLease | declared.Renews | declared.OwnerChecked | declared.AtomicRelease |
			declared.Reentrant | declared.LossAware | declared.PauseProof,
	},
})

// writeLater writes an order whose customer has the answer. It announces the point read again.
// Simulated work at that point delays the write, as a queue would. Nobody waits for it, so it is
// repeated for as long as it loses against other transactions, whatever Options.Wait is.
func writeLater(ctx context.Context, store *stock.Store, wanted stock.Sale, left int64) {
	sale.At(ctx, sale.Read, slog.Int64("stock", left+wanted.Quantity))
	var order stock.Order
	err := stock.ErrConflict
	for errors.Is(err, stock.ErrConflict) {
		err = store.Transact(ctx, func(tx stock.Tx) error {
			_, _, err := tx.Exec("UPDATE items SET stock = stock - ?, version = version + 1 WHERE id = ?", wanted.Quantity, wanted.ItemID)
			if err == nil {
				order, err = tx.Record(wanted, left+wanted.Quantity, left)
			}
			return err
		})
	}
	if _, err := strategy.Written(ctx, order, err); err != nil {
		slog.ErrorContext(ctx, "an order that was answered as sold was not written", "request", wanted.RequestID, "error", err)
	}
}
