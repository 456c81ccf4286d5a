package ladder

import (
	"context"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
	"stocklock/internal/strategy"
)

var setnx = strategy.Strategy{
	Name:      "setnx",
	Doc:       "SETNX to take the lock, DEL to free it, and no expiry: a holder that dies keeps it for ever",
	Source:    "the first pattern of the SETNX command's page, and most copied snippets",
	Guard:     "SETNX; DEL",
	Decrement: "read-then-write",
	Telling:   "crash",
	Servers:   strategy.RewindProof,
	// The lock has no lease. It never changes hands before its release, so the DEL frees only the
	// holder's own lock.
	Properties: strategy.Properties{
		Has: strategy.DurableAnswers | strategy.Once | strategy.Exclusive | strategy.OwnerChecked | strategy.ClockFree,
		NotApplicable: strategy.AtomicLease | strategy.Renews | strategy.AtomicRelease |
			strategy.LossAware | strategy.PauseProof,
	},
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return polled{Options: d.Options, try: func(ctx context.Context, key string) (lease, error) {
			ok, err := sendSetnx(ctx, d.Redis, key, 1)
			if err != nil || !ok {
				return nil, err
			}
			sale.At(ctx, sale.Acquiring)
			return plainDel{d.Redis, key}, nil
		}}, strategy.ReadThenWrite
	},
}

// sendSetnx sends SETNX itself, because go-redis turns its SetNX into SET with NX.
func sendSetnx(ctx context.Context, client redis.UniversalClient, key string, value any) (bool, error) {
	return client.Do(ctx, "SETNX", key, value).Bool()
}

// plainDel frees the lock with DEL, whoever holds it by now.
type plainDel struct {
	redis redis.UniversalClient
	key   string
}

func (l plainDel) release(ctx context.Context) error {
	sale.At(ctx, sale.Releasing)
	return l.redis.Del(ctx, l.key).Err()
}
