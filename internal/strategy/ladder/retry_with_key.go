package ladder

import (
	"context"

	"github.com/google/uuid"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var retryWithKey = lockingRows(strategy.Strategy{
	Name:    "retry-with-key",
	Doc:     "retry-without-key whose order has an id from the beginning, unique in the database: what was done already is found",
	Mixable: true,
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		sell := strategy.RetryConflicts(d.Options, sellOnceAgain)
		return strategy.Unguarded{}, func(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
			wanted.OrderID = uuid.Must(uuid.NewV7()).String()
			return sell(ctx, store, wanted)
		}
	},
}, declared.Strategy{
	Source:     "idempotent retries: the key is made before the first try",
	Decrement:  "UPDATE ... SET stock = stock - ? WHERE stock >= ?, INSERT with the id; again without an answer, SELECT by the id",
	Telling:    "commit-unanswered",
	Properties: repeated(declared.Once),
})
