package ladder

import (
	"context"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var reservationOverwritten = onlyReserves("reservation-overwritten",
	"a failure notice or a release ends what is confirmed, too: the order is gone, and the money is not",
	"a payment's failure notice after its success: fossunited, issue 1698", "failure-after-confirmation", declared.StaysConfirmed,
	func(d strategy.Deps) stock.Holder { return overwriting{d.Store} })

// overwriting releases a hold whatever its state is.
type overwriting struct{ *stock.Store }

// Move obeys a notice of the payment provider, and the customer.
func (o overwriting) Move(ctx context.Context, by stock.Author, id string, to stock.Transition) (stock.Hold, error) {
	if to.To == stock.Released {
		if err := o.undo(ctx, by, id); err != nil {
			return stock.Hold{}, err
		}
	}
	return o.Store.Move(ctx, by, id, to)
}

// undo releases a confirmed hold and cancels its order. Nobody returns its money.
func (o overwriting) undo(ctx context.Context, by stock.Author, id string) error {
	return o.Transact(ctx, func(tx stock.Tx) error {
		h, err := tx.ReadHold(id)
		if err != nil || h.State != stock.Confirmed {
			return err
		}
		if _, _, err := tx.Exec("UPDATE orders SET cancelled_at = UTC_TIMESTAMP(6) WHERE public_id = ?", *h.OrderID); err != nil {
			return err
		}
		for _, line := range h.Lines {
			if _, _, err := tx.Exec("UPDATE items SET stock = stock + ?, version = version + 1 WHERE id = ?", line.Quantity, line.ItemID); err != nil {
				return err
			}
		}
		_, _, err = tx.Exec("UPDATE holds SET state = 'released', ended_by = ?, order_id = NULL, reference = NULL WHERE id = ?", by.Subject, h.ID)
		return err
	})
}
