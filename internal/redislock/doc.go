// Package redislock is a distributed lock on Redis or Valkey. It is reentrant, renewed while it is
// held, and fair between processes. It has fencing tokens, and a holder learns in time that it has
// lost the lock.
//
//	locker := redislock.New(client, redislock.Options{})
//	defer locker.Close(ending) // waits for its holders: give it a context that ends
//
//	held, lease, err := locker.Acquire(ctx, "stock:42")
//	if err != nil {
//		return err
//	}
//	defer lease.Release()
//	// Work under held: it ends when the lock is lost.
//
// A change that fits into one SQL statement needs no lock at all:
//
//	UPDATE items SET stock = stock - 1 WHERE id = :id AND stock >= 1
//
// # Guarantees
//
// The guarantees hold while Redis keeps its data, clocks run at rates within 1 % of each other, the clock of Redis is
// not set forward, and holders stop when held.Err says so. The clocks of all servers that can have the lock differ by less
// than a lease has left when it is renewed: by two thirds of it, less the time for which a failover keeps renewals from
// succeeding. A difference of 1 % of the lease never matters. Those servers are a primary, its replicas, and in a
// Cluster the primaries that its slots are moved to: the atomic moves of Valkey 9 and Redis 8.4 carry expiries as times of
// a clock.
//
//   - There is at most one holder at a time, as far as the holders know, even across a planned
//     failover. A hold has a deadline on the local monotonic clock. It counts from before the request
//     that set the lease was sent. So it lies before the moment at which Redis can give the lock
//     away. From the deadline on, held.Err, context.Cause(held), [Lease.Valid] and re-entry report
//     the loss, whatever the network or the scheduler does.
//   - Tokens grow over every hold of a lock: see Fencing.
//   - Goroutines of all processes are served first come, first served, as far as the delay of their
//     requests lets Redis tell. There are two exceptions. A process passes the lock on among its
//     own goroutines while another process waits. It does so 32 times, until 50 milliseconds after it
//     got the lock, and up to 80 times if that takes less than 10 milliseconds, and only while its
//     holds take less than 5 milliseconds on average. Where more than 8 processes wait, the numbers
//     and the times shrink in proportion. When a
//     goroutine gives up, the next one of its process takes its place.
//   - A dead holder costs at most its lease, and the step if the clock of Redis is set back meanwhile. A lost
//     message costs at most a third of the lease, or ten seconds if that is shorter, and the hold that is under way
//     then. A dead waiter costs nothing once Redis has closed its connection, if Redis saw it
//     listen. Otherwise it costs at most its lease.
//   - A request whose answer was lost leaves no orphan. The Locker cancels the attempt in the
//     background, for up to a lease. It remembers up to 10,000 such attempts. A request that had no
//     connection was not sent, and leaves nothing to cancel.
//
// # What it does not guarantee
//
// No lock with a timeout can hold back a process that does not run. A process can be paused between
// its last look at held and its write. It then writes after its lease is over. A machine whose
// clock stops with it does not notice the pause. A Redis that loses acknowledged writes can give a
// lock to a second holder. It loses them in a restart without data, in a failover to a replica that
// was behind, or by evicting keys. Redis keeps expiries as times of its clock. After a failover to a
// replica whose clock is ahead, after an atomic move of a slot to such a primary, or after the clock was set forward,
// leases end that much sooner than their holders know. No client can prevent that; Hooks.ClockJumped reports it. Set maxmemory-policy to noeviction; Hooks.Evicts reports any other
// policy. In all these cases the tokens differ, and only a database that checks them is safe.
//
// A context derived from held with context.WithCancel or context.WithTimeout learns of the loss by
// Done, which can be late by the scheduler's delay. Code that does not look at held is not stopped.
//
// # Fencing
//
// [Lease.Token] is larger than that of every earlier holder. A smaller token can follow a larger one
// after Redis has lost its data. It can also follow after a minute without a grant, or a lease if that is
// longer, such as after a long hold: if the clock of Redis was set back meanwhile. The database then refuses it. Work that reads
// first and writes later must raise the fence before the read. If only the write compares tokens, an
// old holder can write between the new holder's read and its write:
//
//	UPDATE items SET fence = :token WHERE id = :id AND fence <= :token   -- 0 rows: overtaken
//	SELECT stock FROM items WHERE id = :id
//	UPDATE items SET stock = :new WHERE id = :id AND fence = :token      -- 0 rows: overtaken
//
// Raise the fence with <=, not with =, and have the driver count matched rows, not changed ones
// (clientFoundRows for MySQL). Tokens fit into a signed 64-bit column.
//
// # Reentrancy
//
// Go has no lock owner to recognise, so re-entry goes by the context. Acquire with the held context
// of the same key, or a child of it, enters again at once, without a request. The token stays the
// same. The lock is free after as many releases as entries. After the last release, Acquire starts
// a new hold. Goroutines that share held share the lock: it excludes others, not them from each
// other.
//
// A re-entry through context.WithoutCancel(held) ends when the lock is lost, and not with the
// caller's context. A re-entry under the context of such a re-entry ends with the release of that one, too: its lock is
// held until it is released itself. A lock can be acquired under the held context of another. Releasing the outer
// lock does not end the inner hold; losing the outer lock does. Under context.WithoutCancel(held) of the outer lock, the
// inner hold tells of that loss by Err, and not by Done. After that release, the inner hold
// ends with the context of the outer Acquire, or at the deadline of its own. It cannot notice that a
// context between the two is cancelled later. A hold under a held context of
// another Locker ends when that context does, unless a hold of the first Locker is around both.
//
// # Several locks
//
// Work on several things acquires their locks one inside the other, always in the same order, such as
// by id. Two processes that acquire two locks in opposite orders each hold one and wait for the other.
// Redis does not see this: both wait until the wait of one ends. The same happens to a process that asks for all
// locks at once and keeps those that it got. The innermost context ends when any of the locks is lost. Each lock
// has a token of its own, and each thing its own fence.
//
// # Errors
//
// The error of Acquire and TryAcquire is one of these, by errors.Is. A status of HTTP that fits stands beside it.
//
//	ErrNotAcquired  others have the lock               try again later          409
//	ErrUnavailable  Redis is silent, or refuses        try again after a pause  503, and an alert
//	ErrClosed       the Locker was closed              no                       503
//	ErrLost         a lock around this one was lost    stop                     503
//
// Beside the first two stands the cause of the context, if that ended: a caller that has gone needs no answer.
// With these errors of Acquire, fn of Do did not run. Release, and Do after fn, return:
//
//	ErrNotHeld      the lock was lost meanwhile        the work was done; the fence decides
//	ErrNotReleased  its release has no answer          the work was done; answer with its result
//	ErrLost         of Do: fn may have ended early     what fn has not done is to be done anew
//
// An Acquire with a bound, which is Options.Wait or a deadline of the context, waits for Redis as well: after a refusal
// that passes, such as READONLY, and where no connection can be made. The pauses between its requests grow to a 24th of
// the lease, and to a second at most. Without a bound, it waits after refusals that pass, and returns at once where its request has no
// connection. Hooks.NotServed is told. A request without an answer ends the wait after a third of the lease,
// or after the client's timeouts. One that a caller who can give up has sent itself ends after a second, and is repeated
// once: see The client.
//
// # Choosing lease and wait
//
// The lease is the time that others wait for a holder that died. Work may take longer, because the
// lease is renewed: at a third of it, and at least each ten seconds, so that a key that is gone is noticed by then. Choose a lease that is longer than the pauses of your machines: [DefaultLease] is
// for most. Bound the wait with Options.Wait and not with a context's deadline, which would end the
// hold as well. Code that may forget to release needs Options.MaxHold. Work that is finished after
// its context's end, such as a commit, must fit into Options.Grace. It goes on under a context of its own, which ends
// with the lock: enter again with context.WithoutCancel(held), as the example of a handler does.
//
// # Once is not a lock
//
// A lock keeps two from working at once, and not one after the other. A job that several machines start within a moment
// runs on each of them in turn. [Lease.Leave] keeps the lock for the rest of the period. Where the job must not run
// twice, whatever Redis loses, it writes a marker to its database under the lock, with its work and its token, and looks
// for the marker first. Where it must be done although its machine can die, the others wait with Acquire, in place of
// TryAcquire, and release: the next one looks for the marker, and does the job where there is none.
//
// # The client
//
// Give the Locker a client of its own. An application that uses up the connections of a shared
// pool, as with BLPOP, delays renewals until the lock is lost. Set ContextTimeoutEnabled, so that
// requests end with their deadline, and a ReadTimeout well below a third of the lease. Both decide
// how soon errors are noticed. Through such a client, the caller's goroutine sends its request itself, which takes
// half the time on a fast network. With a ReadTimeout below zero and without ContextTimeoutEnabled, each request that meets a
// silent Redis keeps a goroutine without a limit. With any client, Acquire returns when its context or its wait ends;
// through one with ContextTimeoutEnabled, a cancel without a deadline is noticed within a second. A *redis.ClusterClient
// of go-redis 9.23 asks any node for COMMAND before its first request, and after each failure of that. Its other requests
// wait meanwhile, for up to five seconds. DisableRoutingPolicies keeps a client without ReadOnly from that.
// The requests of Acquire and Release carry the values of the context that Acquire was called with. A
// hook of the client, as for traces, can read them. Renewals carry none, because those of several
// callers go out together.
//
// # Cost
//
// An uncontended hold takes two requests. A hand-off inside a process takes none. A process
// that passes the lock on for a third of the lease, or for ten seconds, asks Redis once whether others wait. A hand-off
// between processes takes one message and one request. That request releases the lock, grants it to
// the next process, and queues the caller's process again. If that one queues later, it takes two.
// Each hold and each waiting process sends a renewal or heartbeat three to four times a lease, or each seven to ten
// seconds if the lease is longer. What is
// due at the same time goes out in pipelines of up to 2,000 commands, the nearest deadline first. Up to
// four of these are under way to each server, so an outage or a pause of the process costs a bounded
// number of requests and goroutines. Only
// Redis's queue grows with the waiters, by one entry for each process. The keys of a lock expire after
// a lease or a minute, whichever is longer.
//
// A process keeps 1,000 holds of 10 seconds, also if others take its processor: with GOMAXPROCS=1, four goroutines that
// compute and allocate, and some forty programs that want its two cores. There it lost 2,800 of 10,000 holds, and without
// the four goroutines none. A renewal takes about 8 microseconds of the process.
//
// # Servers
//
// The lock works on Redis 7.0 and later, and on Valkey. Redis 6.2 wraps the refusals of scripts, which are then taken for
// unknown outcomes. It works with Redis Cluster, even while
// slots are moved, with Sentinel, and with endpoints that split reads or move to another primary.
// All keys of a lock share a hash tag, which is the whole key if it has none: "a" and "{a}" are the
// same lock. In a Cluster, a dead waiter is noticed only when its heartbeat expires, unless it
// listened at the lock's own node. While a slot is moved, a hold goes on, but acquiring and
// releasing may have to wait until the move is over.
//
// An access list must allow the keys of [Keys], the channels redislock:*, SUBSCRIBE and PING,
// EVALSHA and EVAL, and the commands of the scripts: GET, SET, DEL, EXISTS, PEXPIRE, PTTL, TIME,
// PUBLISH, PUBSUB, and the commands on hashes and sorted sets. Without PUBSUB, dead waiters cost
// more. The client of a Cluster also sends CLUSTER SLOTS and ASKING, and COMMAND unless DisableRoutingPolicies is set.
//
// The names of the keys contain the version of their layout. Lockers of different versions do not
// exclude each other. Stop all of one version before you start another.
//
// Package polling has a locker for a majority of independent servers.
//
// # Copying this package
//
// Run copy.sh with a folder and an import path, then go mod tidy. The package is still called redislock. It needs
// Go 1.26 and go-redis 9.19, and imports nothing else. The clients of older versions send a request again by
// themselves, which the lock must not allow: they do not compile. The tests also need a redis-server on the PATH.
package redislock
