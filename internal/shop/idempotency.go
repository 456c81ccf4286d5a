package shop

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"stocklock/internal/stock"
)

// Headers of a request that is safe to repeat, and of its answer.
const (
	IdempotencyKeyHeader = "Idempotency-Key"      // makes a repeated request safe
	ReplayedHeader       = "Idempotency-Replayed" // true on an answer that was given before
)

// Lengths of idempotency keys.
const (
	maxKeyLength = 64 // what orders.idempotency_key can hold
	// leastSecretKey is the shortest key of a request without a subject. Such a key is a secret,
	// because anybody who sends it gets its order. 22 characters can hold 128 random bits.
	leastSecretKey = 22
)

// exampleKey was once the contract's example. Clients that copied it would share an order.
const exampleKey = "7b1f6c1e-6f0e-4f5c-9c0a-0d5f3f8b2a11"

// requestKey returns the request's idempotency key, empty when it has none.
func requestKey(header http.Header, subject string) (string, error) {
	switch keys := header.Values(IdempotencyKeyHeader); len(keys) {
	case 0:
		return "", nil
	case 1:
		return readIdempotencyKey(keys[0], subject)
	default:
		return "", refusal{malformed, fmt.Sprintf("send %s once, not %d times", IdempotencyKeyHeader, len(keys))}
	}
}

// readIdempotencyKey accepts the key bare, or in quotation marks as in the draft of the header's
// standard.
func readIdempotencyKey(key, subject string) (string, error) {
	if quoted, ok := strings.CutPrefix(key, `"`); ok {
		key, ok = strings.CutSuffix(quoted, `"`)
		if !ok {
			key = ""
		}
	}
	if !isLabel(key, maxKeyLength) || strings.Contains(key, `"`) {
		return "", refusal{malformed, fmt.Sprintf("%s must be 1 to %d printable characters without space", IdempotencyKeyHeader, maxKeyLength)}
	}
	if subject != "" {
		return key, nil
	}
	if len(key) < leastSecretKey {
		return "", refusal{malformed, fmt.Sprintf("%s is a secret and must have %d characters or more, such as a random UUID", IdempotencyKeyHeader, leastSecretKey)}
	}
	if key == exampleKey {
		return "", refusal{malformed, IdempotencyKeyHeader + " is an example: make a random one for every wish to buy"}
	}
	return key, nil
}

var errKeyReused = refusal{keyReused, "this Idempotency-Key was used for something else: nothing was done"}

// lookupTimeout bounds the look-up of a failed request that may have been done after all.
const lookupTimeout = 2 * time.Second

// sellOnce makes the sale, unless it was made before under the same key. It then returns that order
// and true. The key is unique in the database and is written with the order. So a repeat makes no
// second order, even at the same moment, at another shop, or after the first shop has died.
//
// Only sales are remembered. A refusal has changed nothing, and a repeat tries again.
func (s *Shop) sellOnce(ctx context.Context, sale stock.Sale, sell Sell) (order stock.Order, replayed bool, err error) {
	if sale.IdempotencyKey == "" {
		order, err = sell(ctx, sale)
		return order, false, err
	}
	before := func(ctx context.Context, failed error) (stock.Order, error) { return s.madeBefore(ctx, sale, failed) }
	do := func(ctx context.Context) (stock.Order, error) { return sell(ctx, sale) }
	if !s.Strategy.FindsRepeats {
		return once(ctx, before, do)
	}
	return doOrFind(ctx, before, do)
}

// once calls do, unless before finds that it was done under the same key. Before returns
// stock.ErrNotFound if it was not. It is given the error of do once that has failed.
func once[T any](ctx context.Context, before func(context.Context, error) (T, error), do func(context.Context) (T, error)) (done T, replayed bool, err error) {
	if done, err := before(ctx, nil); !errors.Is(err, stock.ErrNotFound) {
		return done, err == nil, err
	}
	return doOrFind(ctx, before, do)
}

// doOrFind calls do, and asks before if do fails.
func doOrFind[T any](ctx context.Context, before func(context.Context, error) (T, error), do func(context.Context) (T, error)) (done T, replayed bool, err error) {
	done, err = do(ctx)
	if err == nil {
		return done, false, nil
	}
	// The same request may have been faster: it had the lock, or took the last unit. Or do
	// succeeded, and only the answer was lost.
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
	defer cancel()
	var none T
	earlier, lookupErr := before(asking, err)
	if errors.Is(lookupErr, stock.ErrNotFound) {
		return none, false, err
	}
	if lookupErr != nil && errors.Is(err, stock.ErrUnknown) {
		return none, false, err
	}
	// If the look-up failed, too, an earlier try may have succeeded. A plain "sold out" would then
	// be wrong, and so would be that nothing was done.
	if lookupErr != nil && lookupErr != error(errKeyReused) {
		lookupErr = fmt.Errorf("%w: %w", stock.ErrUnknown, lookupErr)
	}
	return earlier, lookupErr == nil, lookupErr
}

// look looks for what was done. After a failure it looks at the primary: a replica may not have it yet.
func look[T any](ctx context.Context, store *stock.Store, failed error, at func(*stock.Store) (T, error)) (T, error) {
	if failed == nil {
		return at(store)
	}
	return stock.AtPrimary(ctx, store, at)
}

// find looks for what may just have been made: where reads go, and then at the primary, as a replica may not have it yet.
func find[T any](ctx context.Context, store *stock.Store, at func(*stock.Store) (T, error)) (got T, err error) {
	for range 2 {
		if got, err = look(ctx, store, err, at); !errors.Is(err, stock.ErrNotFound) {
			break
		}
	}
	return got, err
}

// madeBefore returns the order under the sale's key. It returns stock.ErrNotFound if there is none,
// and errKeyReused if the order is for something else. The error of a sale may have the order.
func (s *Shop) madeBefore(ctx context.Context, sale stock.Sale, failed error) (order stock.Order, err error) {
	byKey := s.store.OrderByKey
	if failed != nil { // a replica may not have it yet
		byKey = s.store.NewestByKey
	}
	if met, ok := errors.AsType[stock.RepeatedError](failed); ok {
		order = met.Order
	} else if order, err = byKey(ctx, sale.Subject, sale.IdempotencyKey); err != nil {
		return stock.Order{}, err
	}
	same := func(row stock.Order, line stock.Line) bool {
		return row.ItemID == line.ItemID && row.Quantity == line.Quantity
	}
	if !slices.EqualFunc(order.Rows(), sale.Lines(), same) {
		return stock.Order{}, errKeyReused
	}
	return order, nil
}

// Expired idempotency keys are cleared in rounds, at this interval by default: in batches, with a pause
// between two batches. A round begins where the last one ended, because the server may still keep the
// entries of cleared keys. One in so many begins at the oldest key: a round leaves out locked orders.
const (
	keyInterval = time.Minute
	keyBatch    = 1000
	keyPause    = 50 * time.Millisecond
	keyRounds   = 60
)

// clearing clears a batch of what is older than ttl: see [inRounds].
type clearing func(ctx context.Context, from time.Time, ttl time.Duration, limit int) (n int, upTo time.Time, err error)

// What is cleared, in the log and the metrics.
const (
	orderKeys       = "order-keys" // a repeat under a cleared key sells again
	reservationKeys = "reservation-keys"
	oldReservations = "reservations"
)

// clear clears in rounds, until ctx ends. With a ttl of 0 it does nothing.
func (s *Shop) clear(ctx context.Context, what string, ttl time.Duration, old clearing) {
	if ttl == 0 || !s.health.starts(ctx) {
		return
	}
	inRounds(ctx, s.KeyInterval, func(from time.Time) (int, time.Time, error) {
		n, upTo, err := old(ctx, from, ttl, keyBatch)
		if err != nil && ctx.Err() == nil {
			s.metrics.notCleared.WithLabelValues(what).Inc()
			s.Log.Warn("what is too old was not cleared", "what", what, "error", err)
			s.advise(ctx, err)
		}
		return n, upTo, err
	})
}

// inRounds calls clearBatch until ctx ends. ClearBatch clears a batch of keys from a time on. It returns
// how many it cleared, and the time of the youngest. An error ends a round, and
// the next one begins at the same batch.
func inRounds(ctx context.Context, interval time.Duration, clearBatch func(from time.Time) (n int, upTo time.Time, err error)) {
	oldest := time.Unix(0, 0)
	from, rounds := oldest, 0
	for ctx.Err() == nil {
		pause := interval
		switch n, upTo, err := clearBatch(from); {
		case err != nil:
		case n == keyBatch:
			from, pause = upTo, keyPause
		default:
			if from, rounds = upTo, rounds+1; rounds%keyRounds == 0 {
				from = oldest
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}
