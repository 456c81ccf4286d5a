package shop

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"stocklock/internal/stock"
)

const (
	idempotencyKeyHeader = "Idempotency-Key"
	replayedHeader       = "Idempotency-Replayed" // true on an answer that was given before
)

// Lengths of idempotency keys and subjects.
const (
	maxKeyLength = 64 // what orders.idempotency_key can hold
	// leastSecretKey is the shortest key of a request without a subject: such a key is a secret,
	// because it alone gives its order to whoever sends it. 22 characters can hold 128 random bits.
	leastSecretKey   = 22
	maxSubjectLength = 64 // what orders.subject can hold
)

// exampleKey was the contract's example once. Clients that copied it would share an order.
const exampleKey = "7b1f6c1e-6f0e-4f5c-9c0a-0d5f3f8b2a11"

// subject returns the customer that the gateway names, empty where no header is configured for it
// or none was sent.
func (s *Shop) subject(header http.Header) (string, error) {
	if s.SubjectHeader == "" {
		return "", nil
	}
	switch subjects := header.Values(s.SubjectHeader); {
	case len(subjects) == 0:
		return "", nil
	case len(subjects) > 1 || !isLabel(subjects[0], maxSubjectLength):
		return "", refusal{malformed, fmt.Sprintf("%s must be there once, with 1 to %d printable characters without space", s.SubjectHeader, maxSubjectLength)}
	default:
		return subjects[0], nil
	}
}

// requestKey returns the request's idempotency key, empty when it has none.
func requestKey(header http.Header, subject string) (string, error) {
	switch keys := header.Values(idempotencyKeyHeader); len(keys) {
	case 0:
		return "", nil
	case 1:
		return readIdempotencyKey(keys[0], subject)
	default:
		return "", refusal{malformed, fmt.Sprintf("send %s once, not %d times", idempotencyKeyHeader, len(keys))}
	}
}

// readIdempotencyKey accepts the key bare or, as the draft of the header's standard wants it, in
// quotation marks.
func readIdempotencyKey(key, subject string) (string, error) {
	if quoted, ok := strings.CutPrefix(key, `"`); ok {
		key, ok = strings.CutSuffix(quoted, `"`)
		if !ok {
			key = ""
		}
	}
	if !isLabel(key, maxKeyLength) || strings.Contains(key, `"`) {
		return "", refusal{malformed, fmt.Sprintf("%s must be 1 to %d printable characters without space", idempotencyKeyHeader, maxKeyLength)}
	}
	if subject != "" {
		return key, nil
	}
	if len(key) < leastSecretKey {
		return "", refusal{malformed, fmt.Sprintf("%s is a secret and must have %d characters or more, such as a random UUID", idempotencyKeyHeader, leastSecretKey)}
	}
	if key == exampleKey {
		return "", refusal{malformed, idempotencyKeyHeader + " is an example: make a random one for every wish to buy"}
	}
	return key, nil
}

var errKeyReused = refusal{keyReused, "this Idempotency-Key was used for something else: nothing was done"}

// lookupTimeout bounds the question whether what failed was done after all.
const lookupTimeout = 2 * time.Second

// sellOnce makes the sale unless it was made before under the same key; then it
// returns that order and true. The key is unique in the database and written
// with the order, so that this holds for repeats that arrive at the same moment, at
// another shop, or after the first one's shop has died.
//
// Only sales are remembered: a refusal has changed nothing, and a repeat tries again.
func (s *Shop) sellOnce(ctx context.Context, sale stock.Sale, sell Sell) (order stock.Order, replayed bool, err error) {
	if sale.IdempotencyKey == "" {
		order, err = sell(ctx, sale)
		return order, false, err
	}
	return once(ctx,
		func(ctx context.Context) (stock.Order, error) { return s.madeBefore(ctx, sale) },
		func(ctx context.Context) (stock.Order, error) { return sell(ctx, sale) })
}

// once does what is asked for, unless before finds that it was done under the same key. Before
// returns stock.ErrNotFound where it was not.
func once[T any](ctx context.Context, before, do func(context.Context) (T, error)) (done T, replayed bool, err error) {
	if done, err := before(ctx); !errors.Is(err, stock.ErrNotFound) {
		return done, err == nil, err
	}
	done, err = do(ctx)
	if err == nil {
		return done, false, nil
	}
	// It may have failed because the same request was faster: it had the lock, or took the last
	// unit. Or it was done, and only the answer was lost.
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
	defer cancel()
	var none T
	earlier, lookupErr := before(asking)
	if errors.Is(lookupErr, stock.ErrNotFound) {
		return none, false, err
	}
	if lookupErr != nil && errors.Is(err, stock.ErrUnknown) {
		return none, false, err
	}
	// Where the lookup failed, too, an earlier try may have done it: a plain "sold out" would end
	// the client's doubt the wrong way.
	return earlier, lookupErr == nil, lookupErr
}

// madeBefore returns the order under the sale's key, stock.ErrNotFound when there is none,
// or errKeyReused when it is not an order of the same thing.
func (s *Shop) madeBefore(ctx context.Context, sale stock.Sale) (stock.Order, error) {
	order, err := s.store.OrderByKey(ctx, sale.Subject, sale.IdempotencyKey)
	if err != nil {
		return stock.Order{}, err
	}
	if order.ItemID != sale.ItemID || order.Quantity != sale.Quantity {
		return stock.Order{}, errKeyReused
	}
	return order, nil
}
