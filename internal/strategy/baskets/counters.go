package baskets

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

// counters has the key of an item's counter in Redis, which is set from MySQL when it is missing.
var counters = declared.State{Keys: []string{"{%s}:units"}}

// inCounters are the properties of a sale that takes units from counters, which are no locks, before the
// order is written.
var inCounters = declared.Properties{
	Has: declared.DurableAnswers | declared.Once | declared.Exclusive | declared.ClockFree | declared.SurvivesDataLoss | declared.StorageChecked,
	NotApplicable: declared.Recovers | declared.AtomicLease | declared.Renews | declared.OwnerChecked | declared.AtomicRelease |
		declared.Reentrant | declared.LossAware | declared.PauseProof,
}

var countersLua = declare(strategy.Strategy{
	Name:  "counters-lua",
	Doc:   "a counter an item in Redis: one script takes from all or from none, and the order follows in SQL",
	Build: byCounters(takeByScript),
}, declared.Strategy{
	Source:     "codingXiaxw/seckill, issue 16, the answer: one Lua script for all keys",
	Decrement:  "script: DECRBY of each, INCRBY of all if one has too few; UPDATE, INSERT",
	Telling:    "death-between-lines",
	State:      counters,
	Scripts:    map[string]string{takeAll.Hash(): "take"},
	Properties: inCounters,
	Baskets: &declared.Properties{
		Has:           declared.Crossable | declared.AddsUp | declared.Isolated | declared.Unstarved | declared.Complete,
		NotApplicable: declared.FreesLocks | declared.OvertakeProof,
	},
})

var countersDecr = declare(strategy.Strategy{
	Name:  "counters-decr",
	Doc:   "DECRBY of one counter after the other, taken back if one falls below zero: others are refused by a number that is low for a moment",
	Build: byCounters(takeOneByOne),
}, declared.Strategy{
	Source:     "codingXiaxw/seckill, issue 16: DECR with rollback",
	Decrement:  "DECRBY for each line; INCRBY to take back; UPDATE, INSERT",
	Telling:    "one-sold-out",
	State:      counters,
	Properties: inCounters,
	Baskets: &declared.Properties{
		Has:           declared.Crossable | declared.AddsUp | declared.Unstarved | declared.Complete,
		NotApplicable: declared.FreesLocks | declared.OvertakeProof,
	},
})

// take takes the units of lines from counters, or returns [stock.ErrSoldOut] and takes none.
type take func(ctx context.Context, client redis.UniversalClient, lines []stock.Line) error

func byCounters(take take) func(strategy.Deps) (strategy.Guard, strategy.Decrement) {
	return func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return strategy.Unguarded{}, func(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
			wanted = with(wanted, strategy.Posted(ctx, wanted))
			lines := wanted.Lines()
			if err := load(ctx, d, lines); err != nil {
				return stock.Order{}, err
			}
			if err := take(ctx, d.Redis, lines); err != nil {
				return stock.Order{}, err
			}
			taken(ctx)
			sale.At(ctx, sale.Write)
			return strategy.Repeat(ctx, d.Options, func() (stock.Order, error) { return writeTaken(ctx, store, wanted) })
		}
	}
}

// writeTaken writes the order of units that were taken. The rows come in the order of the items.
func writeTaken(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	merged := wanted
	merged.SetLines(wanted.Lines())
	order, err := stock.Within(ctx, store, func(tx stock.Tx) (none stock.Order, err error) {
		var read []int64
		for _, line := range merged.Lines() {
			left, err := tx.Take(line.ItemID, line.Quantity)
			if err != nil {
				return none, err
			}
			read = append(read, left+line.Quantity)
		}
		return tx.RecordLines(merged, read)
	})
	return strategy.Written(ctx, order, err)
}

func counterOf(line stock.Line) string { return declared.KeysOf(counters.Keys, line.ItemID)[0] }

// load sets the counters that are missing.
func load(ctx context.Context, d strategy.Deps, lines []stock.Line) error {
	for _, line := range lines {
		there, err := d.Redis.Exists(ctx, counterOf(line)).Result()
		if err != nil {
			return err
		}
		if there == 1 {
			continue
		}
		item, err := d.Store.Read(ctx, line.ItemID)
		if err != nil {
			return err
		}
		if err := d.Redis.SetNX(ctx, counterOf(line), item.Stock, 0).Err(); err != nil {
			return err
		}
	}
	return nil
}

// takeAll takes ARGV[i] units from each counter KEYS[i]. A key can come twice. Where one has too few, it
// puts back what it took, and returns 0.
var takeAll = redis.NewScript(`for i, key in ipairs(KEYS) do
	if redis.call('DECRBY', key, ARGV[i]) < 0 then
		for j = 1, i do redis.call('INCRBY', KEYS[j], ARGV[j]) end
		return 0
	end
end
return 1`)

func takeByScript(ctx context.Context, client redis.UniversalClient, lines []stock.Line) error {
	keys, units := make([]string, len(lines)), make([]any, len(lines))
	for i, line := range lines {
		keys[i], units[i] = counterOf(line), line.Quantity
	}
	took, err := takeAll.Run(ctx, client, keys, units...).Bool()
	if err == nil && !took {
		err = stock.ErrSoldOut
	}
	return err
}

// takeOneByOne shows each number between its commands.
func takeOneByOne(ctx context.Context, client redis.UniversalClient, lines []stock.Line) error {
	for i, line := range lines {
		left, err := client.DecrBy(ctx, counterOf(line), line.Quantity).Result()
		if err != nil {
			return fmt.Errorf("take %d of item %d in Redis: %w", line.Quantity, line.ItemID, err)
		}
		if left < 0 {
			for _, back := range lines[:i+1] {
				if err := client.IncrBy(ctx, counterOf(back), back.Quantity).Err(); err != nil {
					return err
				}
			}
			return stock.ErrSoldOut
		}
		if i < len(lines)-1 {
			taken(ctx)
		}
	}
	return nil
}
