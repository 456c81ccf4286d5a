package ladder

import (
	"context"
	"fmt"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var reservationRows = onlyReserves("reservation-rows",
	"count the holds of an item, and not their units, before one more is made",
	"a count of active holds where a sum of quantities belongs: compressor, issue 1215", "held-units", declared.CountsUnits,
	func(d strategy.Deps) stock.Holder { return countingRows{d.Store} })

// countingRows makes a hold if the stock is larger than the number of holds.
type countingRows struct{ *stock.Store }

// Hold lends the item what it lacks by the right count.
func (c countingRows) Hold(ctx context.Context, wanted stock.Sale, seconds int64, terms stock.Terms) (h stock.Hold, err error) {
	err = c.Transact(ctx, func(tx stock.Tx) error {
		item, err := tx.Lock(wanted.ItemID)
		if err != nil {
			return err
		}
		var counted []int64 // the units that the rows of holds hide
		if err := tx.Query(&counted, "SELECT COALESCE(SUM(quantity) - COUNT(*), 0) FROM hold_lines WHERE item_id = ? AND live_until IS NOT NULL", item.ID); err != nil {
			return err
		}
		if item.Stock+counted[0] < wanted.Quantity {
			return stock.ErrHeld
		}
		lent := max(wanted.Quantity-item.Stock, 0)
		lend := func(units int64) error {
			_, _, err := tx.Exec("UPDATE items SET stock = stock + ? WHERE id = ?", units, item.ID)
			return err
		}
		if err := lend(lent); err != nil {
			return err
		}
		if h, err = tx.Hold(wanted, seconds, terms); err != nil {
			return err
		}
		return lend(-lent)
	})
	if err != nil {
		err = fmt.Errorf("hold by the count of holds: %w", err)
	}
	return h, err
}
