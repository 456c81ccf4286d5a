package schedule

// Cause is why a run went wrong, in one of a few words: two schedules with one cause show the same
// defect.
type Cause string

const (
	NoLock        Cause = "no-lock"        // nothing kept the second customer out
	Overrun       Cause = "overrun"        // the lease ended while its holder worked, and nobody stopped it
	LateWrite     Cause = "late-write"     // the lease ended while its holder's process was stopped
	Unnoticed     Cause = "cut-off"        // the holder could not renew, and worked on
	ForeignDelete Cause = "foreign-delete" // a release freed somebody else's lock
	SplitRelease  Cause = "split-release"  // the same, although the owner had been checked
	StaleDeadline Cause = "stale-deadline" // a deadline had passed when it was written
	Forgotten     Cause = "forgotten"      // Redis lost the lock
	NoExpiry      Cause = "no-expiry"      // a dead holder's lock that never ends
	Prolonged     Cause = "prolonged"      // a dead holder's lock that lasts longer than its lease
	LostRelease   Cause = "lost-release"   // a release never reached Redis, and the lock never ends
	LostAnswer    Cause = "lost-answer"    // the answer to an acquisition was lost, and the lock never ends
	NoOrder       Cause = "no-order"       // the answer came before the order was written
	Unreturned    Cause = "unreturned"     // units were taken that nobody got
	UnknownCommit Cause = "unknown-commit" // a commit whose answer was lost was taken for none
	Other         Cause = "other"          // none of these: read the record
)

// causes lists all with their meaning.
var causes = []struct {
	Cause
	doc string
}{
	{NoLock, "nothing kept the second customer out"},
	{Overrun, "the lease ended while its holder worked, and nobody stopped it"},
	{LateWrite, "the lease ended while its holder's process was stopped, and it wrote all the same"},
	{Unnoticed, "the holder could not renew its lease, and worked on"},
	{ForeignDelete, "a release freed somebody else's lock"},
	{SplitRelease, "a release freed somebody else's lock: it changed hands between the check and the delete"},
	{StaleDeadline, "a deadline had passed when it was written, so that the lock was free at once"},
	{Forgotten, "Redis lost the lock, and the next customer found it free"},
	{NoExpiry, "the lock of a dead holder never ends"},
	{Prolonged, "the lock of a dead holder lasts longer than its lease: it was given more, or is still renewed"},
	{LostRelease, "a release never reached Redis, and the lock never ends"},
	{LostAnswer, "the answer to an acquisition was lost, and the lock never ends"},
	{NoOrder, "a customer was told sold, and has no order"},
	{Unreturned, "units were taken that nobody got"},
	{UnknownCommit, "the answer to a commit was lost, and its customer's shop wrote again as if nothing had been committed"},
	{Other, "none of the known causes: read what was done"},
}

// Doc says in one line what went wrong.
func (c Cause) Doc() string {
	for _, known := range causes {
		if known.Cause == c {
			return known.doc
		}
	}
	return ""
}

// causeOf finds the cause in what the servers showed.
func (r *run) causeOf(o Outcome) Cause {
	switch o.Verdict {
	case Lied:
		return NoOrder
	case Left:
		return Unreturned
	case Stuck:
		return r.causeOfStuck()
	case Oversold:
		return r.causeOfOversell(o)
	}
	return ""
}

func (r *run) causeOfStuck() Cause {
	switch {
	case r.lock.present() && r.lock.ttl != -1 && r.happened(Kill):
		return Prolonged
	case !r.lock.present() || r.lock.ttl != -1:
		return Other
	case r.happened(Kill):
		return NoExpiry
	case r.happened(Lose):
		return LostAnswer
	}
	return LostRelease
}

func (r *run) happened(e Event) bool {
	for _, c := range r.chosen {
		if c.Event == e {
			return true
		}
	}
	return false
}

// causeOfOversell looks at the first two customers of whom one overwrote the other, and at how the
// second of them got in while the first had not finished.
func (r *run) causeOfOversell(o Outcome) Cause {
	if r.wroteAgain() {
		return UnknownCommit
	}
	first, second := overwritten(o.Orders)
	if first == 0 {
		return Other
	}
	one, other := r.holdOf(first), r.holdOf(second)
	if one < 0 && other < 0 {
		return r.causeWithoutLock()
	}
	if one < 0 || other < 0 {
		return Other
	}
	if other < one {
		one, other = other, one
	}
	// The holds from the earlier one to the later one follow each other without a gap in the list:
	// the first that ended other than by its own holder let the rest in.
	for _, t := range r.tenures[one:other] {
		if t.endedBy == t.customer && t.endedBy != 0 {
			continue
		}
		return r.causeOfEnd(t)
	}
	return Other
}

// wroteAgain says whether a sale committed something after a commit whose answer was lost.
func (r *run) wroteAgain() bool {
	lost := map[Customer]bool{}
	for _, e := range r.entries {
		if e.Sent != "COMMIT" {
			continue
		}
		if lost[e.customer] {
			return true
		}
		lost[e.customer] = e.Note == answerLost
	}
	return false
}

// causeWithoutLock is why a strategy failed that keeps something else than a lock. An event that
// would have ended a lock has ended that.
func (r *run) causeWithoutLock() Cause {
	if len(r.of.State.Keys) == 0 && r.of.State.Remaining == "" {
		return NoLock
	}
	for _, c := range r.chosen {
		switch c.Event {
		case Forget, FlushAll, Failover:
			return Forgotten
		case Pause:
			return LateWrite
		case Cut:
			return Unnoticed
		case Wait:
			return Overrun
		}
	}
	return NoLock
}

func (r *run) causeOfEnd(t tenure) Cause {
	switch {
	case t.endedBy != 0 && t.to >= 0 && r.tookOver(t):
		if t.fresh {
			return StaleDeadline
		}
		return r.causeOfLease(t)
	case t.endedBy != 0 && t.checked:
		return SplitRelease
	case t.endedBy != 0:
		return ForeignDelete
	}
	switch t.endedEvent {
	case Forget, FlushAll, Failover:
		return Forgotten
	}
	return r.causeOfLease(t)
}

// tookOver says whether the step that ended a hold made the lock another's at once.
func (r *run) tookOver(t tenure) bool {
	for _, next := range r.tenures {
		if next.from == t.to {
			return next.customer == t.endedBy
		}
	}
	return false
}

// causeOfLease is why a lease ended before its holder had finished.
func (r *run) causeOfLease(t tenure) Cause {
	for i, e := range r.entries {
		if i < t.from || t.to >= 0 && i > t.to {
			continue
		}
		switch {
		case e.event == Pause && e.customer == t.customer:
			return LateWrite
		case e.event == Cut && e.customer == t.customer:
			return Unnoticed
		}
	}
	return Overrun
}

// holdOf is the last hold under which a customer wrote, -1 for none.
func (r *run) holdOf(c Customer) int {
	for i := len(r.tenures) - 1; i >= 0; i-- {
		if r.tenures[i].customer == c {
			return i
		}
	}
	return -1
}

// overwritten finds two orders that were made of the same stock.
func overwritten(orders []Order) (first, second Customer) {
	for i, a := range orders {
		for _, b := range orders[:i] {
			if a.Read == b.Read && len(a.Customer) == 1 && len(b.Customer) == 1 {
				return Customer(b.Customer[0]), Customer(a.Customer[0])
			}
		}
	}
	return 0, 0
}
