package ladder

import (
	"cmp"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

// wrongKey has the reference lock under keys that are not the item's: two sales of one item that have
// different keys do not exclude each other.
func wrongKey(s strategy.Strategy, d declared.Strategy) Rung {
	d.Guard, d.Decrement, d.Telling, d.Properties = ReferenceGuard, "read-then-write", "contention", inclusive
	s.Build = reentrant.Build
	return Declare(s, d)
}

// The variants.
var (
	wrongKeyCustomer = wrongKey(strategy.Strategy{
		Name: "wrong-key-customer",
		Doc:  "the reference lock by customer instead of by item: a customer waits for herself alone",
		// A customer whom no gateway names is known by her request.
		LockKey: func(of stock.Sale) string { return "customer:" + cmp.Or(of.Subject, of.RequestID) },
	}, declared.Strategy{
		Source: "the lock of one order for each user, copied to where the stock is written",
	})
	wrongKeyShop = wrongKey(strategy.Strategy{
		Name:    "wrong-key-shop",
		Doc:     "the reference lock with the shop's own name in its key: right for one process, useless for two",
		LockKey: func(of stock.Sale) string { return of.Shop + ":" + sale.Key(of.ItemID) },
	}, declared.Strategy{
		Source:         "a prefix of the cache that each instance sets to its own name",
		WithOneProcess: declared.Exclusive,
	})
)
