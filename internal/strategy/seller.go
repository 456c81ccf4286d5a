package strategy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
)

// Seller sells by one strategy. It is safe for concurrent use. Its fields do not change.
type Seller struct {
	Strategy  Strategy
	Store     *stock.Store
	Guard     Guard
	Decrement Decrement

	refusals *refusals
}

// New builds a seller. Sellers of one process share only deps. Two sellers of the same strategy do
// not see each other's local state. The caller has asked [Strategy.Check]: New does not.
func New(s Strategy, deps Deps) *Seller {
	deps.refusals = &refusals{}
	guard, decrement := s.Build(deps)
	return &Seller{Strategy: s, Store: deps.Store, Guard: guard, Decrement: decrement, refusals: deps.refusals}
}

// Close waits until the sales that still run have released their locks, and frees the guard's goroutines and
// subscriptions. When ctx ends first, those sales lose their locks, and Close returns its cause.
func (s *Seller) Close(ctx context.Context) error {
	if c, ok := s.Guard.(interface{ Close(context.Context) error }); ok {
		return c.Close(ctx)
	}
	return nil
}

// LockKey returns the name of the lock of a sale.
func (s *Seller) LockKey(of stock.Sale) string {
	if s.Strategy.LockKey != nil {
		return s.Strategy.LockKey(of)
	}
	return sale.Key(of.ItemID)
}

// Sell makes one sale. A basket is sold under the locks of all its items, or not at all: see
// [Seller.inside]. Its errors are those of package stock, ErrBusy, redislock.ErrLost, and those
// of Redis and MySQL. A committed sale is never an error, even if its lock was lost before the
// release: an order with an id is committed. A guard that commits after its section must be given
// orders without one.
//
// Before a sale is refused for what is held, overdue ones of that are ended, and the sale is tried once more. It is, too,
// where the units have come back meanwhile.
func (s *Seller) Sell(ctx context.Context, wanted stock.Sale) (stock.Order, error) {
	order, err := s.sellOrSay(ctx, wanted)
	again := errors.Is(err, errTryAgain)
	if errors.Is(err, stock.ErrHeld) || wanted.Holds && errors.Is(err, stock.ErrLimit) {
		ended, _ := s.Store.EndOverdue(ctx, wanted.Shop, wanted)
		again = ended > 0
	}
	if again {
		s.Forget(wanted)
		return s.sellOrSay(ctx, wanted)
	}
	return order, err
}

// RefuseEarly calls take, which takes the units of a sale, unless a look says that the sale would be refused. It looks where
// an item, or the customer, was refused before. It remembers why take was refused.
func (s *Seller) RefuseEarly(ctx context.Context, wanted stock.Sale, take func() error) error {
	err := s.refusals.check(ctx, s.Store, wanted)
	if err == nil {
		err = take()
		s.refusals.note(wanted, err)
	}
	return err
}

// Forget has the next such sale be tried without a look: units came back, and a replica may not have them yet.
func (s *Seller) Forget(wanted stock.Sale) { s.refusals.forget(s.refusals.suspects(wanted)) }

// errTryAgain ends a sale that found too few units, where the look for the reason then found enough.
var errTryAgain = fmt.Errorf("%w: it may be sold now", stock.ErrConflict)

// sellOrSay is sell that says of a shop with reservations whether others hold the units, also where the strategy
// decides by what it has read.
func (s *Seller) sellOrSay(ctx context.Context, wanted stock.Sale) (stock.Order, error) {
	order, err := s.sell(ctx, wanted)
	if wanted.Holds && errors.Is(err, stock.ErrSoldOut) && !errors.Is(err, stock.ErrNoneHeld) {
		if err = s.Store.RefusalAtPrimary(ctx, wanted); err == nil {
			err = errTryAgain
		}
	}
	return order, err
}

func (s *Seller) sell(ctx context.Context, wanted stock.Sale) (stock.Order, error) {
	wanted.Strategy = s.Strategy.Name
	if len(wanted.More) > 0 && !s.Strategy.Baskets {
		return stock.Order{}, fmt.Errorf("%w: %s", ErrOneItem, wanted.Strategy)
	}
	if len(wanted.More) > 0 {
		wanted.More = slices.Clone(wanted.More) // it gets the tokens
		wanted.Taken = func() { sale.At(ctx, sale.Taken) }
	}
	if s.Strategy.RefusesEarly {
		if err := s.refusals.check(ctx, s.Store, wanted); err != nil {
			return stock.Order{}, err
		}
	}
	var order stock.Order
	key := s.LockKey(wanted)
	if s.Strategy.LockKey != nil {
		ctx = sale.WithFact(ctx, sale.Acquired, slog.String(sale.LockKey, key))
	}
	err := s.Guard.Do(ctx, key, func(held context.Context, token int64) error {
		wanted.Token = token
		return s.inside(held, wanted.More, func(held context.Context) error {
			made, err := s.Decrement(held, s.Store, wanted)
			if err == nil { // else it may be one whose COMMIT failed
				order = made
			}
			return err
		})
	})
	if order.ID != 0 || err == nil {
		return order, nil
	}
	if s.Strategy.RefusesEarly {
		s.refusals.note(wanted, err)
	}
	return stock.Order{}, s.withLimits(ctx, wanted, err)
}

// withLimits adds to the reasons for which a basket was refused the lines that are beyond the customer's
// limit. Under the locks, a sale stops at the first kind of reason.
func (s *Seller) withLimits(ctx context.Context, wanted stock.Sale, err error) error {
	if _, ok := errors.AsType[stock.LineErrors](err); !ok || wanted.Limit == 0 {
		return err
	}
	if all, ok := errors.AsType[stock.LineErrors](s.Store.RefusalAtPrimary(ctx, wanted)); ok {
		return all
	}
	return err
}

// inside runs fn under the locks of further lines, each acquired inside the one before, and sets
// their tokens. Every sale acquires in the order of the items' ids, so a sale waits only for locks
// behind those that it holds. Redis sees no deadlock: of two sales in opposite orders, each would hold
// its lock and wait for the other until its patience ends.
//
// The context of the innermost lock ends when any of them is lost.
func (s *Seller) inside(ctx context.Context, more []stock.Line, fn func(held context.Context) error) error {
	if len(more) == 0 {
		return fn(ctx)
	}
	return s.Guard.Do(ctx, sale.Key(more[0].ItemID), func(held context.Context, token int64) error {
		more[0].Token = token
		return s.inside(held, more[1:], fn)
	})
}
