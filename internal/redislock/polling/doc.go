// Package polling has a locker on a majority of independent servers, for which [redislock.Locker] is
// not made: see [NewQuorum].
//
// It is a redislock.Locker whose requests all servers answer together, so it has the same contract:
// contexts, deadlines, renewal, MaxHold, Grace and hooks. But it has no queue. It polls with jitter, is not fair
// between processes, does not pass a lock on inside the process, and has no fencing tokens
// ([redislock.Lease.Token] is 0).
//
// The majority stands in the place of the lock's client. The lock makes five calls: Process for one request, Pipeline,
// BatchProcess and Exec for several, and each request says by Request what is asked. An interface with a method for each
// script would have to carry lists of renewals and cancels, too, and would take more lines on both sides.
//
// The key of a lock is Options.Prefix and the name in braces, as "{stock:42}". A redislock.Locker has other keys:
// the two do not exclude each other.
package polling
