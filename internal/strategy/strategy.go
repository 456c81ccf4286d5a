// Package strategy holds the ways to protect a sale, the broken ones included.
//
// A strategy is a guard and a decrement. The guard says who may enter the
// section: a lock of some kind, or nothing. The decrement says how the stock is
// written: read it, compute in Go and write it back, or one of the database's
// own ways. Each strategy is one file and one line in all.go, and says of itself
// which properties it has; what is expected of it under each scenario follows
// from them.
//
// Only the reentrant, fenced and redlock guards and the database's own ways are
// fit to be copied. The others are here to be seen failing.
package strategy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/redislock"
	"stocklock/internal/stock"
)

// Strategy is one way to protect a sale.
type Strategy struct {
	Name       string // the value of the flag
	Doc        string // one line: what it does
	Source     string // one line: where the recipe comes from
	Guard      string // the guard in a few words, in Redis's own commands
	Decrement  string // the decrement in a few words
	Telling    string // the scenario that shows most about it
	Properties Property
	// NeedsQuorum: it wants several independent Redis servers, Deps.Quorum.
	NeedsQuorum bool
	// WithServerClock is what it gains when Options.ServerClock is on.
	WithServerClock Property
	// WithOneProcess is what it gains when Options.OneProcess is on.
	WithOneProcess Property

	build func(Deps) (guard, decrement)
}

// Deps is what strategies are built on. The clients and the store are the
// caller's: it closes them.
type Deps struct {
	Redis redis.UniversalClient
	// Quorum are independent servers, for the strategies that need them.
	Quorum []redis.UniversalClient
	Store  *stock.Store
	// Hooks are told what happens to locks of package redislock.
	Hooks redislock.Hooks
	Options
}

// Options are the settings that all locks share.
type Options struct {
	Lease time.Duration // how long a lock lives in Redis without renewal
	Wait  time.Duration // how long to wait for a lock before ErrBusy
	Retry time.Duration // pause between two tries, where the lock polls

	// ServerClock makes getset compare its deadlines with the clock of Redis (TIME)
	// instead of the process's own. No other strategy looks at a clock.
	ServerClock bool
	// OneProcess says that no other process sells. It changes what is to be expected, and nothing else.
	OneProcess bool
	// ClockSkew is added to the process's own clock, for the lab to set it wrong.
	ClockSkew time.Duration
}

// PropertiesUnder says which properties the strategy has with these options.
func (s Strategy) PropertiesUnder(o Options) Property {
	p := s.Properties
	if o.ServerClock {
		p |= s.WithServerClock
	}
	if o.OneProcess {
		p |= s.WithOneProcess
	}
	return p
}

// Check says whether these deps have what the strategy needs.
func (s Strategy) Check(d Deps) error {
	if s.NeedsQuorum && len(d.Quorum) == 0 {
		return fmt.Errorf("strategy %s needs a quorum of independent Redis servers, and none is configured", s.Name)
	}
	return nil
}

// ErrBusy: the lock was not free within the time to wait. Nothing was written.
var ErrBusy = errors.New("strategy: lock is busy")

// guard protects a section. Do runs fn while it holds key, and returns fn's error,
// or ErrBusy, or what went wrong with the lock. The token is the lock's fencing
// token, 0 where it has none. Held ends when the guard knows that the lock is
// lost, and carries what reentrancy needs.
type guard interface {
	Do(ctx context.Context, key string, fn func(held context.Context, token int64) error) error
}

// decrement makes the sale inside the section and records its order.
type decrement func(ctx context.Context, store *stock.Store, sale stock.Sale) (stock.Order, error)

// Seller sells by one strategy. It is safe for concurrent use.
type Seller struct {
	strategy  Strategy
	store     *stock.Store
	guard     guard
	decrement decrement
}

// New builds a seller. It panics when [Strategy.Check] would fail. Sellers of one process share nothing but deps: two of the
// same strategy do not see each other's local state.
func New(s Strategy, deps Deps) *Seller {
	g, d := s.build(deps)
	return &Seller{strategy: s, store: deps.Store, guard: g, decrement: d}
}

// Close frees what the guard holds: goroutines, subscriptions, locks. Sales that
// still run lose their locks.
func (s *Seller) Close() error {
	if c, ok := s.guard.(interface{ Close() error }); ok {
		return c.Close()
	}
	return nil
}

// Key is the name of the lock on an item.
func Key(itemID uint64) string { return fmt.Sprintf("stock:%d", itemID) }

// Sell makes one sale. The errors are those of package stock, ErrBusy,
// redislock.ErrLost, or those of Redis and MySQL. A sale that was committed is
// never an error, even when the lock turns out to be lost while it is given back.
func (s *Seller) Sell(ctx context.Context, sale stock.Sale) (stock.Order, error) {
	return s.sell(ctx, sale, nil)
}

// SellNested makes one sale that takes its own lock a second time on the way,
// as code does that calls another guarded function: here to look at the item.
func (s *Seller) SellNested(ctx context.Context, sale stock.Sale) (stock.Order, error) {
	return s.sell(ctx, sale, func(held context.Context) error {
		return s.guard.Do(held, Key(sale.ItemID), func(inner context.Context, _ int64) error {
			_, err := s.store.Read(inner, sale.ItemID)
			return err
		})
	})
}

func (s *Seller) sell(ctx context.Context, sale stock.Sale, before func(held context.Context) error) (stock.Order, error) {
	sale.Strategy = s.strategy.Name
	var order stock.Order
	err := s.guard.Do(ctx, Key(sale.ItemID), func(held context.Context, token int64) error {
		sale.Token = token
		if before != nil {
			if err := before(held); err != nil {
				return err
			}
		}
		var err error
		order, err = s.decrement(held, s.store, sale)
		return err
	})
	if order.ID != 0 {
		return order, nil
	}
	return stock.Order{}, err
}
