package schedule

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Survey is what one strategy is to be explored under.
type Survey struct {
	Strategy  string
	Events    []Event // each by itself; none for the steps alone
	Customers int
	Switches  int // 0 for no bound
}

// Result is one line of a survey.
type Result struct {
	Strategy  string `json:"strategy"`
	Event     Event  `json:"event,omitempty"`
	Customers int    `json:"customers"`
	Switches  int    `json:"switches,omitempty"` // the bound, 0 for none
	Skipped   string `json:"skipped,omitempty"`  // why there was nothing to explore
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
func (v Survey) Run(ctx context.Context, stage *Stage, progress func(of Result, done, left int), each func(Result)) error {
	of, err := stage.shop.ByName(v.Strategy)
	if err != nil {
		return err
	}
	events := slices.Clone(v.Events)
	if len(events) == 0 {
		events = []Event{""}
	}
	for _, event := range events {
		result := Result{Strategy: v.Strategy, Event: event, Customers: v.Customers, Switches: v.Switches, Skipped: Inapplicable(of, event), AtPoints: of.AtPoints()}
		if result.Skipped != "" {
			each(result)
			continue
		}
		search := Search{Switches: v.Switches, Plan: Plan{Strategy: v.Strategy, Customers: v.Customers, MaxEvents: 1, LocalClock: LocalClock(of)}}
		if event != "" {
			search.Events = []Event{event}
		}
		found, err := Explore(ctx, stage, search, func(done, left int) { progress(result, done, left) })
		if err != nil {
			return fmt.Errorf("%s, %s: %w", v.Strategy, result.Name(), err)
		}
		if err := stage.Confirm(ctx, &found); err != nil {
			return err
		}
		result.Found = found
		expected := Expected(of.Properties, search.Events, v.Customers)
		if result.AtPoints {
			expected.Wanted = slices.DeleteFunc(expected.Wanted, func(a Attack) bool { return a.Within })
		}
		result.Surprises = expected.Surprises(found)
		each(result)
	}
	return nil
}

// ParseEvents reads names of events, or all.
func ParseEvents(names []string) ([]Event, error) {
	var events []Event
	for _, name := range names {
		name = strings.TrimSpace(name)
		if name == "all" {
			return []Event{Wait, Forget, Lose, Pause, Kill, Cut}, nil
		}
		info, ok := eventNamed(name)
		if !ok || info.Event == Arrive {
			var all []string
			for _, e := range Events() {
				all = append(all, string(e))
			}
			return nil, fmt.Errorf("no event %q: want some of %s, or all", name, strings.Join(all, ", "))
		}
		if !slices.Contains(events, info.Event) {
			events = append(events, info.Event)
		}
	}
	return events, nil
}
