package ladder

import (
	"context"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var reentrantTimer = readsUnder(strategy.Strategy{
	Name: "reentrant-timer",
	Doc:  "the counted lock with a timer that renews it and looks at no answer: a holder never learns that it lost",
}, declared.Strategy{
	Source:     "the end of the Redisson walk-throughs: a timer at a third of the lease",
	Guard:      "reentrant-fixed; a timer: HEXISTS, PEXPIRE",
	Telling:    "partition",
	Properties: declared.Properties{Has: reentrantFixed.Declared.Has | declared.Renews},
}, func(d strategy.Deps) strategy.Guard { return countedGuard{d, renewBlindly} })

var (
	//go:embed counted_renew.lua
	countedRenewSource string
	countedRenewScript = redis.NewScript(countedRenewSource)
)

// renewBlindly renews at every third of the lease until it is stopped.
func renewBlindly(h countedHold) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(h.lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				countedRenewScript.Run(ctx, h.redis, []string{h.key}, h.owner, h.lease.Milliseconds())
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
