package step

import (
	"context"
	"fmt"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/shop/labmode"
)

// In a run with reservations, each customer but the last reserves three of four units, whose time is over at once. Then
// a payment confirms them, and a notice says that it failed. The last one is a sweep.
const (
	reservableUnits = 4
	reservedUnits   = 3
	// atOnce is a lease so short that a reservation is overdue when it is made.
	atOnce = 10 * time.Millisecond
)

// reserving are the requests of the customers of one run. It is safe for concurrent use.
func reserving(customers int) map[schedule.Customer][]Request {
	of := map[schedule.Customer][]Request{}
	for _, c := range schedule.Customers(customers) {
		var reserved string // the id: a customer sends one request after another
		of[c] = []Request{
			{"reserve", func(ctx context.Context, to Address) (string, bool) {
				answer := to.send(ctx, load.Order{Act: load.Reserving, Quantity: reservedUnits, Seconds: 1, IdempotencyKey: "reserve-" + to.ID, Lease: atOnce})
				reserved = answer.Reserved().ID
				return answerOf(answer), answer.Outcome == load.Done
			}},
			{"confirm", func(ctx context.Context, to Address) (string, bool) {
				answer := to.send(ctx, load.Order{Act: load.Confirming, Reservation: reserved, Reference: to.ID})
				return answerOf(answer), answer.Outcome == load.Sold
			}},
			{"fail", func(ctx context.Context, to Address) (string, bool) {
				return answerOf(to.send(ctx, load.Order{Act: load.Failing, Reservation: reserved})), false
			}},
		}
	}
	last := schedule.Customers(customers)[customers-1]
	of[last] = []Request{{"sweep", func(ctx context.Context, to Address) (string, bool) {
		return answerOf(to.send(ctx, load.Order{Act: load.Sweeping})), false
	}}}
	return of
}

// send sends a request about a reservation for a customer.
func (to Address) send(ctx context.Context, o load.Order) load.Answer {
	ctx, cancel := context.WithTimeout(ctx, labmode.StepTime+labmode.HoldLimit)
	defer cancel()
	o.Shop, o.ItemID, o.RequestID, o.Strategy, o.Subject = to.URL, to.Items[0], to.ID, to.Strategy, to.ID
	if o.Act.Staff() {
		o.Shop, o.Subject = to.Staff, "backend"
	}
	return load.Send(ctx, o)
}

func answerOf(answer load.Answer) string {
	switch {
	case answer.Err != nil:
		return load.NoAnswer
	case answer.Outcome == load.Failed:
		return fmt.Sprintf("%d: %s", answer.Status, answer.Detail())
	}
	return string(answer.Outcome)
}

// sweepBefore ends what runs before have left: a sweep of this one would find it.
func (d *database) sweepBefore(ctx context.Context) error {
	for {
		if _, _, more, err := d.store.EndHolds(ctx, "step", reservedUnits); err != nil || !more {
			return err
		}
	}
}

// paid counts what was paid in a run with reservations, and whether what had expired was confirmed.
func (r *shopsRun) paid(ctx context.Context) (*schedule.Reserved, error) {
	of := &schedule.Reserved{Each: reservedUnits, Paid: map[string]int64{}}
	pool := r.slot.database.store.Pool()
	for _, b := range r.buyers {
		var n int64
		if err := pool.QueryRowContext(ctx, "SELECT COUNT(*) FROM payments WHERE reference = ? AND state = 'taken'", b.id).Scan(&n); err != nil {
			return nil, err
		}
		of.Paid[b.customer.String()] = n
	}
	err := pool.QueryRowContext(ctx, "SELECT COUNT(*) FROM holds h JOIN hold_lines l ON l.hold_id = h.id WHERE l.item_id = ? AND h.state = 'confirmed'"+
		" AND EXISTS (SELECT 1 FROM hold_history WHERE hold_id = h.id AND becomes = 'expired')", r.items[0]).Scan(&of.Revived)
	return of, err
}
