package ladder

import (
	"cmp"
	"context"
	"errors"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var retryWithoutKey = lockingRows(strategy.Strategy{
	Name:    "retry-without-key",
	Doc:     "a right decrement that is made again when its COMMIT has no answer, with nothing by which the database could tell",
	Mixable: true,
	Build:   strategy.Retrying(sellAgain),
}, declared.Strategy{
	Source:     "retries on a lost connection, in drivers, pools and interceptors",
	Decrement:  "UPDATE ... SET stock = stock - ? WHERE stock >= ?, INSERT; all of it again without an answer",
	Telling:    "commit-unanswered",
	Properties: repeated(0),
})

// repeated are the properties of a strategy that decides in the database, with what it has of Once.
func repeated(once declared.Property) declared.Properties {
	p := DatabaseLock
	p.Has = p.Has&^declared.Once | once
	return p
}

// triesWithoutAnswer is how often a sale is made whose COMMIT has no answer.
const triesWithoutAnswer = 3

// sellAgain takes a COMMIT without an answer for one that was not carried out.
func sellAgain(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	order, _, err := sellUntilAnswered(ctx, store, wanted)
	return order, err
}

// sellUntilAnswered also returns the error of the last try without an answer, if there was one.
func sellUntilAnswered(ctx context.Context, store *stock.Store, wanted stock.Sale) (order stock.Order, unknown, err error) {
	sale.At(ctx, sale.Read)
	for range triesWithoutAnswer {
		if ctx.Err() != nil {
			return stock.Order{}, unknown, cmp.Or(unknown, context.Cause(ctx))
		}
		sale.At(ctx, sale.Write)
		if order, err = takeAndRecord(ctx, store, wanted); !errors.Is(err, stock.ErrUnknown) {
			break
		}
		unknown = err
	}
	order, err = strategy.Written(ctx, order, err)
	return order, unknown, err
}

// takeAndRecord sells in one transaction. Unlike [stock.Store.Decrement] it does not look for the order of a
// COMMIT without an answer.
func takeAndRecord(ctx context.Context, store *stock.Store, wanted stock.Sale) (order stock.Order, err error) {
	err = store.Transact(ctx, func(tx stock.Tx) error {
		left, err := tx.Take(wanted.ItemID, wanted.Quantity)
		if err == nil {
			order, err = tx.Record(wanted, left+wanted.Quantity, left)
		}
		return err
	})
	if errors.Is(err, stock.ErrSoldOut) {
		if _, missing := store.Read(ctx, wanted.ItemID); missing != nil {
			err = missing
		}
	}
	return order, err
}

// sellOnceAgain makes an order that has its id before the first try. A later try finds the order by it, if an earlier
// one was carried out: its INSERT is refused, or the units are gone. A later try that has not had the item's row
// does not say what became of an earlier one: that may still be under way.
func sellOnceAgain(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	order, unknown, err := sellUntilAnswered(ctx, store, wanted)
	if err == nil || unknown == nil {
		return order, err
	}
	made, missing := store.Order(ctx, wanted.OrderID)
	if missing == nil {
		return strategy.Written(ctx, made, nil)
	}
	if errors.Is(missing, stock.ErrNotFound) && (errors.Is(err, stock.ErrRepeated) || errors.Is(err, stock.ErrSoldOut)) {
		return order, err
	}
	return stock.Order{}, unknown
}
