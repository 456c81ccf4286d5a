package ladder

import (
	"context"
	"time"

	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var getsetServerClock = Declare(strategy.Strategy{
	Name: "getset-server-clock",
	Doc:  "getset by the clock of Redis: TIME before each try, so that no process's own clock counts",
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return polled{Options: d.Options, try: deadlineLock{d, serverClock(d)}.try}, strategy.ReadThenWrite
	},
}, declared.Strategy{
	Source:     "the usual repair of getset, once a server's clock was seen to be wrong",
	Guard:      "TIME; SETNX deadline; GET, GETSET; DEL",
	Decrement:  "read-then-write",
	Telling:    "overrun",
	Servers:    declared.RewindProof,
	Properties: declared.Properties{Has: getset.Declared.Has | declared.ClockFree, NotApplicable: getset.Declared.NotApplicable},
	Lease:      getset.Declared.Lease,
})

// serverClock is the clock of Redis, the only one that all processes share.
func serverClock(d strategy.Deps) clock {
	return func(ctx context.Context) (time.Time, error) { return d.Redis.Time(ctx).Result() }
}
