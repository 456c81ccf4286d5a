package strategy

import (
	"context"
	"fmt"

	"stocklock/internal/stock"
)

// Seller sells by one strategy. It is safe for concurrent use. Its fields do not change.
type Seller struct {
	Strategy  Strategy
	Store     *stock.Store
	Guard     Guard
	Decrement Decrement
}

// New builds a seller. Sellers of one process share only deps. Two sellers of the same strategy do
// not see each other's local state. New panics if [Strategy.Check] returns an error.
func New(s Strategy, deps Deps) *Seller {
	guard, decrement := s.Build(deps)
	return &Seller{Strategy: s, Store: deps.Store, Guard: guard, Decrement: decrement}
}

// Close frees the guard's goroutines, subscriptions and locks. Sales that still run lose their
// locks.
func (s *Seller) Close() error {
	if c, ok := s.Guard.(interface{ Close() error }); ok {
		return c.Close()
	}
	return nil
}

// Key returns the name of the lock on an item.
func Key(itemID uint64) string { return fmt.Sprintf(keyForm, itemID) }

const keyForm = "stock:%d"

// ItemOf returns the item that a lock is on.
func ItemOf(key string) (itemID uint64, err error) {
	_, err = fmt.Sscanf(key, keyForm, &itemID)
	return itemID, err
}

// Sell makes one sale. Its errors are those of package stock, ErrBusy, redislock.ErrLost, and those
// of Redis and MySQL. A committed sale is never an error, even if its lock was lost before the
// release: an order with an id is committed. A guard that commits after its section must be given
// orders without one.
func (s *Seller) Sell(ctx context.Context, sale stock.Sale) (stock.Order, error) {
	sale.Strategy = s.Strategy.Name
	var order stock.Order
	err := s.Guard.Do(ctx, Key(sale.ItemID), func(held context.Context, token int64) error {
		sale.Token = token
		var err error
		order, err = s.Decrement(held, s.Store, sale)
		return err
	})
	if order.ID != 0 || err == nil {
		return order, nil
	}
	return stock.Order{}, err
}
