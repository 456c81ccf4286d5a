package strategy

import (
	"context"
	"errors"
	"sync"
	"time"

	"stocklock/internal/stock"
)

// refusals remembers items that were sold out or held by others, and customers who had all that they may have of one.
// The next such sale or reservation first sends plain SELECTs, which wait for no lock, neither in Redis nor of a row. The
// memory only saves work: each asks the database whether it would be refused.
//
// It is safe for concurrent use. Its zero value remembers nothing yet, and nil, as in a [Seller] that [New] has not made,
// remembers nothing.
type refusals struct {
	mu sync.Mutex
	of map[refused]time.Time // when the primary said so last, or is asked; guarded by mu
}

// lookFor is how long looks may be answered by a replica that is behind. One sale then asks the primary.
const lookFor = time.Second

// refused is an item that had too few units, or an item of which a customer had reached the limit.
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
		case errors.Is(line.Err, stock.ErrSoldOut) || errors.Is(line.Err, stock.ErrHeld):
			r.add(refused{itemID: line.ItemID})
		case errors.Is(line.Err, stock.ErrLimit):
			r.add(refused{line.ItemID, true, wanted.Subject})
		}
	}
}

func (r *refusals) add(one refused) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil || len(r.of) >= maxRefusals {
		r.of = map[refused]time.Time{}
	}
	r.of[one] = time.Now()
}

// due says whether it is time to ask the primary again. The sales behind the one that does look on.
func (r *refusals) due(suspects []refused) (due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, one := range suspects {
		if asked, is := r.of[one]; is && now.Sub(asked) > lookFor {
			r.of[one], due = now, true
		}
	}
	return due
}

// suspects returns what is remembered of the lines of a sale.
func (r *refusals) suspects(wanted stock.Sale) (all []refused) {
	if r == nil {
		return nil
	}
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
	look := store.Refusal
	if r.due(suspects) {
		look = store.RefusalAtPrimary
	}
	if err := look(ctx, wanted); err != nil {
		return err
	}
	r.forget(suspects)
	return nil
}

func (r *refusals) forget(suspects []refused) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range suspects {
		delete(r.of, one)
	}
}
