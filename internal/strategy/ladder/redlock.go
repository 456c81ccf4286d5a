package ladder

import (
	"stocklock/internal/redislock/polling"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var redlock = readsUnder(strategy.Strategy{
	Name:        "redlock",
	Doc:         "a majority of five independent Redis servers: survives the loss of two, has no token to fence with",
	NeedsQuorum: true,
}, declared.Strategy{
	Source:     "redis.io, Distributed Locks with Redis, the Redlock algorithm",
	Guard:      "on a majority of five: SET NX PX; script: GET equals, DEL",
	Telling:    "pause",
	Properties: declared.Properties{Has: reentrant.Declared.Has | declared.SurvivesDataLoss},
	State:      declared.State{Locks: []string{"{%s}"}},
}, func(d strategy.Deps) strategy.Guard {
	// A try asks five servers, so tries are less frequent than with one server.
	return strategy.LockGuard{Locking: polling.NewQuorum(d.Quorum, polling.Options{Options: strategy.LockOptions(d), Retry: d.Retry})}
})
