package ladder

import "stocklock/internal/strategy"

var retryWithKey = strategy.Strategy{
	Name:         "retry-with-key",
	Doc:          "retry-without-key whose order has an id from the beginning, unique in the database: what was done already is found",
	Source:       "idempotent retries: the key is made before the first try",
	Guard:        "nothing",
	Decrement:    "UPDATE ... SET stock = stock - ? WHERE stock >= ?, INSERT with the id; again without an answer, SELECT by the id",
	Telling:      "commit-unanswered",
	Servers:      strategy.EveryServer,
	WithoutRedis: true,
	Properties:   repeated(strategy.Once),
	Mixable:      true,
	WaitsInMySQL: true,
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return strategy.Unguarded{}, strategy.RetryConflicts(d.Options, sellOnceAgain)
	},
}
