package ladder

import (
	"context"
	"maps"
	"slices"

	"stocklock/internal/redislock"
	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

// Rung is a strategy with what it declares.
type Rung struct {
	strategy.Strategy
	// Declared lacks what follows from the rest: see [Rung.Describe].
	Declared declared.Strategy
	// View makes what shows an item to customers, where the strategy keeps a copy of the item's row for
	// them. Only a shop in the lab shows items by it. Without it, fresh-read does not apply.
	View func(strategy.Deps) View
	// Holds makes what makes and ends reservations. Nil stands for the store. Only a shop in the lab reserves by it.
	Holds func(strategy.Deps) stock.Holder
}

// View shows an item. It passes the points of a page view.
type View func(ctx context.Context, itemID uint64) (stock.Item, error)

// Declare returns a strategy with what it declares. It sells baskets if it declares their properties.
func Declare(s strategy.Strategy, d declared.Strategy) Rung {
	s.Baskets = d.Baskets != nil
	return Rung{Strategy: s, Declared: d}
}

// readsUnder declares a strategy that reads and then writes while it has a lock in Redis.
func readsUnder(s strategy.Strategy, d declared.Strategy, lock func(strategy.Deps) strategy.Guard) Rung {
	s.Build = func(d strategy.Deps) (strategy.Guard, strategy.Decrement) { return lock(d), strategy.ReadThenWrite }
	d.Decrement, d.Servers = "read-then-write", declared.RewindProof
	return Declare(s, d)
}

// lockingRows declares a strategy that waits for the locks of rows: see [inDatabase].
func lockingRows(s strategy.Strategy, d declared.Strategy) Rung {
	s.WithoutRedis, d.WaitsInMySQL = true, true
	return Declare(s, inDatabase(d))
}

// viewedBy returns the strategy with a view.
func (r Rung) viewedBy(view func(strategy.Deps) View) Rung {
	r.View = view
	return r
}

// holdingBy returns the strategy with a way to reserve.
func (r Rung) holdingBy(holds func(strategy.Deps) stock.Holder) Rung {
	r.Holds = holds
	return r
}

// Describe returns what the strategy declares, with what follows from it.
func (r Rung) Describe() declared.Strategy {
	d := r.Declared
	d.Name, d.Doc, d.Mixable, d.NeedsQuorum, d.ShortestLease = r.Name, r.Doc, r.Mixable, r.NeedsQuorum, r.ShortestLease
	if r.View == nil {
		d.NotApplicable |= declared.FreshRead
	}
	d.Lease, d.Points = r.lease(), r.points()
	if d.Lease.Kept == declared.LeaseInExpiry {
		d.Scripts = maps.Clone(lockScripts)
		maps.Copy(d.Scripts, r.Declared.Scripts)
	}
	return d
}

// lockScripts are the steps of locks in Redis, by the SHA-1 of their scripts. In the shop, a step has its name by the progress
// of its sale: see package labmode. At the wire, a request shows the script alone.
var lockScripts = func() map[string]string {
	names := redislock.Scripts()
	maps.Copy(names, map[string]string{
		setIfAbsentScript.Hash(): "acquire", countedEnterScript.Hash(): "acquire", countedRenewScript.Hash(): "renew",
		countedLeaveScript.Hash(): "release", compareAndDeleteScript.Hash(): "release",
	})
	return names
}()

// lease derives the lease of a lock in etcd and of one without a lease. Any other lock has an expiry
// in Redis, if the strategy declares nothing else.
func (r Rung) lease() declared.Lease {
	switch {
	case r.Declared.Lease.Kept != declared.NoLease:
		return r.Declared.Lease
	case r.Declared.NotApplicable.Includes(declared.AtomicLease):
		return declared.Lease{}
	case r.Declared.NeedsEtcd:
		return declared.Lease{Kept: declared.LeaseInEtcd}
	}
	return declared.Lease{Kept: declared.LeaseInExpiry}
}

// points derives the points of a sale from its guard, and from the times of its answer and its commit.
// Those of a page view come last.
func (r Rung) points() []sale.Point {
	points := slices.Clone(sale.Points)
	move := func(moved, before sale.Point) {
		points = slices.DeleteFunc(points, func(p sale.Point) bool { return p == moved })
		points = slices.Insert(points, slices.Index(points, before), moved)
	}
	if r.Declared.AnswersFirst {
		move(sale.Answered, sale.Written)
	}
	if r.Declared.ReleasesFirst {
		move(sale.Written, sale.Answered)
	}
	if r.View != nil {
		points = append(points, sale.ViewPoints...)
	}
	unguarded := r.Declared.Guard == "nothing"
	return slices.DeleteFunc(points, func(p sale.Point) bool {
		switch p {
		case sale.Waiting: // nothing keeps out the sales of a strategy without any lock
			return r.Declared.WaitsInMySQL && r.WithoutRedis || unguarded && !r.Declared.Has.Includes(declared.Exclusive)
		case sale.Acquiring, sale.Acquired, sale.Releasing, sale.Released:
			return unguarded
		}
		return false
	})
}
