//go:build !searches

// The searches compile without package polling, and need no other kind.
package redislock_test

import (
	"stocklock/internal/redislock"
	"stocklock/internal/redislock/polling"
)

func init() {
	redislock.Kinds = append(redislock.Kinds, redislock.Kind{Name: "polling", Servers: 3, Make: func(clients []redislock.Client, o redislock.Options) redislock.Locking {
		return polling.NewQuorum(clients, polling.Options{Options: o})
	}})
}
