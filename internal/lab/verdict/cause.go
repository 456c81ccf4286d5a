package verdict

import (
	"iter"
	"maps"
)

// Cause is why a run came to its verdict: of a cell, a schedule, a service or a pupil's answer. Two runs with one cause show
// the same defect, or are protected by the same thing. What is special to a cell is in its explanation.
type Cause string

// The causes, each with what it means and the strategy or the scenario whose section says what mends it. The other
// languages have its sentence under its word.
var (
	// Of an oversell.
	NoLock        = cause("no-lock", "nothing kept the second customer out", "conditional")
	OneProcess    = cause("one-process", "the lock ends at the process, and the second customer was in another one", "conditional")
	WriteSkew     = cause("write-skew", "both summed up the same rows, and each appended one that the other had not read", "conditional")
	WrongKey      = cause("wrong-key", "the two customers had locks of different keys", "conditional")
	LateCommit    = cause("late-commit", "a lock was released before what its holder had written was committed, and the next holder read what was there before", "lock-in-transaction")
	OldSnapshot   = cause("old-snapshot", "a holder read in its lock what was there before it had the lock: its transaction had fixed a snapshot earlier", "lock-in-transaction")
	CheckedEarly  = cause("checked-early", "a sale checked the stock before it had the lock, and not again", "conditional")
	CheckThenSet  = cause("check-then-set", "a customer looked whether the lock was free, and took it with another command: a second one took it in between", "set-ex-nx")
	Overrun       = cause("overrun", "the lease ended while its holder worked, and nobody stopped it", "fenced")
	LateWrite     = cause("late-write", "the lease ended while its holder's process was stopped, and it still wrote", "fenced")
	Unnoticed     = cause("cut-off", "the holder could not renew its lease, and worked on", "fenced")
	ForeignDelete = cause("foreign-delete", "a release freed somebody else's lock", "owner-checked")
	SplitRelease  = cause("split-release", "a release freed somebody else's lock: it changed hands between the check and the delete", "owner-checked")
	StaleDeadline = cause("stale-deadline", "a deadline had passed when it was written, so that the lock was free at once", "")
	ClockSkew     = cause("clock-skew", "a process went by its own clock, and took over a lock whose lease had not ended", "")
	LateGrant     = cause("late-grant", "the lease was over when its holder learned that it had the lock", "fenced")
	Forgotten     = cause("forgotten", "Redis lost the lock, and the next customer found it free", "fenced")
	Evicted       = cause("evicted", "Redis ran out of memory and evicted the lock, and the next customer found it free", "fenced")
	StaleCache    = cause("stale-cache", "a sale went by a copy of the stock that was older than another sale", "cached-read")
	ReadBehind    = cause("read-behind", "a sale read on the replica what was there before another sale", "")
	ReadReplaced  = cause("read-at-replaced", "a sale read on a primary that was replaced, and wrote on the new one", "")
	ReadLost      = cause("read-what-was-lost", "a sale read before a failover what was lost with the primary, and wrote after it", "")
	Revived       = cause("revived", "a reservation that a sweep had ended was confirmed, and its units had been put back", "")
	Uncounted     = cause("uncounted", "units were reserved that another customer had", "")

	// Of answers and orders that contradict each other, and of units that nobody got.
	NoOrder       = cause("no-order", "a customer was answered as sold, and has no order", "")
	NotCopied     = cause("not-copied", "a customer was answered as sold, and the order was lost with the primary: the replica that took over never received it", "")
	WentAlone     = cause("went-on-alone", "a customer was answered as sold, and the order was lost with a primary that had stopped waiting for its replica", "")
	OldPrimary    = cause("old-primary", "a customer was answered as sold by a primary that was replaced", "")
	AnsweredFirst = cause("answered-first", "a customer was answered as sold before a commit that failed", "")
	SoldAgain     = cause("sold-again", "a customer has two orders for one purchase", "commit-unanswered")
	UnknownCommit = cause("unknown-commit", "the answer to a commit was lost, and its customer's shop sold again as if nothing had been committed", "commit-unanswered")
	Denial        = cause("denial", "a customer has an order, and was answered as busy or sold out", "")
	Unreturned    = cause("unreturned", "units were taken that nobody got, or a customer was answered as sold out although there were some", "")
	CrossedLocks  = cause("crossed-locks", "each customer had a lock that the other one waited for, until one of them gave up", "")
	Abandoned     = cause("abandoned", "a customer died with units that are in no order, and nobody puts them back", "")
	TornOrder     = cause("torn-order", "an order stands without all that was ordered", "")
	Overwritten   = cause("overwritten", "what a payment had confirmed was undone, and the payment was kept", "")
	Crash         = cause("crash", "a sale ended with an error or without an answer, and nothing had happened to it", "")

	// Of a shop that is stuck.
	NoExpiry     = cause("no-expiry", "the lock of a dead holder never ends", "set-ex-nx")
	DiedTaking   = cause("died-taking", "the holder died before it could give its lock an expiry", "set-ex-nx")
	Prolonged    = cause("prolonged", "the lock of a dead holder lasts longer than its lease: it was given more, or is still renewed", "")
	LostRelease  = cause("lost-release", "a release never reached Redis, and the lock never ends", "")
	LostAnswer   = cause("lost-answer", "the answer to an acquisition was lost, and the lock never ends", "")
	SelfDeadlock = cause("self-deadlock", "each sale waits for the lock that it has itself", "reentrant")
	FencedOut    = cause("fenced-out", "the database refuses every token", "")

	// Of a run that held.
	KeptOut     = cause("kept-out", "the others waited until the holder was done", "")
	Outlived    = cause("outlived", "the lock lived as long as its holder worked", "")
	Refused     = cause("refused-by-store", "the database refused a late write", "")
	LossNoticed = cause("told-in-time", "the holder learned of the loss of its lock, and wrote nothing", "")
	Expired     = cause("freed-by-expiry", "the lock of a dead holder freed itself", "")
	NotOwner    = cause("release-refused", "a late release freed nothing", "")
	Reentered   = cause("entered-again", "the holder took its own lock a second time", "")
	Majority    = cause("majority-survived", "most servers still knew the lock", "")
	Durable     = cause("durable", "the order was written before its process died", "")
	OneOrder    = cause("one-order", "an answer was lost, and the purchase has one order", "")
	NoLease     = cause("no-lease-to-lose", "there is no lock that could be lost", "")
	NobodyMet   = cause("nobody-met", "nothing protects it, and no two sales came together", "")

	// Of an answer to an exercise.
	NotBuilt        = cause("does-not-build", "the answer does not compile", "")
	TooSilent       = cause("silence", "nothing was heard of the shops for too long", "")
	TooManyRequests = cause("too-many-requests", "a sale sends requests without an end", "")
	NeverSold       = cause("never-sold", "a customer who was alone could not buy", "")
	TurnedAway      = cause("turned-away", "a customer was answered neither as sold nor as sold out, and nothing had gone wrong", "")
	Deadlock        = cause("deadlock", "two sales waited for each other, and MySQL ended one of them", "")
	Unresolved      = cause("unresolved", "a customer was answered that the outcome is unknown, and nobody looked for the order", "")
	TooManyCommits  = cause("too-many-commits", "many customers at once took too many commits", "")
	NotSeen         = cause("not-seen", "a sale of several items was never seen between two of them", "")
	Unlocked        = cause("unlocked", "a customer bought without a lock, and nobody was the holder whom the database has to refuse", "")
	SameOwner       = cause("same-owner", "two processes that had just started gave their locks the same owner", "")

	// Of a run of which the cause is not known.
	Unexplained = cause("unexplained", "none of the known causes: read what was done", "")
	Untraced    = cause("no-trace", "there is no evidence but the orders", "")
	NotInTime   = cause("not-in-time", "the search for the cause was ended before it was done", "")
)

type meaning struct{ doc, mends string }

var causes = map[Cause]meaning{}

func cause(word Cause, doc, mends string) Cause {
	causes[word] = meaning{doc, mends}
	return word
}

// Causes are all of them, in no order.
func Causes() iter.Seq[Cause] { return maps.Keys(causes) }

// Doc says in one line what happened. It is empty for what is no cause.
func (c Cause) Doc() string { return causes[c].doc }

// Mends names the strategy or the scenario whose section says what mends a cause. It is empty where none does.
func (c Cause) Mends() string { return causes[c].mends }

// renamed has the words of results that were saved when cells and schedules had words of their own for one cause.
var renamed = map[Cause]Cause{
	"lease-outlasted":  Overrun,
	"holder-paused":    LateWrite,
	"holder-cut-off":   Unnoticed,
	"late-release":     ForeignDelete,
	"failover":         Forgotten,
	"never-written":    NoOrder,
	"order-not-told":   Denial,
	"ordered-twice":    SoldAgain,
	"counted-and-lost": Unreturned,
	"dead-holder":      NoExpiry,
	"other":            Unexplained,
}

// UnmarshalText reads a word, an old one too.
func (c *Cause) UnmarshalText(word []byte) error {
	*c = Cause(word)
	if now, old := renamed[*c]; old {
		*c = now
	}
	return nil
}
