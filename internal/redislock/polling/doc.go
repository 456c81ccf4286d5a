// Package polling has lockers for cases that [redislock.Locker] does not cover. [NewQuorum] uses a
// majority of independent servers instead of one. [NewWithoutLua] uses no scripts.
//
// These lockers work like a redislock.Locker without a queue. They poll with jitter, are not fair,
// do not pass a lock on inside the process, and have no fencing tokens ([redislock.Lease.Token] is
// 0).
package polling
