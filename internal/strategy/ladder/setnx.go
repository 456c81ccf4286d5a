package ladder

import (
	"context"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var setnx = readsUnder(strategy.Strategy{
	Name: "setnx",
	Doc:  "SETNX to take the lock, DEL to free it, and no expiry: nothing frees the lock of a dead holder",
}, declared.Strategy{
	Source:  "the first pattern of the SETNX command's page, and most copied snippets",
	Guard:   "SETNX; DEL",
	Telling: "crash",
	// The lock has no lease. It never changes hands before its release, so the DEL frees only the
	// holder's own lock.
	Properties: declared.Properties{
		Has: declared.DurableAnswers | declared.Once | declared.Exclusive | declared.OwnerChecked | declared.ClockFree,
		NotApplicable: declared.AtomicLease | declared.Renews | declared.AtomicRelease |
			declared.LossAware | declared.PauseProof,
	},
}, func(d strategy.Deps) strategy.Guard {
	return polledBy(d, func(ctx context.Context, key, _ string) (bool, error) { return sendSetnx(ctx, d.Redis, key, 1) }, plainDel)
})

// sendSetnx sends SETNX itself, because go-redis turns its SetNX into SET with NX.
func sendSetnx(ctx context.Context, client redis.UniversalClient, key string, value any) (bool, error) {
	return client.Do(ctx, "SETNX", key, value).Bool()
}

// plainDel frees the lock with DEL, whoever holds it by now: it looks at no owner.
func plainDel(client redis.UniversalClient, key, _ string) release {
	return func(ctx context.Context) error {
		sale.At(ctx, sale.Releasing)
		return client.Del(ctx, key).Err()
	}
}
