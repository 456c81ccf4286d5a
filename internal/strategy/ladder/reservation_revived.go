package ladder

import (
	"context"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var reservationRevived = onlyReserves("reservation-revived",
	"a payment that comes late makes its expired hold live again, although the units were put back",
	"a final state that is not final: late webhooks of payment providers", "paid-late", declared.StaysEnded,
	func(d strategy.Deps) stock.Holder { return reviving{d.Store} })

// reviving makes a hold that has ended live again before it confirms it. A confirmation that is then refused leaves a
// hold without units, which a sweep puts back again. No scenario has one.
type reviving struct{ *stock.Store }

func (r reviving) Confirm(ctx context.Context, by stock.Author, id, reference string, paid stock.Sale, terms stock.Terms) (stock.Hold, error) {
	err := r.Transact(ctx, func(tx stock.Tx) error {
		_, _, err := tx.Exec("UPDATE holds SET state = 'held', pay_until = NULL, held_until = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR, live_until = held_until,"+
			" ended_at = NULL, ended_by = NULL WHERE public_id = ? AND state IN ('expired', 'released')", id)
		return err
	})
	if err != nil {
		return stock.Hold{}, err
	}
	return r.Store.Confirm(ctx, by, id, reference, paid, terms)
}
