package main

import (
	"context"
	"fmt"
	"slices"

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/stage"
	"stocklock/internal/strategy"
)

type exploreCommand struct {
	Strategies []string `arg:"" name:"strategy" help:"Strategies of the shop, or all."`

	Events    []string `placeholder:"EVENT" help:"What may happen once in a run, at every possible place: some of wait, forget, lose, pause, kill, cut, failover, flushall, or all. Each is explored by itself. Without it nothing happens but the steps."`
	Customers int      `default:"2" min:"2" max:"3" help:"How many buy, with one unit less in stock."`
	Switches  *int     `placeholder:"N" min:"0" max:"20" help:"How often a run may leave a customer who could go on. 0 for any number. Without it any number for two customers, and 4 for three."`
	JSON      bool     `name:"json" help:"Print the results as JSON."`

	stageSettings `embed:""`
}

// Help is shown under the flags.
func (*exploreCommand) Help() string {
	return `Runs every order of the requests once, on real servers, and prints for each cause the shortest schedule that
fails, played once more. Orders that differ only in independent steps count as one.

Examples:

    loadtest explore none
    loadtest explore set-ex-nx --events wait --customers 3
    loadtest explore fenced --events all
    loadtest explore all --events wait,kill

Exit codes: 0 what the strategies' properties let expect, 1 a surprise.`
}

func (c *exploreCommand) Run(ctx context.Context, s streams) error {
	if _, err := schedule.ParseEvents(c.Events); err != nil {
		return usage("--events: %w", err)
	}
	shop, err := c.catalog(ctx, s)
	if err != nil {
		return err
	}
	defer shop.Close()
	strategies, err := named(c.Strategies, shop.Strategies, shop.ByName)
	if err != nil {
		return usage("%w, or all", err)
	}
	on, err := c.open(ctx, s, shop, strategies...)
	if err != nil {
		return err
	}
	defer on.Close()
	return c.search(ctx, s, on, strategies)
}

// search explores strategies on a stage, and shows what was found.
func (c *exploreCommand) search(ctx context.Context, s streams, on *stage.Stage, strategies []strategy.Description) error {
	events, err := schedule.ParseEvents(c.Events)
	if err != nil {
		return usage("--events: %w", err)
	}
	switches := 0
	if c.Customers > 2 {
		switches = 4
	}
	if c.Switches != nil {
		switches = *c.Switches
	}
	var results []explore.Result
	for _, st := range strategies {
		if why := stage.Unplayable(st); why != "" {
			fmt.Fprintf(s.err, "%s: skipped: %s\n", st.Name, why)
			continue
		}
		survey := explore.Survey{Strategy: st.Name, Events: events, Customers: c.Customers, Switches: switches}
		err := survey.Run(ctx, on, progress(s), func(r explore.Result) {
			clearProgress(s)
			results = append(results, r)
			if !c.JSON {
				printResult(s, r)
			}
		})
		if err != nil {
			clearProgress(s)
			return err
		}
	}
	if c.JSON {
		if err := s.json(results); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(results, func(r explore.Result) bool { return len(r.Surprises) > 0 }) {
		return errSurprised
	}
	return nil
}

// progress shows on a terminal how far an exploration is.
func progress(s streams) func(explore.Result, int, int) {
	if !isTerminal(s.err) {
		return func(explore.Result, int, int) {}
	}
	return func(r explore.Result, done, left int) {
		fmt.Fprintf(s.err, "\r\x1b[2K%s, %s: %d run, %d known to be left", r.Strategy, r.Name(), done, left)
	}
}

func clearProgress(s streams) {
	if isTerminal(s.err) {
		fmt.Fprint(s.err, "\r\x1b[2K")
	}
}

func printResult(s streams, r explore.Result) {
	if r.Skipped != "" {
		fmt.Fprintf(s.out, "%s, %s: skipped: %s\n", r.Strategy, r.Name(), r.Skipped)
		return
	}
	fmt.Fprintf(s.out, "%s, %s: %s, %d bad\n", r.Strategy, r.Name(), schedule.Plural(int64(r.Found.Runs), "run"), r.Found.Bad)
	for _, found := range r.Found.Shortest {
		fmt.Fprintf(s.out, "\n  %s\n  loadtest step %s %s\n\n", found.Sentence(), r.Strategy, found.Schedule)
		schedule.Draw(s.out, found, widthOf(s.out))
		fmt.Fprintln(s.out)
	}
	for _, once := range r.Found.Once {
		fmt.Fprintf(s.out, "  not counted as bad: %s\n", once)
	}
	for _, place := range r.Found.Unreached {
		fmt.Fprintf(s.out, "  one run came there, and no other: %s\n", place)
	}
	for _, surprise := range r.Surprises {
		fmt.Fprintf(s.out, "  !! %s\n", surprise)
	}
}
