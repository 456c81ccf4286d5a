// Package redislock is a distributed lock on Redis or Valkey: reentrant, renewed
// by a watchdog, fair between processes, with fencing tokens, and with a holder
// that is told in time when the lock is lost.
//
//	locker := redislock.New(client, redislock.Options{})
//	defer locker.Close()
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
// holders stop when their context ends:
//
//   - At most one holder at a time, by the holders' own belief. The local deadline
//     of a hold is monotonic, counted from before the request that set the lease was
//     sent, and so lies before the moment at which Redis can give the lock away. At the deadline the
//     held context ends with the cause [ErrLost], whatever the network does.
//   - Tokens that grow over every hold of a lock: see Fencing. This also holds when the keys have
//     expired or Redis has lost its data, as long as its clock is not set back.
//   - First come, first served among all goroutines of all processes, as far as the time until a request is carried
//     out lets Redis tell. There are two exceptions. While another process waits, a process passes the lock on among its own goroutines,
//     or to one that comes back for it at once, at most 32 times, for 50 milliseconds after it got it, and not if its
//     holds take 5 milliseconds or more in the mean; where more than 8 processes wait, for less in proportion. And who is the
//     next one of its process has the place of the one before it, should that one give up.
//   - A dead holder costs at most its lease, a lost message at most a third of the
//     waiter's lease, a dead waiter nothing as soon as its connection is closed. A process that ends without
//     [Locker.Close] may be a dead holder also when all of its leases were released: see [Lease.Release].
//   - A request whose answer was lost leaves no orphan: the Locker takes it back in
//     the background, for as long as a lease.
//
// # What it does not guarantee
//
// No lock with a timeout can hold back a process that does not run: one that is
// stopped after its last look at held, and before its write arrives, writes after its
// lease is over. And a Redis that loses acknowledged writes, in a restart without data or a failover to a
// replica that was behind, can give a lock to a second holder. In both cases the
// token tells the two apart, and only a database that checks it is safe.
//
// Code that does not look at held is not stopped by it.
//
// # Fencing
//
// [Lease.Token] is larger than that of every earlier holder. Let the database
// refuse whoever was overtaken. For work that reads first and writes later,
// raise the fence before the read; comparing on the write alone lets an old holder
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
// Go has no owner to recognise, so re-entry goes by the context: whoever acquires
// a key with the held context of that key, or a child of it, enters again at once, without a request.
// The token stays the same. The lock is free after as many releases as entries. Goroutines that share
// held share the lock: it keeps others out, not them from each other.
//
// # Choosing lease and wait
//
// The lease is how long others wait for a holder that died; work may take
// longer, because it is renewed. Make it long against every pause that your
// machines make: ten seconds is the default. Bound the wait with Options.Wait and not
// with a context's deadline, which would end the hold as well.
//
// # Cost
//
// Uncontended, a hold takes two requests, and for up to an hour after a wait for it was given up, at times three. Handed on inside a process, or back to a goroutine that works in a
// loop, it takes none; between processes one, which releases, grants and queues the process anew, or two if the process
// asks anew later, and one message. Holds
// and waits are renewed together, up to 100 in a request, three times a lease.
// Nothing grows with the number of waiters but Redis's own queue, which has one entry a process.
//
// # Servers
//
// Redis 6.2 and later, and Valkey. All keys of a lock share a hash tag, which is the whole key if it has none: "a" and "{a}" are
// the same lock. So Redis Cluster works; there, each lock is renewed by a request of its own, and a waiter that died
// is noticed by the end of its heartbeat only. Sentinel works, with the limit on failover above.
// An access list must allow the keys {KEY}:* (KEY:* for those with a tag of their own), the channels redislock:*,
// SUBSCRIBE and PING, EVALSHA and EVAL, and what the scripts call: GET, SET, DEL, EXISTS, PEXPIRE, PTTL, TIME, PUBLISH, and the
// commands on hashes and sorted sets.
//
// [NewQuorum] needs a majority of independent servers instead of one; [NewWithoutLua] needs no
// scripts. Both poll, and have no tokens.
//
// # Copying this package
//
// Copy the folder with its .lua files and its tests. It imports go-redis v9 and
// the standard library; the tests also need go.uber.org/goleak, github.com/anishathalye/porcupine
// and a redis-server on the PATH. Change the import path in example_test.go.
package redislock
