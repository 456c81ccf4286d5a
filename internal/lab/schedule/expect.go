package schedule

import (
	"slices"

	"stocklock/internal/strategy"
)

// Attack says how exploration attacks a property: a strategy that lacks it shows a bad schedule
// with one of these causes, one that has it shows none.
type Attack struct {
	Property  strategy.Property // 0 for what is the database's alone
	Event     Event             // empty for none
	Customers int               // so many are needed for it to show
	Causes    []Cause
	// Within says that it shows only between two requests of one acquisition or release. If these
	// cannot be held one by one, it decides nothing.
	Within bool
}

// Reason says what the attack succeeds by.
func (a Attack) Reason() string {
	if a.Property == 0 {
		return "the database forgets"
	}
	return "it lacks " + a.Property.String()
}

// Attacks has one line for each property that schedules of sales can decide. Reentrant is not among
// them, because a sale here takes its lock once. StorageChecked protects from the attacks on properties that
// are not among [strategy.Unchecked].
var Attacks = []Attack{
	{Property: strategy.Exclusive, Customers: 2, Causes: []Cause{NoLock, LateCommit, OldSnapshot, WriteSkew, WrongKey}},
	{Property: strategy.Recovers, Event: Kill, Customers: 2, Causes: []Cause{NoExpiry, LostAnswer, Prolonged}},
	{Property: strategy.AtomicLease, Event: Kill, Customers: 2, Causes: []Cause{NoExpiry, LostAnswer}, Within: true},
	{Property: strategy.Renews, Event: Wait, Customers: 2, Causes: []Cause{Overrun}},
	{Property: strategy.OwnerChecked, Event: Wait, Customers: 3, Causes: []Cause{ForeignDelete}},
	{Property: strategy.AtomicRelease, Event: Wait, Customers: 3, Causes: []Cause{SplitRelease, ForeignDelete}, Within: true},
	{Property: strategy.ClockFree, Event: Wait, Customers: 2, Causes: []Cause{StaleDeadline}, Within: true},
	{Property: strategy.LossAware, Event: Cut, Customers: 2, Causes: []Cause{Unnoticed, LostRelease}},
	{Property: strategy.SurvivesDataLoss, Event: Forget, Customers: 2, Causes: []Cause{Forgotten}},
	{Property: strategy.PauseProof, Event: Pause, Customers: 2, Causes: []Cause{LateWrite}},
	{Property: strategy.DurableAnswers, Event: Kill, Customers: 2, Causes: []Cause{NoOrder, Unreturned}},
	// A shop that dies between its COMMIT and the renewal of the copy leaves an old one, as a page view does.
	{Property: strategy.FreshRead, Event: Kill, Customers: 2, Causes: []Cause{StaleCache}},
	{Property: strategy.Once, Event: Lose, Customers: 2, Causes: []Cause{UnknownCommit, SoldAgain}},
	{Property: strategy.ReadsSource, Event: Lag, Customers: 2, Causes: []Cause{ReadBehind}},
}

// forgets is the attack on a database whose answers end with its primary: no property of a strategy withstands it.
var forgets = Attack{Event: DBFailover, Customers: 2, Causes: []Cause{NotCopied}}

// BasketAttacks has one line for each property of sales of several items that schedules of sales can decide.
// The others take units that are not there for all, or lines of the same item.
var BasketAttacks = []Attack{
	{Property: strategy.Crossable, Customers: 2, Causes: []Cause{CrossedLocks}},
	{Property: strategy.Whole, Event: Kill, Customers: 2, Causes: []Cause{Abandoned, TornOrder}},
	{Property: strategy.FreesLocks, Event: Kill, Customers: 2, Causes: []Cause{NoExpiry, LostAnswer}},
	{Property: strategy.OvertakeProof, Event: Pause, Customers: 2, Causes: []Cause{LateWrite}},
}

// ExpectedOfBaskets is [Expected] for sales of several items. What a strategy lacks with one item explains
// failures here, too.
func ExpectedOfBaskets(of strategy.Description, events []Event, customers int) Expectation {
	e := Expectation{Allowed: Expected(of.Everywhere(), events, customers).Allowed}
	for _, a := range BasketAttacks {
		if of.Baskets.Standing(a.Property) != strategy.Lacks {
			continue
		}
		e.Allowed = append(e.Allowed, a.Causes...)
		if (a.Event == "" || slices.Contains(events, a.Event)) && a.Customers <= customers {
			e.Wanted = append(e.Wanted, a)
		}
	}
	return e
}

// Shows reports whether an attack on a property can end with a cause.
func (c Cause) Shows(p strategy.Property) bool {
	return slices.ContainsFunc(Attacks, func(a Attack) bool { return a.Property == p && slices.Contains(a.Causes, c) })
}

// Expectation is what an exploration is to find.
type Expectation struct {
	// Wanted has the attacks that must succeed.
	Wanted []Attack
	// Allowed are the causes that may be found. All others contradict what is declared.
	Allowed []Cause
}

// Expected follows from what a strategy declares, with databases of several servers, and from the search.
func Expected(p strategy.Properties, events []Event, customers int) Expectation {
	e := Expectation{Allowed: slices.Clone(forgets.Causes)}
	if slices.Contains(events, forgets.Event) {
		e.Wanted = append(e.Wanted, forgets)
	}
	checked := p.Has.Includes(strategy.StorageChecked)
	for _, a := range Attacks {
		if p.Standing(a.Property) != strategy.Lacks || checked && !strategy.Unchecked.Includes(a.Property) {
			continue
		}
		e.Allowed = append(e.Allowed, a.Causes...)
		possible := a.Event == "" || slices.Contains(events, a.Event)
		// Where nothing keeps the second customer out, there is nothing else to attack.
		exclusive := a.Property == strategy.Exclusive || p.Has.Includes(strategy.Exclusive)
		if possible && a.Customers <= customers && exclusive {
			e.Wanted = append(e.Wanted, a)
		}
	}
	return e
}
