// Package redislock is a distributed lock on Redis or Valkey: reentrant, renewed while it is
// held, fair between processes, with fencing tokens, and with a holder that is told in time when
// the lock is lost.
//
//	locker := redislock.New(client, redislock.Options{})
//	defer locker.Close(context.Background())
//
//	held, lease, err := locker.Acquire(ctx, "stock:42")
//	if err != nil {
//		return err
//	}
//	defer lease.Release()
//	// Work under held: it ends when the lock is lost.
//
// Before you use it: a change that fits into one SQL statement, such as UPDATE
// items SET stock = stock - 1 WHERE stock >= 1, needs no lock at all.
//
// # Guarantees
//
// While Redis keeps its data, clocks run at rates within 1 % of each other, and
// holders stop when held.Err says so:
//
//   - At most one holder at a time, by the holders' own belief, also across a planned failover. The
//     deadline of a hold is local and monotonic. It counts from before the request was sent that set the
//     lease, and so lies before the moment at which Redis can give the lock away. From the deadline on
//     held.Err, context.Cause(held), [Lease.Valid] and re-entry say that the lock is lost, whatever the
//     network or the scheduler does.
//   - Tokens that grow over every hold of a lock: see Fencing.
//   - First come, first served among all goroutines of all processes, as far as the time until a request
//     is carried out lets Redis tell. There are two exceptions. While another process waits, a process
//     passes the lock on among its own goroutines at most 32 times, for 50 milliseconds after it got it,
//     and not if its holds take 5 milliseconds or more on average; where more than 8 processes wait, for
//     less in proportion. A goroutine has the place of the one before it in its process, should that
//     one give up.
//   - A dead holder costs at most its lease. A lost message costs at most a third of the waiter's lease.
//     A dead waiter costs nothing once Redis has closed its connection, if Redis saw it listen;
//     otherwise it costs its lease at most.
//   - A request whose answer was lost leaves no orphan: the Locker ends the attempt in
//     the background, for as long as a lease. It remembers up to 10,000 such attempts.
//
// # What it does not guarantee
//
// No lock with a timeout can hold back a process that does not run. One that is stopped after its
// last look at held, and before its write arrives, writes after its lease is over. A machine whose
// clock stops with it does not notice the pause. A Redis that loses acknowledged writes can give a
// lock to a second holder: in a restart without data, in a failover to a replica that was behind,
// or by evicting keys (set maxmemory-policy to noeviction; Hooks.Evicts tells). In all these cases
// the token tells the two apart, and only a database that checks it is safe.
//
// A context derived from held with context.WithCancel or context.WithTimeout learns of the loss by
// Done, as late as the scheduler. Code that does not look at held is not stopped by it.
//
// # Fencing
//
// [Lease.Token] is larger than that of every earlier holder. After Redis has lost its data, a
// smaller one can follow a larger one, and the database refuses it. For work that reads first and
// writes later, raise the fence before the read; comparing on the write alone lets an old holder
// write between the new one's read and its write:
//
//	UPDATE items SET fence = :token WHERE id = :id AND fence <= :token   -- 0 rows: overtaken
//	SELECT stock FROM items WHERE id = :id
//	UPDATE items SET stock = :new WHERE id = :id AND fence = :token      -- 0 rows: overtaken
//
// Compare with <=, not with =, and have the driver count matched rows, not changed
// ones (clientFoundRows for MySQL). Tokens fit into a signed 64-bit column.
//
// # Reentrancy
//
// Go has no owner to recognise, so re-entry goes by the context: Acquire with the held context of
// the same key, or a child of it, enters again at once, without a request. The token stays the
// same. The lock is free after as many releases as entries. Goroutines that share held share the
// lock: it keeps others out, not them from each other. A re-entry through
// context.WithoutCancel(held) ends when the lock is lost, and not with the caller's context. After
// the last release, Acquire starts a new hold. Releasing a lock does not end a hold of another one
// that was acquired under it; losing it does.
//
// # Choosing lease and wait
//
// The lease is how long others wait for a holder that died; work may take longer, because it is
// renewed. Make it long against every pause that your machines make: ten seconds is the default.
// Bound the wait with Options.Wait and not with a context's deadline, which would end the hold as
// well. Code that may forget to release needs Options.MaxHold. Work that is finished after its
// context's end, such as a commit, must fit into Options.Grace.
//
// # The client
//
// Give the Locker a client of its own: an application that uses up the connections of a shared
// pool, as with BLPOP, keeps renewals waiting until the lock is lost. Set ContextTimeoutEnabled, so
// that requests end with their deadline, and a ReadTimeout well below a third of the lease. Both
// matter for how soon errors are noticed. Acquire returns when its caller's patience ends with any
// client. A hook of the client, as for traces, finds on the renewals and the release of a hold the
// values of the context that Acquire was called with.
//
// # Cost
//
// Uncontended, a hold takes two requests. Handed on inside a process, it takes none. Between
// processes it takes one, which releases, grants and queues the process anew, or two if the process
// asks anew later, and one message. Each hold and each waiting process sends a renewal three to
// four times a lease. Nothing grows with the number of waiters but Redis's own queue, which has one
// entry a process. What a lock leaves in Redis is gone after a lease or a minute, whichever is
// longer.
//
// # Servers
//
// Redis 6.2 and later, and Valkey; Redis Cluster, also while slots are moved; Sentinel; endpoints
// that split reads or move to another primary. All keys of a lock share a hash tag, which is the
// whole key if it has none: "a" and "{a}" are the same lock. In a Cluster, a waiter that died is
// noticed by the end of its heartbeat only, unless it listened at the lock's own node. While a slot
// is moved, a hold goes on, and acquiring and releasing may have to wait until the move is over. An
// access list must allow the keys of [Keys], the channels redislock:*, SUBSCRIBE and PING, EVALSHA
// and EVAL, and what the scripts call: GET, SET, DEL, EXISTS, PEXPIRE, PTTL, TIME, PUBLISH, PUBSUB,
// and the commands on hashes and sorted sets. Without PUBSUB, dead waiters cost more.
//
// The names of the keys contain the version of their layout. Lockers of different versions do not
// exclude each other: stop all of one version before you start another.
//
// Package polling has lockers for a majority of independent servers, and for servers without
// scripts.
//
// # Copying this package
//
// Run copy.sh with a folder and an import path, and go mod tidy after it. It imports go-redis v9
// and the standard library; the tests also need a redis-server on the PATH.
package redislock
