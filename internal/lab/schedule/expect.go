package schedule

import (
	"fmt"
	"slices"

	"stocklock/internal/strategy"
)

// Attack says how exploration attacks a property: a strategy that lacks it shows a bad schedule
// with one of these causes, one that has it shows none.
type Attack struct {
	Property  strategy.Property
	Event     Event // empty for none
	Customers int   // so many are needed for it to show
	Causes    []Cause
	// Within says that it shows only between two requests of one acquisition or release. If these
	// cannot be held one by one, it decides nothing.
	Within bool
}

// attacks has one line for each property that schedules of sales can decide. Reentrant is not among
// them, because a sale here takes its lock once. StorageChecked protects from every attack.
var attacks = []Attack{
	{Property: strategy.Exclusive, Customers: 2, Causes: []Cause{NoLock}},
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
}

// Attacks lists how each property is attacked.
func Attacks() []Attack { return slices.Clone(attacks) }

// Expectation is what an exploration is to find.
type Expectation struct {
	// Wanted has the attacks that must succeed.
	Wanted []Attack
	// Allowed are the causes that may be found. All others contradict what is declared.
	Allowed []Cause
}

// Expected follows from what a strategy declares and from the search.
func Expected(p strategy.Properties, events []Event, customers int) Expectation {
	var e Expectation
	if p.Has.Includes(strategy.StorageChecked) {
		return e
	}
	for _, a := range attacks {
		if p.Standing(a.Property) != strategy.Lacks {
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

// Surprises says where what was found differs from what is expected, in both directions.
func (e Expectation) Surprises(f Found) []string {
	var all []string
	if why := f.Unknown(); why != "" {
		all = append(all, why)
	}
	for _, a := range e.Wanted {
		if !f.shows(a.Causes) {
			all = append(all, fmt.Sprintf("it lacks %s, and no schedule shows it", a.Property))
		}
	}
	for _, r := range f.Shortest {
		if c := r.Outcome.Cause; !slices.Contains(e.Allowed, c) {
			all = append(all, fmt.Sprintf("%s by %s: no property that it lacks explains that", r.Outcome.Verdict, c))
		}
	}
	return all
}

// LocalClock says whether a strategy goes by other times than those of keys in Redis, as far as it
// declares: by the clock of its process, or by times in rows of its own.
func LocalClock(of strategy.Description) bool {
	return of.Standing(strategy.ClockFree) == strategy.Lacks || of.Standing(strategy.LossAware) == strategy.Has || of.State.Remaining != ""
}

// Inapplicable says why an event says nothing about a strategy, and nothing where it does.
func Inapplicable(of strategy.Description, e Event) string {
	breaksRedis := e == FlushAll || e == Failover
	switch {
	case of.NeedsEtcd && (breaksRedis || e == Forget):
		return "its lock is in etcd, which keeps on disk what it has acknowledged"
	case of.NeedsQuorum && breaksRedis:
		return "its lock is not on the server that this breaks"
	case of.State.Remaining != "" && e == Cut:
		return "its holds are in MySQL, which this does nothing to"
	}
	return ""
}

// Unplayable says why schedules of a strategy cannot be played, and nothing where they can.
func Unplayable(of strategy.Description) string {
	switch {
	case of.ByChance:
		return "it draws lots, and a schedule has to end alike each time"
	case of.Background:
		return "goroutines beside the sales write its orders, and a schedule has the requests of the sales"
	}
	return ""
}
