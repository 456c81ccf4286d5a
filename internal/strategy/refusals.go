package strategy

import (
	"context"
	"errors"
	"sync"

	"stocklock/internal/stock"
)

// refusals remembers items that were sold out, and customers who had all that they may have of one. The
// next such sale first sends plain SELECTs, which wait for no lock, neither in Redis nor of a row. The
// memory only saves work: each sale asks the database whether it would be refused.
//
// It is safe for concurrent use. Its zero value remembers nothing yet.
type refusals struct {
	mu sync.Mutex
	of map[refused]struct{} // guarded by mu
}

// refused is an item that was sold out, or an item of which a customer had reached the limit.
type refused struct {
	itemID  uint64
	limited bool
	subject string // of the customer who is limited
}

// maxRefusals bounds the memory. Above it, all is forgotten.
const maxRefusals = 10_000

// note remembers why a sale was refused, where that is its error.
func (r *refusals) note(wanted stock.Sale, err error) {
	lines, ok := errors.AsType[stock.LineErrors](err)
	if !ok {
		lines = stock.LineErrors{{ItemID: wanted.ItemID, Err: err}}
	}
	for _, line := range lines {
		switch {
		case errors.Is(line.Err, stock.ErrSoldOut):
			r.add(refused{itemID: line.ItemID})
		case errors.Is(line.Err, stock.ErrLimit):
			r.add(refused{line.ItemID, true, wanted.Subject})
		}
	}
}

func (r *refusals) add(one refused) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil || len(r.of) >= maxRefusals {
		r.of = map[refused]struct{}{}
	}
	r.of[one] = struct{}{}
}

// suspects returns what is remembered of the lines of a sale.
func (r *refusals) suspects(wanted stock.Sale) (all []refused) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range wanted.Lines() {
		for _, one := range []refused{{itemID: line.ItemID}, {line.ItemID, true, wanted.Subject}} {
			if _, is := r.of[one]; is && (!one.limited || wanted.Limit > 0) {
				all = append(all, one)
			}
		}
	}
	return all
}

// check returns why the sale would be refused, if a line of it was refused before.
func (r *refusals) check(ctx context.Context, store *stock.Store, wanted stock.Sale) error {
	suspects := r.suspects(wanted)
	if len(suspects) == 0 {
		return nil
	}
	if err := store.Refusal(ctx, wanted); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range suspects {
		delete(r.of, one)
	}
	return nil
}
