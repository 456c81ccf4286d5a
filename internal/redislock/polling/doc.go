// Package polling has the lockers for where [redislock.Locker] cannot be used: [NewQuorum] needs a
// majority of independent servers instead of one, and [NewWithoutLua] needs no scripts.
//
// They have what a redislock.Locker has, less its queue: they poll with jitter, are not fair, hand
// nothing on inside the process, and have no fencing tokens ([redislock.Lease.Token] is 0).
package polling
