// Package survey says what is to be explored of a strategy, and rules on what the strategy declares.
//
// A [Plan] is one exploration of a strategy, or one for each of some events. [Default] has those that its
// properties call for. [Judge] rules on each property by what the explorations have found.
package survey

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/declared"
)

// Plan is what one strategy is to be explored under.
type Plan struct {
	Strategy  string
	Events    []schedule.Event // each by itself; none for the steps alone
	Customers int
	Switches  int // 0 for no bound
	schedule.Sales
}

// Default has the surveys that the properties of a strategy call for: two customers under each event
// that says something about it, two of one shop, and three where a third one can decide.
func Default(of declared.Strategy) []Plan {
	switch {
	case of.OnlyBaskets:
		return DefaultOfBaskets(of)
	case of.OnlyReservations:
		return []Plan{OfReservations(of)}
	}
	thirdAtLock := !of.Properties.NotApplicable.Includes(declared.OwnerChecked) || !of.Properties.NotApplicable.Includes(declared.AtomicRelease)
	all := []Plan{
		{Customers: 2},
		{Customers: 2, Sales: schedule.Sales{OneShop: true}},
		{Customers: 2, Events: []schedule.Event{schedule.Wait, schedule.Forget, schedule.Lose}},
		{Customers: 3, Switches: ThreeSwitches},
	}
	if thirdAtLock {
		all = append(all, Plan{Customers: 3, Switches: ThreeSwitches, Events: []schedule.Event{schedule.Wait, schedule.Lose}})
	}
	all = append(all, Plan{Customers: 2, Events: []schedule.Event{schedule.Kill, schedule.Pause, schedule.Cut, schedule.Lag}})
	for i := range all {
		all[i].Strategy = of.Name
	}
	if of.Reservations != nil {
		all = append(all, OfReservations(of))
	}
	return all
}

// OfReservations has two customers who reserve, and a sweep. Each sends twenty requests: whoever could go on is left once.
func OfReservations(of declared.Strategy) Plan {
	return Plan{Strategy: of.Name, Sales: schedule.Sales{Reservations: true}, Customers: 3, Switches: 1}
}

// DefaultOfBaskets is [Default] for sales of several items.
//
// Where two customers can wait for each other, events and a third customer would show only that, again and
// again, and each time somebody has to give up.
func DefaultOfBaskets(of declared.Strategy) []Plan {
	baskets := schedule.Sales{Baskets: true}
	all := []Plan{{Strategy: of.Name, Sales: baskets, Customers: 2}}
	if !of.Baskets.Meets(declared.Crossable) {
		return all
	}
	return append(all,
		Plan{Strategy: of.Name, Sales: baskets, Customers: 2, Switches: 1, Events: []schedule.Event{schedule.Kill, schedule.Pause}},
		Plan{Strategy: of.Name, Sales: baskets, Customers: 3, Switches: basketSwitches},
	)
}

// basketSwitches is how often a run of three customers with baskets may leave one who could go on: each sends
// twice as many requests as with one item.
const basketSwitches = 2

// fewSwitches is the least bound within which equivalent schedules are left out. With less, too often the one that is played
// in their place exceeds the bound.
const fewSwitches = 3

// ThreeSwitches is how often a run of three customers may leave one who could go on.
const ThreeSwitches = 4

// LeftOut says what surveys leave out of the schedules of a strategy, whatever they find.
func LeftOut(in *words.Language, of declared.Strategy, surveys []Plan) string {
	say := func(key string, facts ...any) string { return in.Say(words.Of("survey."+key, facts...)) }
	var left []string
	played := func(e schedule.Event, customers int, oneShop bool) bool {
		return slices.ContainsFunc(surveys, func(v Plan) bool {
			none := e == "" && len(v.Events) == 0
			return (none || slices.Contains(v.Events, e)) && v.Customers == customers && v.OneShop == oneShop
		})
	}
	for _, e := range schedule.Events() {
		if !played(e, 2, false) && !played(e, 3, false) && step.Inapplicable(of, schedule.Sales{}, e).IsZero() {
			left = append(left, string(e))
		}
	}
	var three []string
	for _, e := range append([]schedule.Event{""}, schedule.Events()...) {
		if played(e, 2, false) && !played(e, 3, false) {
			three = append(three, cmp.Or(string(e), in.Say(words.Of("no.event"))))
		}
	}
	if len(three) > 0 {
		left = append(left, say("third", "events", strings.Join(three, ", ")))
	}
	if !played("", 2, true) && !played("", 3, true) {
		left = append(left, say("one-shop"))
	}
	for _, v := range surveys {
		if v.Switches > 0 {
			if bound := say("switches", "n", v.Switches, "customers", v.Customers); !slices.Contains(left, bound) {
				left = append(left, bound)
			}
		}
	}
	if len(of.State.Copies) > 0 {
		left = append(left, say("views"))
	}
	if of.AtPoints() {
		left = append(left, say("lock"))
	}
	return strings.Join(append(left, say("events"), say("beside")), in.Say(words.Of("list")))
}

// Result is one line of a survey.
type Result struct {
	Strategy  string         `json:"strategy"`
	Event     schedule.Event `json:"event,omitempty"`
	Customers int            `json:"customers"`
	Switches  int            `json:"switches,omitempty"` // the bound, 0 for none
	schedule.Sales
	Skipped words.Text `json:"skipped,omitzero"` // why there was nothing to explore
	// AtPoints says that the requests of the lock were not held one by one.
	AtPoints bool          `json:"at_points,omitempty"`
	Found    explore.Found `json:"found"`
	// Starved are the runs that were made again because the machine made a renewal late. They were seen, and
	// not judged.
	Starved   int64        `json:"starved,omitempty"`
	Surprises []words.Text `json:"surprises,omitempty"`
}

// NotMet says whether the event happened in no run of a search that was played: nowhere was something that it could end.
func (r Result) NotMet() bool {
	return r.Event != "" && r.Found.Runs > 0 && r.Found.Met == 0 && !r.Found.Limited() && r.Found.Unknown().IsZero()
}

// Unknown says why a result confirms nothing, empty where it does.
func (r Result) Unknown() words.Text {
	if r.NotMet() {
		return words.Of("judge.not-met", "event", string(r.Event))
	}
	return r.Found.Unknown()
}

// Name is what a result is about, in a few words.
func (r Result) Name() words.Text {
	var baskets, event, switches words.Text
	who := words.Of("survey.customers", "n", r.Customers)
	if r.OneShop {
		who = words.Of("survey.of-one-shop", "n", r.Customers)
	}
	if r.Baskets {
		baskets = words.Of("survey.baskets")
	}
	if r.Reservations {
		who = words.Of("survey.reservations", "n", r.Customers-1)
	}
	if r.Event != "" {
		event = words.Of("survey.event", "event", string(r.Event))
	}
	if r.Switches > 0 {
		switches = words.Of("survey.at-most", "n", r.Switches)
	}
	return words.Of("survey", "who", who, "baskets", baskets, "event", event, "switches", switches)
}

// Run explores, and plays the shortest schedule of each cause once more after taking from it what
// it does not need. Each result is passed on when it is there.
func (p Plan) Run(ctx context.Context, on *step.Shops, progress func(of Result, done, left int), each func(Result)) error {
	of, err := on.Shop().Any(p.Strategy)
	if err != nil {
		return err
	}
	events := slices.Clone(p.Events)
	if len(events) == 0 {
		events = []schedule.Event{""}
	}
	for _, event := range events {
		result := Result{Strategy: p.Strategy, Event: event, Customers: p.Customers, Switches: p.Switches, Sales: p.Sales, Skipped: step.Inapplicable(of, p.Sales, event), AtPoints: of.AtPoints()}
		if !result.Skipped.IsZero() {
			each(result)
			continue
		}
		plan := step.Plan{Strategy: p.Strategy, Customers: p.Customers, Sales: p.Sales, MaxEvents: 1, LocalClock: step.LocalClock(of), Early: !p.Reservations}
		if event != "" {
			plan.Events = []schedule.Event{event}
		}
		starved := on.Starved()
		again := step.As{Shops: on, Sales: p.Sales}
		found, err := explore.Explore(ctx, plan.On(on), explore.Search{Switches: p.Switches, Every: p.Switches > 0 && p.Switches < fewSwitches, Slots: again.Slots(plan.Events)}, func(done, left int) { progress(result, done, left) })
		if err == nil {
			err = explore.Confirm(ctx, again.PlaySchedule, &found)
		}
		result.Found, result.Starved = found, on.Starved()-starved
		if err != nil {
			if found.Runs > 0 {
				result.Surprises = []words.Text{words.Of("survey.unfinished", "why", strings.Split(err.Error(), "\n")[0])}
				each(result)
			}
			return fmt.Errorf("%s, %s: %w", p.Strategy, result.Name(), err)
		}
		expected := schedule.Expected(on.Declared(of, p.Sales), p.Sales, plan.Events, p.Customers)
		if result.AtPoints {
			expected.Wanted = slices.DeleteFunc(expected.Wanted, func(a schedule.Attack) bool { return a.Within })
		}
		result.Surprises = surprises(expected, found)
		each(result)
	}
	return nil
}

const notShown, notExplained = "survey.not-shown", "survey.unexplained"

// surprises says where what was found differs from what is expected, in both directions.
func surprises(expected schedule.Expectation, f explore.Found) (all []words.Text) {
	if why := f.Unknown(); !why.IsZero() {
		all = append(all, why)
	}
	for _, a := range expected.Wanted {
		if !f.Shows(a.Causes) {
			all = append(all, words.Of(notShown, "property", a.Property.String()))
		}
	}
	for _, r := range f.Shortest {
		if c := r.Outcome.Cause; !slices.Contains(expected.Allowed, c) {
			all = append(all, words.Of(notExplained, "verdict", r.Outcome.Verdict, "cause", string(c)))
		}
	}
	return all
}
