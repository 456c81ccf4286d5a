package main

import (
	"context"
	"fmt"
	"slices"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/survey"
	"stocklock/internal/strategy/declared"
)

type exploreCommand struct {
	Strategies []string `arg:"" name:"strategy" help:"Strategies of the shop, or all."`

	Events       []string `placeholder:"EVENT" help:"What may happen once in a run, at every possible place: some of wait, forget, lose, pause, kill, cut, lag, failover, flushall, all, or none. Each is explored by itself."`
	Customers    int      `default:"0" min:"0" max:"3" placeholder:"N" help:"How many buy, with one unit less in stock: 2 or 3."`
	OneShop      bool     `help:"All customers buy at one shop. Otherwise each has a shop of its own."`
	Baskets      bool     `help:"Each customer buys two items in one sale, the second customer in the opposite order. Ways that only sell baskets always do."`
	Reservations bool     `help:"Two customers reserve units and pay, and a third one sweeps. Ways that only reserve always do."`
	Switches     *int     `placeholder:"N" min:"0" max:"20" help:"How often a run may leave a customer who could go on. 0 for any number. Without it any number for two customers, and 4 for three."`
	JSON         bool     `name:"json" help:"Print the results as JSON."`

	stageSettings `embed:""`
}

// Help is shown under the flags.
func (*exploreCommand) Help() string {
	return `Runs every order of the requests once, on real servers, and prints for each cause the shortest schedule that
fails, played once more. Orders that differ only in independent steps count as one.

Without --events, --customers and --one-shop it plays what the strategy's properties call for: two customers under
each event, two of one shop, and three where a third one can decide. The last line says what was left out.

Of sales of several items it plays two customers without an event and, where they cannot wait for each other,
two under kill and pause with at most 1 switch, and three with at most 2 switches. Where they can wait for each
other, --events and --customers play the rest, for minutes. lock-for-all is not explored: its lock is one for all.

Of reservations it plays two customers, whose time is over at once, and a sweep, without an event and with at most 1 switch.

Examples:

    loadtest explore none
    loadtest explore none --events none
    loadtest explore set-ex-nx --events wait --customers 3
    loadtest explore fenced --events all
    loadtest explore fenced --baskets
    loadtest explore reservation --reservations
    loadtest explore locks-unsorted --events kill --customers 2 --switches 1
    loadtest explore all --events wait,kill

Exit codes: 0 what the strategies' properties let expect, 1 a surprise.`
}

func (c *exploreCommand) Run(ctx context.Context, s streams) error {
	if _, err := c.surveys(); err != nil {
		return err
	}
	var strategies []declared.Strategy
	shop, err := c.catalog(ctx, s, func(shop *catalog.Catalog) (err error) {
		strategies, err = c.chosen(shop)
		return err
	})
	if err != nil {
		return err
	}
	defer shop.Close()
	on, err := c.open(ctx, s, shop, strategies...)
	if err != nil {
		return err
	}
	defer on.Close()
	return c.search(ctx, s, on, strategies)
}

// chosen are the strategies to explore.
func (c *exploreCommand) chosen(shop *catalog.Catalog) ([]declared.Strategy, error) {
	all := shop.Strategies
	switch {
	case c.Baskets:
		all = shop.Baskets
	case c.Reservations:
		all = shop.Reservations
	}
	strategies, err := named(c.Strategies, all, shop.Any)
	if err != nil {
		return nil, usage("%w, or all", err)
	}
	for _, of := range strategies {
		switch {
		case c.Baskets && of.Baskets == nil:
			return nil, usage("%s sells one item at a time", of.Name)
		case c.Reservations && of.Reservations == nil:
			return nil, usage("%s does not reserve", of.Name)
		}
	}
	return strategies, nil
}

// search explores strategies on a stage, and shows what was found.
func (c *exploreCommand) search(ctx context.Context, s streams, on *step.Shops, strategies []declared.Strategy) error {
	surveys, err := c.surveys()
	if err != nil {
		return err
	}
	var results []survey.Result
	for _, st := range strategies {
		why := step.Unplayable(st)
		if why == "" {
			if why, err = on.Lacks(ctx, st); err != nil {
				return err
			}
		}
		if why != "" {
			fmt.Fprintf(s.err, "%s: skipped: %s\n", st.Name, why)
			continue
		}
		of := surveys
		switch {
		case c.Reservations || st.OnlyReservations:
			of = []survey.Plan{survey.OfReservations(st)}
		case of == nil && c.Baskets:
			of = survey.DefaultOfBaskets(st)
		case of == nil:
			of = survey.Default(st)
		}
		for i := range of {
			of[i].Strategy, of[i].Baskets = st.Name, c.Baskets || st.OnlyBaskets
			if c.Switches != nil {
				of[i].Switches = *c.Switches
			}
			err := of[i].Run(ctx, on, progress(s), func(r survey.Result) {
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
		if !c.JSON {
			fmt.Fprintf(s.out, "%s: left out: %s\n", st.Name, survey.LeftOut(st, of))
		}
	}
	if c.JSON {
		if err := s.json(results); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(results, func(r survey.Result) bool { return len(r.Surprises) > 0 }) {
		return errSurprised
	}
	return nil
}

// surveys are those that are asked for, nil for those that a strategy's properties call for.
func (c *exploreCommand) surveys() ([]survey.Plan, error) {
	if c.Customers == 1 {
		return nil, usage("--customers is 1: want 2 to 3")
	}
	usual := len(c.Events) == 0 && c.Customers == 0 && !c.OneShop
	switch {
	case c.Reservations && (!usual || c.Baskets):
		return nil, usage("--reservations is for two customers and a sweep, without an event: want it without --events, --customers, --one-shop and --baskets")
	case usual:
		return nil, nil
	}
	asked := survey.Plan{Customers: max(c.Customers, 2), OneShop: c.OneShop}
	if asked.Customers > 2 {
		asked.Switches = survey.ThreeSwitches
	}
	if !slices.Equal(c.Events, []string{"none"}) {
		var err error
		if asked.Events, err = schedule.ParseEvents(c.Events); err != nil {
			return nil, usage("--events: %w", err)
		}
	}
	return []survey.Plan{asked}, nil
}

// progress shows on a terminal how far an exploration is.
func progress(s streams) func(survey.Result, int, int) {
	if !isTerminal(s.err) {
		return func(survey.Result, int, int) {}
	}
	return func(r survey.Result, done, left int) {
		fmt.Fprintf(s.err, "\r\x1b[2K%s, %s: %d run, %d known to be left", r.Strategy, r.Name(), done, left)
	}
}

func clearProgress(s streams) {
	if isTerminal(s.err) {
		fmt.Fprint(s.err, "\r\x1b[2K")
	}
}

func printResult(s streams, r survey.Result) {
	if r.Skipped != "" {
		fmt.Fprintf(s.out, "%s, %s: skipped: %s\n", r.Strategy, r.Name(), r.Skipped)
		return
	}
	ended := ""
	if n := r.Found.Deadlocks; n > 0 {
		ended = fmt.Sprintf(", %d with a deadlock that MySQL ended", n)
	}
	fmt.Fprintf(s.out, "%s, %s: %s, %d bad%s\n", r.Strategy, r.Name(), schedule.Plural(int64(r.Found.Runs), "run"), r.Found.Bad, ended)
	for _, found := range r.Found.Shortest {
		oneShop := ""
		if r.OneShop {
			oneShop = " --one-shop"
		}
		if r.Baskets {
			oneShop += " --baskets"
		}
		if r.Reservations {
			oneShop += " --reservations"
		}
		fmt.Fprintf(s.out, "\n  %s\n  loadtest step %s %s%s\n\n", found.Sentence(), r.Strategy, found.Schedule, oneShop)
		schedule.Draw(s.out, found, widthOf(s.out))
		fmt.Fprintln(s.out)
	}
	for _, once := range r.Found.Once {
		fmt.Fprintf(s.out, "  not seen again: %s\n", once)
	}
	if r.Starved > 0 {
		fmt.Fprintf(s.out, "  seen and not judged: %s in which a renewal came after its lease\n", schedule.Plural(r.Starved, "run"))
	}
	for _, place := range r.Found.Unreached {
		fmt.Fprintf(s.out, "  one run came there, and no other: %s\n", place)
	}
	for _, surprise := range r.Surprises {
		fmt.Fprintf(s.out, "  !! %s\n", surprise)
	}
}
