package ladder

import (
	"stocklock/internal/redislock/polling"
	"stocklock/internal/strategy"
)

var redlock = strategy.Strategy{
	Name:      "redlock",
	Doc:       "a majority of five independent Redis servers: survives the loss of two, has no token to fence with",
	Source:    "redis.io, Distributed Locks with Redis, the Redlock algorithm",
	Guard:     "on a majority of five: SET NX PX; script: GET equals, DEL",
	Decrement: "read-then-write",
	Telling:   "pause",
	Servers:   strategy.RewindProof,
	Properties: strategy.Properties{
		Has: strategy.DurableAnswers | strategy.Once | strategy.Exclusive | strategy.Recovers | strategy.AtomicLease |
			strategy.Renews | strategy.OwnerChecked | strategy.AtomicRelease |
			strategy.Reentrant | strategy.ClockFree | strategy.LossAware |
			strategy.SurvivesDataLoss,
	},
	NeedsQuorum: true,
	State:       strategy.State{Locks: []string{"{%s}"}},
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		// A try asks five servers, so tries are less frequent than with one server.
		return strategy.LockGuard{Locking: polling.NewQuorum(d.Quorum, polling.Options{Options: strategy.LockOptions(d), Retry: d.Retry})}, strategy.ReadThenWrite
	},
}
