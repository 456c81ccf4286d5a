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
func Keys(prefix, key string) KeySet { return keysOf(prefix + tagged(key)) }

// layout is in each name, so that Lockers of different versions do not read each other's values.
const layout = ":v2"

func keysOf(name string) KeySet {
	name += layout
	return KeySet{Lock: name + ":lock", Queue: name + ":queue", Waiters: name + ":waiters", Epoch: name + ":epoch"}
}

// all returns the keys in the order in which the scripts take them.
func (k KeySet) all() []string { return []string{k.Lock, k.Queue, k.Waiters, k.Epoch} }

// tagged returns the one spelling of a key, with the hash tag by which a Redis Cluster keeps what
// belongs to it together: the key's own tag if it has one, or else the whole key. Of a key that is
// empty or begins with a brace no tag can be made, because a tag is not empty and ends at the first
// brace: all those share one.
func tagged(key string) string {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if end := strings.IndexByte(key[open+1:], '}'); end > 0 {
			return key
		}
	}
	if key == "" || key[0] == '}' {
		return "{redislock}:" + key
	}
	return "{" + key + "}"
}
