package ladder

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var getset = readsUnder(strategy.Strategy{
	Name: "getset",
	Doc:  "SETNX with the deadline as the value; a process that finds it passed takes over with GETSET: all processes must agree on the time",
}, declared.Strategy{
	Source:  "the SETNX command's page, \"Design pattern: Locking with SETNX\"",
	Guard:   "SETNX deadline; GET, GETSET; DEL",
	Telling: "clock-skew",
	Properties: declared.Properties{
		Has:           declared.DurableAnswers | declared.Once | declared.Exclusive | declared.Recovers | declared.AtomicLease,
		NotApplicable: declared.AtomicRelease,
	},
	Lease: declared.Lease{Kept: declared.LeaseInValue, Unit: time.Millisecond},
}, func(d strategy.Deps) strategy.Guard {
	return polledBy(d, deadlineLock{d, processClock(d)}.take, plainDel)
})

// clock returns the time to compare with a deadline.
type clock func(context.Context) (time.Time, error)

// processClock is the clock of the process itself.
func processClock(d strategy.Deps) clock {
	now := d.Now
	if now == nil {
		now = time.Now
	}
	return func(context.Context) (time.Time, error) { return now(), nil }
}

// deadlineLock keeps the lock's deadline in its value, in milliseconds since 1970. Redis itself
// never expires the key.
type deadlineLock struct {
	strategy.Deps
	now clock
}

func (l deadlineLock) take(ctx context.Context, key, _ string) (bool, error) {
	now, err := l.now(ctx)
	if err != nil {
		return false, err
	}
	deadline := now.Add(l.Lease).UnixMilli()
	ok, err := sendSetnx(ctx, l.Redis, key, deadline)
	if err != nil || ok {
		return ok, err
	}
	return l.takeOver(ctx, key, now, deadline)
}

// takeOver gets an expired lock. Of several processes that try, the one whose GETSET returns an
// expired deadline wins. The others have moved the deadline by a little.
func (l deadlineLock) takeOver(ctx context.Context, key string, now time.Time, deadline int64) (bool, error) {
	current, err := l.Redis.Get(ctx, key).Result()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	if err != nil || !passed(current, now) {
		return false, err
	}
	before, err := l.Redis.GetSet(ctx, key, deadline).Result()
	if errors.Is(err, redis.Nil) {
		return true, nil // it was freed in between: GETSET created it
	}
	return err == nil && passed(before, now), err
}

func passed(deadline string, now time.Time) bool {
	ms, err := strconv.ParseInt(deadline, 10, 64)
	return err == nil && ms < now.UnixMilli()
}
