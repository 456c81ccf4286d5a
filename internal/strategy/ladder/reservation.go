package ladder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var reservation = Declare(strategy.Strategy{
	Name:         "reservation",
	Doc:          "hold the units for a lease, work without any lock, confirm only while the hold stands; a reaper returns expired holds",
	WithoutRedis: true,
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return reserving(d, "DELETE FROM reservations WHERE id = ? AND expires_at > NOW(6)", true)
	},
}, declared.Strategy{
	Source:    "try, confirm, cancel: Helland, Life beyond Distributed Transactions, 2007",
	Guard:     "nothing",
	Decrement: "UPDATE items, INSERT hold; DELETE hold WHERE expires_at > NOW(), INSERT order",
	Telling:   "pause",
	Servers:   declared.EveryServer,
	Properties: declared.Properties{
		Has: declared.Exclusive | declared.Recovers | declared.AtomicLease | declared.ClockFree |
			declared.StorageChecked | declared.DurableAnswers | declared.Once,
		NotApplicable: declared.OwnerChecked | declared.AtomicRelease | declared.Reentrant |
			declared.SurvivesDataLoss,
	},
	State: reserved,
	Lease: reservedFor,
})

var reserved = declared.State{Remaining: "SELECT COALESCE(SUM(quantity), 0) FROM reservations WHERE item_id = ?"}

var reservedFor = declared.Lease{
	Kept:  declared.LeaseInMySQL,
	Query: "SELECT TIMESTAMPDIFF(MICROSECOND, NOW(6), MIN(expires_at)) DIV 1000 FROM reservations WHERE item_id = ?",
}

// errHoldExpired is no conflict yet, because a confirmation is repeated after one.
var errHoldExpired = errors.New("strategy: the hold has expired")

// reserving builds a reservation that the statement confirm confirms. mustStand says that an
// expired hold cannot be confirmed.
func reserving(d strategy.Deps, confirm string, mustStand bool) (strategy.Guard, strategy.Decrement) {
	r := &reservations{Deps: d, confirmation: confirm, mustStand: mustStand}
	hold := strategy.RetryConflicts(d.Options, r.hold)
	workers := NewWorkers()
	workers.Go(r.reap)
	return workers, func(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
		held, err := hold(ctx, store, wanted)
		if err != nil {
			return stock.Order{}, err
		}
		sale.At(ctx, sale.Read, slog.Int64("stock", held.StockRead))
		sale.At(ctx, sale.Write)
		var stood int64
		confirm := strategy.RetryConflicts(d.Options, func(ctx context.Context, store *stock.Store, wanted stock.Sale) (order stock.Order, err error) {
			order, stood, err = r.confirm(ctx, store, wanted, held)
			return order, err
		})
		order, err := confirm(ctx, store, wanted)
		if errors.Is(err, errHoldExpired) {
			err = fmt.Errorf("%w: %w", stock.ErrConflict, err)
		}
		if err == nil {
			sale.At(ctx, sale.Written, slog.Int64("stock", order.StockWritten), slog.Int64("held", stood))
		}
		return order, err
	}
}

type reservations struct {
	strategy.Deps
	confirmation string
	mustStand    bool
}

// hold takes the units out of the stock and returns the hold, as an order that is not confirmed
// yet. It returns stock.ErrConflict if others hold the units, because these may come back.
func (r *reservations) hold(ctx context.Context, store *stock.Store, wanted stock.Sale) (held stock.Order, err error) {
	err = store.Transact(ctx, func(tx stock.Tx) error {
		left, ok, err := tx.Take(wanted.ItemID, wanted.Quantity)
		if err != nil {
			return err
		}
		if !ok {
			return stock.ErrSoldOut
		}
		held.StockRead, held.StockWritten = left+wanted.Quantity, left
		_, id, err := tx.Exec("INSERT INTO reservations (item_id, quantity, expires_at) VALUES (?, ?, NOW(6) + INTERVAL ? MICROSECOND)",
			wanted.ItemID, wanted.Quantity, r.Lease.Microseconds())
		held.ID = uint64(id)
		return err
	})
	if errors.Is(err, stock.ErrSoldOut) {
		err = r.soldOut(ctx, store, wanted)
	}
	if err != nil {
		return stock.Order{}, fmt.Errorf("hold %d of item %d: %w", wanted.Quantity, wanted.ItemID, err)
	}
	return held, nil
}

// soldOut says why there are too few units: they are sold, or others hold them.
func (r *reservations) soldOut(ctx context.Context, store *stock.Store, wanted stock.Sale) error {
	item, err := store.Read(ctx, wanted.ItemID)
	if err != nil {
		return err
	}
	return store.Transact(ctx, func(tx stock.Tx) error {
		var held []int64
		if err := tx.Query(&held, reserved.Remaining, wanted.ItemID); err != nil {
			return err
		}
		if len(held) == 1 && item.Stock+held[0] >= wanted.Quantity {
			return stock.ErrConflict
		}
		return stock.ErrSoldOut
	})
}

// confirm makes an order of a hold. stood is 1 if the hold was there, and 0 if not.
func (r *reservations) confirm(ctx context.Context, store *stock.Store, wanted stock.Sale, held stock.Order) (order stock.Order, stood int64, err error) {
	err = store.Transact(ctx, func(tx stock.Tx) error {
		stood, _, err = tx.Exec(r.confirmation, held.ID)
		if err != nil {
			return err
		}
		if stood == 0 && r.mustStand {
			return errHoldExpired
		}
		order, err = tx.Record(wanted, held.StockRead, held.StockWritten)
		return err
	})
	if err != nil {
		return stock.Order{}, 0, err
	}
	return order, stood, nil
}

// reap returns the units of expired holds, until ctx ends. Any number of shops may do so at once.
func (r *reservations) reap(ctx context.Context) {
	tick := time.NewTicker(r.Lease / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := r.Store.Transact(ctx, returnExpired); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "expired holds were not returned", "error", err)
		}
	}
}

func returnExpired(tx stock.Tx) error {
	const atOnce = 100
	var expired []struct {
		ID, ItemID uint64
		Quantity   int64
	}
	err := tx.Query(&expired, "SELECT id, item_id, quantity FROM reservations WHERE expires_at <= NOW(6) ORDER BY item_id LIMIT ? FOR UPDATE SKIP LOCKED", atOnce)
	if err != nil {
		return err
	}
	for _, hold := range expired {
		if _, _, err := tx.Exec("DELETE FROM reservations WHERE id = ?", hold.ID); err != nil {
			return err
		}
		if _, _, err := tx.Exec("UPDATE items SET stock = stock + ?, version = version + 1 WHERE id = ?", hold.Quantity, hold.ItemID); err != nil {
			return err
		}
	}
	return nil
}
