// Package explain says why a cell ended as it did: which two holders were in the section at once,
// which lease had ended and why, and which request waits for which. For a cell that held, it says
// what would have broken a weaker lock, and what prevented that.
//
// It uses only recorded evidence: the shops' traces, the notifications of Redis, the lab's
// interventions, and the orders in MySQL. It asks no server. An [Explanation] has a cause and
// facts. A [words.Language] makes sentences of them when they are shown.
//
// # Decisions
//
// The evidence for an explanation comes from the servers. Redis's keyspace notifications show who
// held the lock; the shops' beliefs do not count. Notifications cost nothing unless the key
// changes. The shops' traces show where each sale was. The orders show which sale overwrote which.
// All clocks are those of one machine. A notification is recorded a little after the change, and
// conclusions from the order of two events allow for that. internal/lab/explain uses this evidence
// alone, so its tests need no server.
//
// What a play did is in the record, and nothing searches for it. The record has the one request that the play held,
// killed or cut off ([Request].Fault and .Paused), and its page view. It has when the play intervened, when that was
// over, and which locks were left where nothing moved. The play does not know the following, which are searched for:
//
//   - which sale came in, and by which release or end of a lease: breach.go. Nobody places the sales that meet in
//     contention. Of a sale that a play saw enter, it knows that it had read, and not which change of the key let it in. A
//     chain of releases goes on after the play has ended.
//   - which hold an announcement belongs to: history.go, locks.go. Redis names a key and no owner.
//   - which sale waited, or entered next: held.go. A play that is kept out by MySQL sees that somebody waits, and not who.
package explain

import (
	"time"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
	"stocklock/internal/strategy/declared"
)

// Evidence is everything that is known about one run of a cell.
type Evidence struct {
	Declared  declared.Strategy
	Exclusive bool          // whether its guard reaches across processes
	Recovers  bool          // whether its lock frees itself, also where Redis knows of no expiry
	Lease     time.Duration // of a lock, where its request says nothing else
	Verdict   verdict.Kind  // how the cell ended
	// Unwatched names the server that has the lock where nobody records its changes: "etcd".
	Unwatched    string
	InitialStock int64
	Began        time.Time // of the attack
	Ended        time.Time // of the attack

	Traced        bool // the shops wrote traces
	Events        []labmode.Event
	Changes       []Change // of the lock's keys
	Interventions []Intervention
	View          Request // the page view that the lab has made; zero for none
	Requests      []Request
	Orders        []stock.Order // as they were committed
	SoldLater     int64         // units of the initial stock that were sold after the attack
	Locks         []Lock        // what Redis had at the end of the attack
	SentAway      string        // the request that was sent away while the most units were left; empty for none, or any
	Fenced        bool          // stuck, because the fence refuses every sale
	Outlasted     bool          // stuck, because no sale that is longer than its lease was made
}

// countedInRedis says whether the units of an item are counted in Redis.
func (e Evidence) countedInRedis() bool { return len(e.Declared.State.Keys) > 0 }

// heldInMySQL says whether a sale holds its units in rows of MySQL that expire.
func (e Evidence) heldInMySQL() bool { return e.Declared.Lease.Kept == declared.LeaseInMySQL }

// Request is one request as its client saw it.
type Request struct {
	ID       string
	Shop     string
	Sent     time.Time
	Answered time.Time // zero where no answer came
	LetGo    time.Time // when the play ended its hold; zero where it ended none
	Outcome  string
	Key      string        // the idempotency key of its purchase; empty for none
	Nested   bool          // it takes its lock a second time
	Fault    bool          // it carries a fault; other requests may carry more work
	Paused   bool          // its whole shop was stopped while it was held
	Lease    time.Duration // of its lock; 0 for that of the evidence
}

// Lock is a key of the lock that is there, with what Redis says of its expiry.
type Lock struct {
	Key string
	TTL time.Duration // negative for none
}

// Intervention is what the lab did to a shop or a server.
type Intervention struct {
	From  time.Time
	Until time.Time // zero while it lasts
	Shop  string    // which shop it was done to, empty for a server
	What  string    // [Dead], or its name in the scenario's plan
}

// Dead is the intervention on a shop that was killed and is being started again.
const Dead = "dead"
