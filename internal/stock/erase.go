package stock

import (
	"context"
	"errors"
	"fmt"
)

// eraseBatch bounds the orders, or the holds, that Erase locks at once.
const eraseBatch = 500

// Erase removes who a customer is from its orders, its cancellations and its holds: the subject, the keys and the
// ids of the requests. The orders stay, as those of nobody. It returns how many orders it has changed, also with
// an error. What the customer does meanwhile may be left.
func (s *Store) Erase(ctx context.Context, subject string) (orders int, err error) {
	if subject == "" {
		return 0, errors.New("stock: the orders of nobody have nothing to erase")
	}
	if err := s.holdsNothing(ctx, subject); err != nil {
		return 0, wrapped("erase a customer", err)
	}
	for i, erase := range append([]func(Tx, string) (int, error){Tx.eraseOrders}, erasesHolds...) {
		for {
			n, err := Within(ctx, s, func(tx Tx) (int, error) { return erase(tx, subject) })
			if errors.Is(err, ErrConflict) && ctx.Err() == nil { // another transaction was faster
				continue
			}
			if err != nil {
				return orders, fmt.Errorf("erase a customer: %w", err)
			}
			if n == 0 {
				break
			}
			if i == 0 {
				orders += n
			}
		}
	}
	return orders, nil
}

func (t Tx) eraseOrders(subject string) (int, error) {
	var first, rows []uint64
	err := t.Query(&first, "SELECT id FROM orders FORCE INDEX (orders_subject) WHERE subject = ? AND line_of IS NULL LIMIT ? FOR UPDATE", subject, eraseBatch)
	if err != nil || len(first) == 0 {
		return 0, err
	}
	if err := t.Query(&rows, "SELECT id FROM orders WHERE subject = ? AND line_of IN ?", subject, first); err != nil {
		return 0, err
	}
	in := anyOf(append(rows, first...))
	_, _, err = t.Exec("UPDATE changes SET subject = '', idempotency_key = NULL, request_id = '' WHERE action = ? AND order_id IN ("+marks(len(in))+")",
		append([]any{CancelledOwn}, in...)...)
	if err != nil {
		return 0, err
	}
	_, _, err = t.Exec("UPDATE orders SET subject = '', idempotency_key = NULL, keyed_at = NULL, request_id = '' WHERE id IN ("+marks(len(in))+")", in...)
	return len(first), err
}
