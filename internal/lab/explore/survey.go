package explore

import (
	"context"
	"fmt"
	"slices"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/stage"
)

// Survey is what one strategy is to be explored under.
type Survey struct {
	Strategy  string
	Events    []schedule.Event // each by itself; none for the steps alone
	Customers int
	Switches  int // 0 for no bound
}

// Result is one line of a survey.
type Result struct {
	Strategy  string         `json:"strategy"`
	Event     schedule.Event `json:"event,omitempty"`
	Customers int            `json:"customers"`
	Switches  int            `json:"switches,omitempty"` // the bound, 0 for none
	Skipped   string         `json:"skipped,omitempty"`  // why there was nothing to explore
	// AtPoints says that the requests of the lock were not held one by one.
	AtPoints  bool     `json:"at_points,omitempty"`
	Found     Found    `json:"found"`
	Surprises []string `json:"surprises,omitempty"`
}

// Name is what a result is about, in a few words.
func (r Result) Name() string {
	name := fmt.Sprintf("%d customers", r.Customers)
	if r.Event != "" {
		name += ", " + string(r.Event)
	}
	if r.Switches > 0 {
		name += fmt.Sprintf(", at most %d switches", r.Switches)
	}
	return name
}

// Run explores, and plays the shortest schedule of each cause once more after taking from it what
// it does not need. Each result is passed on when it is there.
func (v Survey) Run(ctx context.Context, on *stage.Stage, progress func(of Result, done, left int), each func(Result)) error {
	of, err := on.Shop().ByName(v.Strategy)
	if err != nil {
		return err
	}
	events := slices.Clone(v.Events)
	if len(events) == 0 {
		events = []schedule.Event{""}
	}
	for _, event := range events {
		result := Result{Strategy: v.Strategy, Event: event, Customers: v.Customers, Switches: v.Switches, Skipped: stage.Inapplicable(of, event), AtPoints: of.AtPoints()}
		if result.Skipped != "" {
			each(result)
			continue
		}
		search := Search{Switches: v.Switches, Plan: stage.Plan{Strategy: v.Strategy, Customers: v.Customers, MaxEvents: 1, LocalClock: stage.LocalClock(of)}}
		if event != "" {
			search.Events = []schedule.Event{event}
		}
		found, err := Explore(ctx, on, search, func(done, left int) { progress(result, done, left) })
		if err != nil {
			return fmt.Errorf("%s, %s: %w", v.Strategy, result.Name(), err)
		}
		if err := Confirm(ctx, on, &found); err != nil {
			return err
		}
		result.Found = found
		expected := schedule.Expected(of.Properties, search.Events, v.Customers)
		if result.AtPoints {
			expected.Wanted = slices.DeleteFunc(expected.Wanted, func(a schedule.Attack) bool { return a.Within })
		}
		result.Surprises = surprises(expected, found)
		each(result)
	}
	return nil
}

// surprises says where what was found differs from what is expected, in both directions.
func surprises(expected schedule.Expectation, f Found) []string {
	var all []string
	if why := f.Unknown(); why != "" {
		all = append(all, why)
	}
	for _, a := range expected.Wanted {
		if !f.shows(a.Causes) {
			all = append(all, fmt.Sprintf("it lacks %s, and no schedule shows it", a.Property))
		}
	}
	for _, r := range f.Shortest {
		if c := r.Outcome.Cause; !slices.Contains(expected.Allowed, c) {
			all = append(all, fmt.Sprintf("%s by %s: no property that it lacks explains that", r.Outcome.Verdict, c))
		}
	}
	return all
}
