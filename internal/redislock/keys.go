package redislock

import "strings"

// KeySet is what a [Locker] stores in Redis for one lock. All four share a hash tag.
type KeySet struct {
	Lock    string // who holds it; lives for the lease
	Queue   string // the processes that wait, by when their next waiter came
	Waiters string // the attempt and the heartbeat of each of them
	Epoch   string // the last epoch, of which tokens are made
}

// Keys returns the names of what a Locker with that Options.Prefix stores for key. They are for
// those who look: nothing but a Locker may write to them.
func Keys(prefix, key string) KeySet {
	name := prefix + tagged(key)
	return KeySet{Lock: name + ":lock", Queue: name + ":queue", Waiters: name + ":waiters", Epoch: name + ":epoch"}
}

// tagged returns a key with a hash tag, so that a Redis Cluster keeps what belongs to it
// together: the key's own tag if it has one, or else the whole key, or one for all keys of which
// no tag can be made, because a tag ends at the first brace and is not empty.
func tagged(key string) string {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if end := strings.IndexByte(key[open+1:], '}'); end > 0 {
			return key
		}
	}
	if key == "" || key[0] == '}' {
		return "{:}" + key
	}
	return "{" + key + "}"
}
