package baskets

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/ladder"
)

const (
	itemLocks  = "SET NX PX of each item's key; script: GET equals, DEL"
	underLocks = "SELECT, then an absolute UPDATE, for each line"
)

// polledLocks are the properties of a lock by SET NX PX with a value of its own that is never renewed.
var polledLocks = declared.Properties{
	Has: declared.DurableAnswers | declared.Once | declared.Exclusive | declared.Recovers | declared.AtomicLease |
		declared.OwnerChecked | declared.AtomicRelease | declared.ClockFree,
}

var locksUnsorted = declare(strategy.Strategy{
	Name:  "locks-unsorted",
	Doc:   "a Redis lock an item, one after the other as the customer has them; each line is checked against the same number",
	Build: underLocksOf(strategy.Posted, locks.oneByOne),
}, declared.Strategy{
	Source:     "Redisson, issue 4050: a MultiLock over locks that others acquire in another order",
	Guard:      itemLocks + ", in the basket's order",
	Decrement:  underLocks,
	Telling:    "crossed",
	Properties: polledLocks,
	Baskets:    &declared.Properties{Has: declared.Isolated | declared.Whole | declared.FreesLocks | declared.Unstarved | declared.Complete},
})

var locksSorted = declare(strategy.Strategy{
	Name:  "locks-sorted",
	Doc:   "the same in the order of the items' ids, and lines of one item are one",
	Build: underLocksOf(sorted, locks.oneByOne),
}, declared.Strategy{
	Source:     "Medusa, pull request 16284: deduplicate, sort, and acquire one after the other",
	Guard:      itemLocks + ", sorted",
	Decrement:  underLocks,
	Telling:    "first-lock-ends",
	Properties: polledLocks,
	Baskets: &declared.Properties{
		Has: declared.Crossable | declared.AddsUp | declared.Isolated | declared.Whole | declared.FreesLocks | declared.Unstarved | declared.Complete,
	},
})

var locksParallel = declare(strategy.Strategy{
	Name:  "locks-parallel",
	Doc:   "asks for all locks, round after round; what it got is held while it waits for the rest",
	Build: underLocksOf(strategy.Posted, locks.allAtOnce),
}, declared.Strategy{
	Source:     "Medusa, locking-redis/src/services/redis-lock.ts",
	Guard:      itemLocks + ", all at once",
	Decrement:  underLocks,
	Telling:    "crossed",
	Properties: polledLocks,
	Baskets:    &declared.Properties{Has: declared.Isolated | declared.Whole | declared.FreesLocks | declared.Unstarved | declared.Complete},
})

var locksAllOrNone = declare(strategy.Strategy{
	Name:  "locks-all-or-none",
	Doc:   "one script sets the locks of all items or none, and is sent again until all are free at once: nobody holds a lock while it waits",
	Build: underLocksOf(sorted, locks.allOrNone),
}, declared.Strategy{
	Source:     "node-redlock, src/index.ts, ACQUIRE_SCRIPT: EXISTS of each key, then SET PX of each",
	Guard:      "script: EXISTS of each item's key, SET PX of each; script: GET equals, DEL",
	Decrement:  underLocks,
	Telling:    "fifty-beside-one",
	Properties: polledLocks,
	Scripts:    map[string]string{setAll.Hash(): "set"},
	Baskets: &declared.Properties{
		Has:           declared.Crossable | declared.AddsUp | declared.Isolated | declared.Whole | declared.FreesLocks | declared.Complete,
		NotApplicable: declared.OvertakeProof,
	},
})

var lockForAll = declare(strategy.Strategy{
	Name: "lock-for-all",
	Doc:  "one lock for the whole shop, without an expiry: every customer waits for every other, and nothing frees the lock of one who died",
	Build: underLocksOf(sorted, func(l locks, ctx context.Context, _ []string) ([]string, error) {
		l.Lease = 0 // of SETNX
		return l.oneByOne(ctx, []string{allItems})
	}),
}, declared.Strategy{
	Source:    "the usual first answer, by SETNX's page of before SET had options",
	Guard:     "SET NX without an expiry of one key for all items; script: GET equals, DEL",
	Decrement: underLocks,
	Telling:   "death-between-locks",
	State:     declared.State{Locks: []string{allItems}},
	Properties: declared.Properties{
		Has:           declared.DurableAnswers | declared.Once | declared.Exclusive | declared.ClockFree | declared.PauseProof,
		NotApplicable: declared.AtomicLease | declared.Renews | declared.OwnerChecked | declared.AtomicRelease | declared.LossAware,
	},
	Baskets: &declared.Properties{
		Has:           declared.Crossable | declared.AddsUp | declared.Isolated | declared.Whole | declared.Unstarved | declared.Complete,
		NotApplicable: declared.OvertakeProof,
	},
})

const allItems = "stock:all"

// locks are locks by SET NX with a value of their own.
type locks struct {
	strategy.Deps
	owner string
}

// underLocksOf builds a way that holds the locks of its items while it reads and writes. Acquire returns
// those that it got, with an error, too.
func underLocksOf(lines linesOf, acquire func(l locks, ctx context.Context, keys []string) (got []string, err error)) func(strategy.Deps) (strategy.Guard, strategy.Decrement) {
	return func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return strategy.Unguarded{}, func(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
			wanted = with(wanted, lines(ctx, wanted))
			var keys []string
			for _, line := range wanted.Lines() {
				if key := sale.Key(line.ItemID); !slices.Contains(keys, key) { // nobody waits for itself
					keys = append(keys, key)
				}
			}
			l := locks{d, rand.Text()}
			got, err := acquire(l, ctx, keys)
			defer l.release(ctx, got)
			if err != nil {
				return stock.Order{}, err
			}
			return readThenWrite(ctx, store, wanted)
		}
	}
}

// readThenWrite checks each line against what was read of its item, and writes what follows.
func readThenWrite(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	var items []stock.Item
	for _, line := range wanted.Lines() {
		item, err := store.Read(ctx, line.ItemID)
		if err == nil {
			_, err = item.Take(line.Quantity)
		}
		if err != nil {
			return stock.Order{}, err
		}
		items = append(items, item)
	}
	sale.At(ctx, sale.Read, slog.Int64("stock", items[0].Stock))
	sale.At(ctx, sale.Write)
	wanted.Taken = func() { taken(ctx) }
	order, err := stock.Within(ctx, store, func(tx stock.Tx) (stock.Order, error) { return tx.Write(wanted, items...) })
	return strategy.Written(ctx, order, err)
}

// oneByOne acquires each lock when it has those before.
func (l locks) oneByOne(ctx context.Context, keys []string) (got []string, err error) {
	for _, key := range keys {
		one, err := l.allAtOnce(ctx, []string{key})
		if got = append(got, one...); err != nil {
			return got, err
		}
	}
	return got, nil
}

// allAtOnce asks for each lock in turn, and again and again for those that it has not got.
func (l locks) allAtOnce(ctx context.Context, keys []string) (got []string, err error) {
	waited := false
	err = ladder.Poll(ctx, l.Options, func(uncancelled context.Context) (bool, error) {
		var refused []string
		for _, key := range keys {
			ok, err := l.Redis.SetNX(uncancelled, key, l.owner, l.Lease).Result()
			switch {
			case err != nil:
				return false, fmt.Errorf("acquire %s: %w", key, err)
			case ok:
				got = append(got, key)
				sale.At(ctx, sale.Acquired)
			default:
				refused = append(refused, key)
			}
		}
		if keys = refused; len(keys) > 0 && !waited {
			waited = true
			sale.At(ctx, sale.Waiting)
		}
		return len(keys) == 0, nil
	})
	return got, err
}

// setAll sets each key KEYS[i] to the owner ARGV[1] with the lease ARGV[2], in milliseconds, or none if there
// is one of them.
var setAll = redis.NewScript(`for _, key in ipairs(KEYS) do
	if redis.call('EXISTS', key) == 1 then return 0 end
end
for _, key in ipairs(KEYS) do redis.call('SET', key, ARGV[1], 'PX', ARGV[2]) end
return 1`)

// allOrNone asks for all locks at once. A refusal is of all of them, so each try is an acquisition of its own.
func (l locks) allOrNone(ctx context.Context, keys []string) (got []string, err error) {
	err = ladder.Poll(ctx, l.Options, func(uncancelled context.Context) (bool, error) {
		all, err := setAll.Run(uncancelled, l.Redis, keys, l.owner, l.Lease.Milliseconds()).Bool()
		switch {
		case err != nil:
			return false, fmt.Errorf("acquire %v: %w", keys, err)
		case all:
			got = keys
			sale.At(ctx, sale.Acquired)
		default:
			sale.At(ctx, sale.Waiting)
		}
		return all, nil
	})
	return got, err
}

var compareAndDelete = redis.NewScript("if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0")

func (l locks) release(ctx context.Context, keys []string) {
	if len(keys) == 0 {
		return
	}
	ctx = context.WithoutCancel(ctx)
	sale.At(ctx, sale.Releasing)
	for _, key := range slices.Backward(keys) {
		if err := compareAndDelete.Run(ctx, l.Redis, []string{key}, l.owner).Err(); err != nil {
			slog.DebugContext(ctx, "release failed", "error", err)
		}
	}
	sale.At(ctx, sale.Released)
}
