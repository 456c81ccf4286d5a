package exercise

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/stage"
	"stocklock/internal/strategy"
)

// Cause is why an exercise is not solved: a cause of a schedule, of a cell, or one of these.
type Cause string

const (
	NotBuilt        Cause = "does-not-build"
	Crashed         Cause = "crash"
	TooSilent       Cause = "silence"
	TooManyRequests Cause = "too-many-requests"
	NeverSold       Cause = "never-sold"
	SoldTwice       Cause = "sold-twice"
	KeptOut         Cause = "kept-out"
	MixedItems      Cause = "mixed-items"
	TooManyCommits  Cause = "too-many-commits"
)

// Verdict is what a check found.
type Verdict struct {
	Solved bool
	Cause  Cause  // why not
	Said   string // the same in a sentence
	// Record is the shortest schedule that fails, nil where no schedule decided.
	Record *schedule.Record
	// Cell is the cell that failed, empty where none did.
	Cell string
}

// lease is that of every lock in an exploration.
const lease = 300 * time.Millisecond

// Checker checks answers that one shop program has. Its servers start when the first check needs
// them. One goroutine at a time uses it.
type Checker struct {
	// Progress is called with the number of schedules that were run, and of those that are known to
	// be left. It may be nil.
	Progress func(step string, done, left int)

	background context.Context // of the stage, which outlasts a check
	shop       *catalog.Catalog
	stage      *stage.Stage // nil until there was something to explore
}

// Open makes a checker of a program that [Build] has built. It can check as long as ctx lasts. The
// caller closes it.
func Open(ctx context.Context, program string) (*Checker, error) {
	shop, err := catalog.Open(ctx, program)
	if err != nil {
		return nil, err
	}
	return &Checker{background: ctx, shop: shop}, nil
}

// Close ends what was started.
func (c *Checker) Close() error {
	var err error
	if c.stage != nil {
		err = c.stage.Close()
	}
	return errors.Join(err, c.shop.Close())
}

// Check has explorations and cells decide, in the order of the exercise, and ends with the first
// that fails. Done is called for each step that held. An error means that nothing is known of the code.
func (c *Checker) Check(ctx context.Context, a Answer, done func(step string)) (Verdict, error) {
	if len(a.Exercise.Searches) > 0 {
		if v, err := c.explore(ctx, a, done); err != nil || v.Cause != "" {
			return v, err
		}
	}
	if len(a.Exercise.Scenarios) > 0 {
		if v, err := c.runCells(ctx, a, done); err != nil || v.Cause != "" {
			return v, err
		}
	}
	return Verdict{Solved: true}, nil
}

// explore runs the searches of an exercise.
func (c *Checker) explore(ctx context.Context, a Answer, done func(string)) (Verdict, error) {
	stage, err := c.opened()
	if err != nil {
		return Verdict{}, err
	}
	for _, s := range a.Exercise.Searches {
		found, err := c.searchTwice(ctx, stage, a, s)
		if err != nil {
			return failed(ctx, stage, err)
		}
		if len(found.Shortest) > 0 {
			record := &found.Shortest[0]
			return Verdict{Cause: Cause(record.Outcome.Cause), Said: record.Sentence(), Record: record}, nil
		}
		if len(found.Once) > 0 {
			return Verdict{}, fmt.Errorf("%s: schedules failed in two searches and could not be repeated, so that nothing is known: check again on a quieter machine: %s", s, found.Once[0])
		}
		if why := found.Unknown(); why != "" {
			return Verdict{}, fmt.Errorf("%s: nothing is known, check again on a quieter machine: %s", s, why)
		}
		done(fmt.Sprintf("%s: %d schedules", s, found.Runs))
	}
	return Verdict{}, nil
}

// searchTwice explores, and does so again where schedules failed that could not be repeated. Beside many
// others a renewal can be late, and all that waits for it.
func (c *Checker) searchTwice(ctx context.Context, on *stage.Stage, a Answer, s Search) (explore.Found, error) {
	for again := false; ; again = true {
		found, err := explore.Explore(ctx, bounded{on}, a.search(s), func(done, left int) {
			if c.Progress != nil {
				c.Progress(s.String(), done, left)
			}
		})
		if err != nil {
			return found, err
		}
		found.Shortest = slices.DeleteFunc(found.Shortest, func(r schedule.Record) bool { return slices.Contains(s.Allowed, r.Outcome.Cause) })
		if err := explore.Confirm(ctx, on, &found); err != nil || again || len(found.Shortest) > 0 || len(found.Once) == 0 {
			return found, err
		}
	}
}

// opened is the stage, which the first exploration opens.
func (c *Checker) opened() (*stage.Stage, error) {
	if c.stage != nil {
		return c.stage, nil
	}
	stage, err := stage.Open(c.background, c.shop, stage.Options{Lease: lease})
	if err != nil {
		return nil, err
	}
	c.stage = stage
	return stage, nil
}

func (a Answer) search(s Search) explore.Search {
	search := explore.Search{Switches: s.Switches, Plan: stage.Plan{
		Strategy: a.Name, Customers: s.Customers, MaxEvents: max(s.InARow, 1), InARow: true, LocalClock: stage.LocalClock(strategy.Description{Properties: a.Exercise.Properties}),
	}}
	if s.Event != "" {
		search.Events = []schedule.Event{s.Event}
	}
	return search
}

// failed tells what the code did from what the harness could not do.
func failed(ctx context.Context, on *stage.Stage, err error) (Verdict, error) {
	if f, ok := errors.AsType[failure](err); ok {
		return Verdict{Cause: f.cause, Said: f.said, Record: f.record}, nil
	}
	_, answer, first := strings.Cut(err.Error(), rehearsal)
	if ctx.Err() != nil || !first {
		return Verdict{}, err
	}
	v := Verdict{Cause: NeverSold, Said: "one customer alone wanted a unit that was there, and was answered with " + answer}
	if why := on.Panic(); why != "" {
		v.Cause, v.Said = Crashed, v.Said+": "+why
	}
	return v, nil
}

// rehearsal is what a stage says of a first sale that was not answered as sold.
const rehearsal = "before the first run was answered with "

// sentences renders a cell's explanation in English.
func sentences(x *explain.Explanation) string {
	if x == nil {
		return ""
	}
	return explain.English.Say(x.Why...)
}
