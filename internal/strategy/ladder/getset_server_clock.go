package ladder

import (
	"context"
	"time"

	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var getsetServerClock = readsUnder(strategy.Strategy{
	Name: "getset-server-clock",
	Doc:  "getset by the clock of Redis: TIME before each try, so that no process's own clock counts",
}, declared.Strategy{
	Source:     "the usual repair of getset, once a server's clock was seen to be wrong",
	Guard:      "TIME; SETNX deadline; GET, GETSET; DEL",
	Telling:    "overrun",
	Properties: declared.Properties{Has: getset.Declared.Has | declared.ClockFree, NotApplicable: getset.Declared.NotApplicable},
	Lease:      getset.Declared.Lease,
}, func(d strategy.Deps) strategy.Guard {
	return polledBy(d, deadlineLock{d, serverClock(d)}.take, plainDel)
})

// serverClock is the clock of Redis, the only one that all processes share.
func serverClock(d strategy.Deps) clock {
	return func(ctx context.Context) (time.Time, error) { return d.Redis.Time(ctx).Result() }
}
