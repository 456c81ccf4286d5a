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
}

// attacks has one line for each property that schedules of sales can decide. Reentrant is not among
// them, because a sale here takes its lock once. StorageChecked protects from every attack.
var attacks = []Attack{
	{strategy.Exclusive, "", 2, []Cause{NoLock}},
	{strategy.Recovers, Kill, 2, []Cause{NoExpiry, LostAnswer, Prolonged}},
	{strategy.AtomicLease, Kill, 2, []Cause{NoExpiry, LostAnswer}},
	{strategy.Renews, Wait, 2, []Cause{Overrun}},
	{strategy.OwnerChecked, Wait, 3, []Cause{ForeignDelete}},
	{strategy.AtomicRelease, Wait, 3, []Cause{SplitRelease, ForeignDelete}},
	{strategy.ClockFree, Wait, 2, []Cause{StaleDeadline}},
	{strategy.LossAware, Cut, 2, []Cause{Unnoticed, LostRelease}},
	{strategy.SurvivesDataLoss, Forget, 2, []Cause{Forgotten}},
	{strategy.PauseProof, Pause, 2, []Cause{LateWrite}},
	{strategy.DurableAnswers, Kill, 2, []Cause{NoOrder, Unreturned}},
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

// Unplayable says why schedules of a strategy cannot be played, and nothing where they can.
func Unplayable(of strategy.Description) string {
	switch {
	case of.NeedsQuorum:
		return "it asks several servers at once, and a schedule has one step at a time"
	case of.OwnClient:
		return "its requests to the lock's server go through a client of its own, where they cannot be held"
	case of.ByChance:
		return "it draws lots, and a schedule has to end alike each time"
	case of.Background:
		return "goroutines beside the sales write its orders, and a schedule has the requests of the sales"
	}
	return ""
}
