package ladder

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var reentrantFixed = readsUnder(strategy.Strategy{
	Name: "reentrant-fixed",
	Doc:  "a hash of owner and count, kept by scripts: the holder may enter again, and nobody renews the lease",
}, declared.Strategy{
	Source:     "the HINCRBY scripts of the Redisson walk-throughs, without their watchdog",
	Guard:      "script: HEXISTS, HINCRBY, PEXPIRE; script: HINCRBY -1, DEL",
	Telling:    "overrun",
	Properties: declared.Properties{Has: ownerChecked.Declared.Has | declared.Reentrant},
}, func(d strategy.Deps) strategy.Guard {
	return countedGuard{d, func(countedHold) func() { return func() {} }}
})

var (
	//go:embed counted_enter.lua
	countedEnterSource string
	countedEnterScript = redis.NewScript(countedEnterSource)
	//go:embed counted_leave.lua
	countedLeaveSource string
	countedLeaveScript = redis.NewScript(countedLeaveSource)
)

// countedGuard is a reentrant lock that counts in Redis. The owner travels in the
// context, as a thread's id does elsewhere.
type countedGuard struct {
	strategy.Deps
	// keep maintains the lease while the lock is held, until the returned function is called.
	keep func(countedHold) (stop func())
}

type ownerKey struct{}

func (g countedGuard) Do(ctx context.Context, key string, fn func(context.Context, int64) error) error {
	owner, reentering := ctx.Value(ownerKey{}).(string)
	if !reentering {
		owner = ownerID()
		ctx = context.WithValue(ctx, ownerKey{}, owner)
	}
	hold := countedHold{g.Redis, key, owner, g.Lease}
	return polled{Options: g.Options, try: func(ctx context.Context, _ string) (release, error) {
		got, err := countedEnterScript.Run(ctx, g.Redis, []string{key}, owner, g.Lease.Milliseconds()).Int()
		if err != nil || got == 0 {
			return nil, err
		}
		sale.At(ctx, sale.Acquiring)
		stop := g.keep(hold)
		return func(ctx context.Context) error {
			defer stop()
			return hold.release(ctx)
		}, nil
	}}.Do(ctx, key, fn)
}

// countedHold is one entry into the lock.
type countedHold struct {
	redis redis.UniversalClient
	key   string
	owner string
	lease time.Duration
}

func (h countedHold) release(ctx context.Context) error {
	sale.At(ctx, sale.Releasing)
	left, err := countedLeaveScript.Run(ctx, h.redis, []string{h.key}, h.owner, h.lease.Milliseconds()).Int()
	if err != nil {
		return fmt.Errorf("leave %s: %w", h.key, err)
	}
	if left < 0 {
		return errNotOwner
	}
	return nil
}
