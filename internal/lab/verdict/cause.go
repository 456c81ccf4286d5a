package verdict

import (
	"iter"
	"maps"

	"stocklock/internal/lab/words"
)

// Cause is why a run came to its verdict: of a cell, a schedule, a service or a pupil's answer. Two runs with one cause show
// the same defect, or are protected by the same thing. What is special to a cell is in its explanation.
type Cause string

// The causes, each with the strategy or the scenario whose section says what mends it. The catalogue has their sentences,
// under cause.
var (
	// Of an oversell.
	NoLock        = cause("no-lock", "conditional")
	OneProcess    = cause("one-process", "conditional")
	WriteSkew     = cause("write-skew", "conditional")
	WrongKey      = cause("wrong-key", "conditional")
	LateCommit    = cause("late-commit", "lock-in-transaction")
	OldSnapshot   = cause("old-snapshot", "lock-in-transaction")
	CheckedEarly  = cause("checked-early", "conditional")
	CheckThenSet  = cause("check-then-set", "set-ex-nx")
	WithoutLock   = cause("sold-without-lock", "")
	Overrun       = cause("overrun", "fenced")
	LateWrite     = cause("late-write", "fenced")
	Unnoticed     = cause("cut-off", "fenced")
	ForeignDelete = cause("foreign-delete", "owner-checked")
	SplitRelease  = cause("split-release", "owner-checked")
	StaleDeadline = cause("stale-deadline", "")
	ClockSkew     = cause("clock-skew", "")
	LateGrant     = cause("late-grant", "fenced")
	Forgotten     = cause("forgotten", "fenced")
	Evicted       = cause("evicted", "fenced")
	StaleCache    = cause("stale-cache", "cached-read")
	ReadBehind    = cause("read-behind", "")
	ReadReplaced  = cause("read-at-replaced", "")
	ReadLost      = cause("read-what-was-lost", "")
	Revived       = cause("revived", "")
	Uncounted     = cause("uncounted", "")

	// Of answers and orders that contradict each other, and of units that nobody got.
	NoOrder       = cause("no-order", "")
	NotCopied     = cause("not-copied", "")
	WentAlone     = cause("went-on-alone", "")
	OldPrimary    = cause("old-primary", "")
	AnsweredFirst = cause("answered-first", "")
	SoldAgain     = cause("sold-again", "commit-unanswered")
	UnknownCommit = cause("unknown-commit", "commit-unanswered")
	Denial        = cause("denial", "")
	Unreturned    = cause("unreturned", "")
	CrossedLocks  = cause("crossed-locks", "")
	Abandoned     = cause("abandoned", "")
	TornOrder     = cause("torn-order", "")
	Overwritten   = cause("overwritten", "")
	Crash         = cause("crash", "")

	// Of a shop that is stuck.
	NoExpiry     = cause("no-expiry", "set-ex-nx")
	DiedTaking   = cause("died-taking", "set-ex-nx")
	Prolonged    = cause("prolonged", "")
	LostRelease  = cause("lost-release", "")
	LostAnswer   = cause("lost-answer", "")
	SelfDeadlock = cause("self-deadlock", "reentrant")
	FencedOut    = cause("fenced-out", "")

	// Of a run that held.
	KeptOut     = cause("kept-out", "")
	Outlived    = cause("outlived", "")
	Refused     = cause("refused-by-store", "")
	Subtracted  = cause("subtracted", "")
	LossNoticed = cause("told-in-time", "")
	Expired     = cause("freed-by-expiry", "")
	NotOwner    = cause("release-refused", "")
	Reentered   = cause("entered-again", "")
	Majority    = cause("majority-survived", "")
	Durable     = cause("durable", "")
	OneOrder    = cause("one-order", "")
	NoLease     = cause("no-lease-to-lose", "")
	NobodyMet   = cause("nobody-met", "")

	// Of an answer to an exercise.
	TooSilent       = cause("silence", "")
	TooManyRequests = cause("too-many-requests", "")
	NeverSold       = cause("never-sold", "")
	TurnedAway      = cause("turned-away", "")
	Deadlock        = cause("deadlock", "")
	Unresolved      = cause("unresolved", "")
	TooManyCommits  = cause("too-many-commits", "")
	NotSeen         = cause("not-seen", "")
	Unlocked        = cause("unlocked", "")
	Locked          = cause("locked", "")
	SameOwner       = cause("same-owner", "")
	WithoutContext  = cause("without-context", "")

	// Of a run of which the cause is not known.
	Unexplained = cause("unexplained", "")
	Untraced    = cause("no-trace", "")
	NotInTime   = cause("not-in-time", "")
)

var mends = map[Cause]string{}

func cause(word Cause, mendedBy string) Cause {
	mends[word] = mendedBy
	return word
}

// Causes are all of them, in no order.
func Causes() iter.Seq[Cause] { return maps.Keys(mends) }

// Doc says in one line what happened. It is empty for what is no cause.
func (c Cause) Doc() string { return words.English.Messages()["cause."+string(c)] }

// Mends names the strategy or the scenario whose section says what mends a cause. It is empty where none does.
func (c Cause) Mends() string { return mends[c] }

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
