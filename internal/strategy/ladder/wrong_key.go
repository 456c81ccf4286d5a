package ladder

import (
	"cmp"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// wrongKey has the reference lock under keys that are not the item's: two sales of one item that have
// different keys do not exclude each other.
func wrongKey(name string, v strategy.Strategy) strategy.Strategy {
	v.Name, v.Guard, v.Decrement, v.Telling = name, strategy.ReferenceGuard, "read-then-write", "contention"
	v.Properties = inclusive
	v.Build = reentrant.Build
	return v
}

// The variants.
var (
	wrongKeyCustomer = wrongKey("wrong-key-customer", strategy.Strategy{
		Doc:    "the reference lock by customer instead of by item: a customer waits for herself alone",
		Source: "the lock of one order for each user, copied to where the stock is written",
		// A customer whom no gateway names is known by her request.
		LockKey: func(of stock.Sale) string { return "customer:" + cmp.Or(of.Subject, of.RequestID) },
	})
	wrongKeyShop = wrongKey("wrong-key-shop", strategy.Strategy{
		Doc:            "the reference lock with the shop's own name in its key: right for one process, useless for two",
		Source:         "a prefix of the cache that each instance sets to its own name",
		LockKey:        func(of stock.Sale) string { return of.Shop + ":" + strategy.Key(of.ItemID) },
		WithOneProcess: strategy.Exclusive,
	})
)
