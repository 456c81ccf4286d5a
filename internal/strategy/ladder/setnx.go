package ladder

import (
	"context"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var setnx = Declare(strategy.Strategy{
	Name: "setnx",
	Doc:  "SETNX to take the lock, DEL to free it, and no expiry: nothing frees the lock of a dead holder",
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return polled{Options: d.Options, try: func(ctx context.Context, key string) (release, error) {
			ok, err := sendSetnx(ctx, d.Redis, key, 1)
			if err != nil || !ok {
				return nil, err
			}
			sale.At(ctx, sale.Acquiring)
			return plainDel(d.Redis, key), nil
		}}, strategy.ReadThenWrite
	},
}, declared.Strategy{
	Source:    "the first pattern of the SETNX command's page, and most copied snippets",
	Guard:     "SETNX; DEL",
	Decrement: "read-then-write",
	Telling:   "crash",
	Servers:   declared.RewindProof,
	// The lock has no lease. It never changes hands before its release, so the DEL frees only the
	// holder's own lock.
	Properties: declared.Properties{
		Has: declared.DurableAnswers | declared.Once | declared.Exclusive | declared.OwnerChecked | declared.ClockFree,
		NotApplicable: declared.AtomicLease | declared.Renews | declared.AtomicRelease |
			declared.LossAware | declared.PauseProof,
	},
})

// sendSetnx sends SETNX itself, because go-redis turns its SetNX into SET with NX.
func sendSetnx(ctx context.Context, client redis.UniversalClient, key string, value any) (bool, error) {
	return client.Do(ctx, "SETNX", key, value).Bool()
}

// plainDel frees the lock with DEL, whoever holds it by now.
func plainDel(client redis.UniversalClient, key string) release {
	return func(ctx context.Context) error {
		sale.At(ctx, sale.Releasing)
		return client.Del(ctx, key).Err()
	}
}
