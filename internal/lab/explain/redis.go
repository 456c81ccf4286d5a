package explain

import (
	"fmt"
	"time"
)

// The servers that have the lock where there is no quorum.
const (
	Primary = "redis"
	Replica = "replica"
)

// QuorumServer names the i-th of n servers of a quorum, from 0.
func QuorumServer(i, n int) string { return fmt.Sprintf("redis %d of %d", i+1, n) }

// ShopName names the i-th shop of a testbed, from 0.
func ShopName(i int) string { return fmt.Sprintf("shop %d", i+1) }

// Change is one change of a lock's key, as Redis itself announced it.
type Change struct {
	Time   time.Time // when the announcement was read: a little after the change
	Server string    // which Redis, such as [Primary] or "redis 3 of 5"
	Key    string
	What   RedisEvent
}

// RedisEvent is Redis's name of a keyspace event, such as "set" or "incrby", or [Gone].
type RedisEvent string

// The events that do something other than write a value.
const (
	eventSet     RedisEvent = "set" // SET, and GETSET: replaces whatever the key had
	eventExpire  RedisEvent = "expire"
	eventPersist RedisEvent = "persist"
	eventDel     RedisEvent = "del"
	eventExpired RedisEvent = "expired"
	eventEvicted RedisEvent = "evicted"
	eventRenamed RedisEvent = "rename_from"
	eventMoved   RedisEvent = "move_from"
	Gone         RedisEvent = "gone" // the server closed its connections: it died, and what it had is lost
)

// Frees says whether the key is no longer there after the event.
func (e RedisEvent) Frees() bool {
	switch e {
	case eventDel, eventExpired, eventEvicted, eventRenamed, eventMoved, Gone:
		return true
	}
	return false
}

// Writes says whether the key is there after the event, with a value that the event gave it. Any
// event that is not known to do something else does.
func (e RedisEvent) Writes() bool { return !e.Frees() && e != eventExpire && e != eventPersist }
