package ladder

import (
	"context"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var reservationUnchecked = Declare(strategy.Strategy{
	Name:         "reservation-unchecked",
	Doc:          "hold, work, and confirm without looking at the hold's state: a sweep may have sold its units again",
	WithoutRedis: true,
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return reserving(d, false)
	},
}, declared.Strategy{
	Source:       "reservations with an expiry, as they are usually written",
	Guard:        "nothing",
	Decrement:    "UPDATE items, INSERT hold; UPDATE hold, INSERT order",
	Telling:      "overrun",
	Servers:      declared.ReadsSource | declared.WritesAnywhere | declared.SwitchoverProof,
	Properties:   declared.Properties{Has: reservation.Declared.Has &^ declared.StorageChecked, NotApplicable: reservation.Declared.NotApplicable},
	Reservations: &declared.Properties{Has: declared.EveryReservation &^ (declared.StaysEnded | declared.PaysOnce)},
	State:        reserved,
	Lease:        reservedFor,
}).holdingBy(func(d strategy.Deps) stock.Holder { return unchecked{d.Store} })

// unchecked confirms a hold whatever its state is, by any reference.
type unchecked struct{ *stock.Store }

func (u unchecked) Confirm(ctx context.Context, by stock.Author, id, reference string, paid stock.Sale, _ stock.Terms) (stock.Hold, error) {
	return stock.Within(ctx, u.Store, func(tx stock.Tx) (h stock.Hold, err error) {
		if h, err = tx.ReadHold(id); err != nil {
			return h, err
		}
		lines, held := h.Wanted()
		paid.Subject = h.Subject
		paid.SetLines(lines)
		order, err := tx.RecordLines(paid, held)
		if err != nil {
			return h, err
		}
		h.State, h.OrderID, h.Reference = stock.Confirmed, &order.PublicID, &reference
		for _, statement := range []struct {
			sql  string
			args []any
		}{
			{"INSERT INTO payments (reference, hold, paid, state, reason, recorded_at, recorded_by) VALUES (?, ?, ?, 'taken', '', UTC_TIMESTAMP(6), ?)" +
				" ON DUPLICATE KEY UPDATE reference = reference", []any{reference, id, id, by.Subject}},
			{"UPDATE holds SET state = 'confirmed', live_until = NULL, ended_at = UTC_TIMESTAMP(6), ended_by = ?, order_id = ?, reference = ? WHERE id = ?",
				[]any{by.Subject, order.PublicID, reference, h.ID}},
			{"UPDATE hold_lines SET live_until = NULL WHERE hold_id = ?", []any{h.ID}},
		} {
			if _, _, err := tx.Exec(statement.sql, statement.args...); err != nil {
				return h, err
			}
		}
		return h, nil
	})
}
