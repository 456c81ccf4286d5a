package ladder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var reservation = Declare(strategy.Strategy{
	Name:         "reservation",
	Doc:          "hold the units for a lease, work without any lock, confirm unless a sweep has ended the hold: the state decides, not the clock",
	WithoutRedis: true,
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return reserving(d, true)
	},
}, declared.Strategy{
	Source:    "try, confirm, cancel: Helland, Life beyond Distributed Transactions, 2007",
	Guard:     "nothing",
	Decrement: "UPDATE items, INSERT hold; UPDATE hold WHERE state = 'held', INSERT order",
	Telling:   "pause",
	Servers:   declared.EveryServer,
	Properties: declared.Properties{
		Has: declared.Exclusive | declared.Recovers | declared.AtomicLease | declared.ClockFree |
			declared.StorageChecked | declared.DurableAnswers | declared.Once,
		NotApplicable: declared.OwnerChecked | declared.AtomicRelease | declared.Reentrant |
			declared.SurvivesDataLoss,
	},
	Reservations: &declared.Properties{Has: declared.EveryReservation},
	State:        reserved,
	Lease:        reservedFor,
})

// Reservations returns the ways that only reserve: the requests of a payment break them, and no sale of one request.
func Reservations() []Rung {
	return []Rung{reservationRows, reservationRevived, reservationOverwritten}
}

// onlyReserves declares a way whose reservations lack one property, and which makes holds by the function.
func onlyReserves(name, doc, source, telling string, lacks declared.Property, holds func(strategy.Deps) stock.Holder) Rung {
	r := Declare(strategy.Strategy{
		Name: name, Doc: doc, WithoutRedis: true,
		Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) { return reserving(d, true) },
	}, reservation.Declared)
	r.Declared.Source, r.Declared.Telling, r.Declared.OnlyReservations = source, telling, true
	r.Declared.Reservations = &declared.Properties{Has: declared.EveryReservation &^ lacks}
	r.Holds = holds
	return r
}

var reserved = declared.State{Remaining: "SELECT COALESCE(SUM(quantity), 0) FROM hold_lines WHERE item_id = ? AND live_until IS NOT NULL"}

var reservedFor = declared.Lease{
	Kept:  declared.LeaseInMySQL,
	Query: "SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), MIN(live_until)) DIV 1000 FROM hold_lines WHERE item_id = ?",
}

// errHoldEnded is no conflict yet, because a confirmation is repeated after one.
var errHoldEnded = errors.New("strategy: the hold has ended")

// reserving builds a sale that holds its units, and confirms them after its work, in one request: there is no payment.
// mustStand says that a hold which a sweep has ended cannot be confirmed. A sweep in each process ends what is overdue.
func reserving(d strategy.Deps, mustStand bool) (strategy.Guard, strategy.Decrement) {
	r := &reservations{d, mustStand}
	hold := strategy.RetryConflicts(d.Options, r.hold)
	workers := NewWorkers()
	workers.Go(r.sweep)
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
		if errors.Is(err, errHoldEnded) {
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
	mustStand bool
}

// hold takes the units out of the stock and returns the hold, as an order that is not confirmed
// yet. It returns stock.ErrConflict if others hold the units, because these may come back.
func (r *reservations) hold(ctx context.Context, store *stock.Store, wanted stock.Sale) (held stock.Order, err error) {
	err = store.Transact(ctx, func(tx stock.Tx) error {
		left, err := tx.Take(wanted.ItemID, wanted.Quantity)
		if err != nil {
			return err
		}
		held = stock.Order{PublicID: uuid.Must(uuid.NewV7()).String(), StockRead: left + wanted.Quantity, StockWritten: left}
		lease := r.Lease.Microseconds()
		_, id, err := tx.Exec("INSERT INTO holds (public_id, subject, state, seconds, created_at, held_until, live_until)"+
			" VALUES (?, ?, 'held', 0, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)",
			held.PublicID, wanted.Subject, lease, lease)
		if err != nil {
			return err
		}
		held.ID = uint64(id)
		_, _, err = tx.Exec("INSERT INTO hold_lines (hold_id, item_id, quantity, subject, live_until) VALUES (?, ?, ?, ?, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)",
			id, wanted.ItemID, wanted.Quantity, wanted.Subject, lease)
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
	return store.Transact(ctx, func(tx stock.Tx) error {
		var units []int64 // free and held, of one moment
		err := tx.Query(&units, "SELECT stock + ("+reserved.Remaining+") FROM items WHERE id = ?", wanted.ItemID, wanted.ItemID)
		switch {
		case err != nil:
			return err
		case len(units) == 0:
			return stock.ErrNotFound
		case units[0] >= wanted.Quantity:
			return stock.ErrConflict
		}
		return stock.ErrSoldOut
	})
}

// confirm makes an order of a hold. stood is 1 if the hold was live, and 0 if not.
func (r *reservations) confirm(ctx context.Context, store *stock.Store, wanted stock.Sale, held stock.Order) (order stock.Order, stood int64, err error) {
	where := " WHERE id = ?"
	if r.mustStand {
		where += " AND state = 'held'"
	}
	err = store.Transact(ctx, func(tx stock.Tx) error {
		matched, _, err := tx.Exec("UPDATE holds SET state = 'confirmed', live_until = NULL, ended_at = UTC_TIMESTAMP(6), ended_by = ?, order_id = ?, reference = ?"+where,
			wanted.Subject, held.PublicID, held.PublicID, held.ID)
		if err != nil {
			return err
		}
		if matched == 0 && r.mustStand {
			return errHoldEnded
		}
		stood, _, err = tx.Exec("UPDATE hold_lines SET live_until = NULL WHERE hold_id = ? AND item_id = ? AND live_until IS NOT NULL", held.ID, wanted.ItemID)
		if err != nil {
			return err
		}
		wanted.OrderID = held.PublicID
		order, err = tx.Record(wanted, held.StockRead, held.StockWritten)
		return err
	})
	if err != nil {
		return stock.Order{}, 0, err
	}
	return order, stood, nil
}

// sweep ends overdue holds, until ctx ends. Any number of shops may do so at once.
func (r *reservations) sweep(ctx context.Context) {
	const atOnce = 100
	tick := time.NewTicker(r.Lease / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, _, _, err := r.Store.EndHolds(ctx, "sweep", atOnce); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "overdue holds were not ended", "error", err)
		}
	}
}
