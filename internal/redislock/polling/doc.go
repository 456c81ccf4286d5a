// Package polling has a locker on a majority of independent servers, for which [redislock.Locker] is
// not made: see [NewQuorum].
//
// It works like a redislock.Locker without a queue. It polls with jitter, is not fair, does not pass
// a lock on inside the process, and has no fencing tokens ([redislock.Lease.Token] is 0).
package polling
