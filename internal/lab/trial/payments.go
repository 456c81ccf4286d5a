package trial

import (
	"context"
	"fmt"

	"stocklock/internal/lab/count"
	"stocklock/internal/lab/load"
	"stocklock/internal/stock"
)

// Overdue waits until the time of a reservation is over, by the clock of the database.
func (s *Show) Overdue(ctx context.Context, of *Customer) error {
	return s.Await(ctx, fmt.Sprintf("the time of %s's reservation is over", of.Name()), func() (over bool, err error) {
		err = s.Store.Pool().QueryRowContext(ctx, "SELECT live_until < UTC_TIMESTAMP(6) FROM holds WHERE public_id = ?", of.reserved).Scan(&over)
		return over, err
	})
}

// Reserved reports whether a customer has got a reservation.
func (h *Customer) Reserved() bool { return h.reserved != "" }

// pay adds to purchases what their customers have paid, without what the database says is to be returned.
func (s *Show) pay(ctx context.Context, purchases map[string]count.Purchase) error {
	for key, p := range purchases {
		p.Paid = new(int64)
		purchases[key] = p
	}
	seen := map[string]bool{}
	for _, h := range s.customers.hits {
		w := h.wanted
		if w.Act != load.Confirming || w.Stolen || seen[w.Reference] {
			continue
		}
		seen[w.Reference] = true
		var toReturn int64
		err := s.Store.Pool().QueryRowContext(ctx, "SELECT COUNT(*) FROM payments WHERE reference = ? AND state <> ?", w.Reference, stock.Taken).Scan(&toReturn)
		if err != nil {
			return err
		}
		*purchases[h.wish.key].Paid += 1 - toReturn
	}
	return nil
}
