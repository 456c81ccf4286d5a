package schedule

import (
	"slices"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/declared"
)

// Attack says how exploration attacks a property: a strategy that lacks it shows a bad schedule
// with one of these causes, one that has it shows none.
type Attack struct {
	Property  declared.Property
	Event     Event // empty for none
	Customers int   // so many are needed for it to show
	Causes    []verdict.Cause
	// Within says that it shows only between two requests of one acquisition or release. If these
	// cannot be held one by one, it decides nothing.
	Within bool
}

// Attacks has one line for each property that schedules of sales can decide. Reentrant is not among
// them, because a sale here takes its lock once. StorageChecked protects from the attacks on properties that
// are not among [declared.Unchecked].
var Attacks = []Attack{
	{Property: declared.Exclusive, Customers: 2, Causes: []verdict.Cause{verdict.NoLock, verdict.LateCommit, verdict.OldSnapshot, verdict.WriteSkew, verdict.WrongKey, verdict.CheckThenSet}},
	{Property: declared.Recovers, Event: Kill, Customers: 2, Causes: []verdict.Cause{verdict.NoExpiry, verdict.LostAnswer, verdict.Prolonged}},
	{Property: declared.AtomicLease, Event: Kill, Customers: 2, Causes: []verdict.Cause{verdict.NoExpiry, verdict.LostAnswer}, Within: true},
	{Property: declared.Renews, Event: Wait, Customers: 2, Causes: []verdict.Cause{verdict.Overrun}},
	{Property: declared.OwnerChecked, Event: Wait, Customers: 3, Causes: []verdict.Cause{verdict.ForeignDelete}},
	{Property: declared.AtomicRelease, Event: Wait, Customers: 3, Causes: []verdict.Cause{verdict.SplitRelease, verdict.ForeignDelete}, Within: true},
	{Property: declared.ClockFree, Event: Wait, Customers: 2, Causes: []verdict.Cause{verdict.StaleDeadline}, Within: true},
	{Property: declared.LossAware, Event: Cut, Customers: 2, Causes: []verdict.Cause{verdict.Unnoticed, verdict.LostRelease}},
	{Property: declared.SurvivesDataLoss, Event: Forget, Customers: 2, Causes: []verdict.Cause{verdict.Forgotten}},
	{Property: declared.PauseProof, Event: Pause, Customers: 2, Causes: []verdict.Cause{verdict.LateWrite}},
	{Property: declared.DurableAnswers, Event: Kill, Customers: 2, Causes: []verdict.Cause{verdict.NoOrder, verdict.Unreturned}},
	// A shop that dies between its COMMIT and the renewal of the copy leaves an old one, as a page view does.
	{Property: declared.FreshRead, Event: Kill, Customers: 2, Causes: []verdict.Cause{verdict.StaleCache}},
	{Property: declared.Once, Event: Lose, Customers: 2, Causes: []verdict.Cause{verdict.UnknownCommit, verdict.SoldAgain}},
	{Property: declared.ReadsSource, Event: Lag, Customers: 2, Causes: []verdict.Cause{verdict.ReadBehind}},
}

// BasketAttacks has one line for each property of sales of several items that schedules of sales can decide.
// The others take units that are not there for all, or lines of the same item.
var BasketAttacks = []Attack{
	{Property: declared.Crossable, Customers: 2, Causes: []verdict.Cause{verdict.CrossedLocks}},
	{Property: declared.Whole, Event: Kill, Customers: 2, Causes: []verdict.Cause{verdict.Abandoned, verdict.TornOrder}},
	{Property: declared.Complete, Event: Kill, Customers: 2, Causes: []verdict.Cause{verdict.TornOrder}},
	{Property: declared.FreesLocks, Event: Kill, Customers: 2, Causes: []verdict.Cause{verdict.NoExpiry, verdict.LostAnswer}},
	{Property: declared.OvertakeProof, Event: Pause, Customers: 2, Causes: []verdict.Cause{verdict.LateWrite}},
}

// ReservationAttacks has one line for each property of reservations that schedules can decide, in which each customer
// pays once.
var ReservationAttacks = []Attack{
	{Property: declared.CountsUnits, Customers: 3, Causes: []verdict.Cause{verdict.Uncounted}},
	{Property: declared.StaysEnded, Customers: 3, Causes: []verdict.Cause{verdict.Revived}},
	{Property: declared.StaysConfirmed, Customers: 3, Causes: []verdict.Cause{verdict.Overwritten}},
}

// Shows reports whether an attack on a property can end with a cause.
func Shows(c verdict.Cause, p declared.Property) bool {
	return slices.ContainsFunc(Attacks, func(a Attack) bool { return a.Property == p && slices.Contains(a.Causes, c) })
}

// Expectation is what an exploration is to find.
type Expectation struct {
	// Wanted has the attacks that must succeed.
	Wanted []Attack
	// Allowed are the causes that may be found. All others contradict what is declared.
	Allowed []verdict.Cause
}

// Expected follows from what a strategy declares, with databases of several servers, from what its customers buy, and
// from the search. A property that it lacks with one item explains failures of several, too.
func Expected(of declared.Strategy, sales Sales, events []Event, customers int) Expectation {
	if sales.Reservations {
		return succeeding(ReservationAttacks, *of.Reservations, events, customers)
	}
	p := of.Everywhere()
	refused := func(a Attack) bool { // by the database
		return p.Has.Includes(declared.StorageChecked) && !declared.Unchecked.Includes(a.Property)
	}
	e := succeeding(slices.DeleteFunc(slices.Clone(Attacks), refused), p, events, customers)
	if of.Starves { // sales that end each other's tries may send a customer away
		e.Allowed = append(e.Allowed, verdict.TurnedAway, verdict.Deadlock)
	}
	if sales.Baskets {
		ofBaskets := succeeding(BasketAttacks, *of.Baskets, events, customers)
		return Expectation{Wanted: ofBaskets.Wanted, Allowed: append(e.Allowed, ofBaskets.Allowed...)}
	}
	if !p.Has.Includes(declared.Exclusive) { // where nothing keeps the second customer out, there is nothing else to attack
		e.Wanted = slices.DeleteFunc(e.Wanted, func(a Attack) bool { return a.Property != declared.Exclusive })
	}
	return e
}

// succeeding are the attacks on what is lacked, and those of them that the search is to show.
func succeeding(attacks []Attack, p declared.Properties, events []Event, customers int) (e Expectation) {
	for _, a := range attacks {
		if p.Standing(a.Property) != declared.Lacks {
			continue
		}
		e.Allowed = append(e.Allowed, a.Causes...)
		if (a.Event == "" || slices.Contains(events, a.Event)) && a.Customers <= customers {
			e.Wanted = append(e.Wanted, a)
		}
	}
	return e
}
