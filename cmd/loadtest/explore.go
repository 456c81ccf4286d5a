package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/alecthomas/kong"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/cells"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/survey"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/declared"
)

type exploreCommand struct {
	Strategies []string `arg:"" name:"strategy" help:"Strategies of the shop, or all."`

	Events    []string `placeholder:"EVENT" help:"What may happen once in a run, at every possible place: some of wait, forget, lose, pause, kill, cut, lag, failover, flushall, all, or none. Each is explored by itself."`
	Customers *int     `placeholder:"N" min:"2" max:"3" help:"How many buy, with one unit less in stock. Without it 2, and 3 where a third one can decide."`
	Switches  *int     `placeholder:"N" min:"0" max:"20" help:"How often a run may interrupt a customer who could go on. 0 for no limit. Without it no limit for two customers, and 4 for three."`
	Judge     bool     `help:"For authors of a lock: compare what the strategy declares with this and its scenarios. Each property agrees, contradicts, or is not decided."`
	Scenarios bool     `default:"true" negatable:"" help:"With --judge: run the scenarios, too."`

	stageSettings `embed:""`
	outputs       `embed:"" set:"forms=.json"`
}

// Help is shown under the flags.
func (*exploreCommand) Help() string {
	return `Runs every order of the requests once, on real servers, and prints for each cause the shortest schedule that
fails, played once more. Orders that differ only in independent steps count as one.

Without --events, --customers and --as one-shop it plays what the strategy's properties call for: two customers under
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
    loadtest explore fenced --as baskets
    loadtest explore reservation --as reservations
    loadtest explore locks-unsorted --events kill --customers 2 --switches 1
    loadtest explore all --events wait,kill
    loadtest explore set-ex-nx --judge                  # is what it declares true?
    loadtest explore fenced --judge --as baskets

Exit codes: 0 what the strategies' properties let expect, 1 a surprise, a property that something contradicts, or a search
whose runs could not be played.`
}

func (c *exploreCommand) Run(ctx context.Context, s streams, parsed *kong.Context) error {
	other := among([]string{"events", "customers", "switches"}, parsed)
	switch err := c.check(".json"); {
	case err != nil:
		return err
	case c.Judge && other != "":
		return usage("--judge plays what the properties call for: want it without %s", other)
	case c.Judge && c.As != "" && c.As != asBaskets:
		return usage("--judge plays %s anyway: --as is for baskets there", c.As)
	case !c.Judge && !c.Scenarios:
		return usage("--no-scenarios is for --judge")
	}
	shop, strategies, err := askShop(ctx, c.shopSettings, s, c.chosen)
	if err != nil {
		return err
	}
	defer shop.Close()
	if c.Judge {
		return c.judge(ctx, s, shop, strategies[0])
	}
	on, err := c.open(ctx, s, shop, 0, strategies...)
	if err != nil {
		return err
	}
	defer on.Close()
	return c.search(ctx, s, on, strategies)
}

// chosen are the strategies to explore.
func (c *exploreCommand) chosen(shop *catalog.Catalog) ([]declared.Strategy, error) {
	all := map[string][]declared.Strategy{"": shop.Strategies, asOneShop: shop.Strategies, asBaskets: shop.Baskets, asReservations: shop.Reservations}
	strategies, err := cells.Named(c.Strategies, all[c.As], shop.Any)
	if err != nil {
		return nil, usage("%w", err)
	}
	if c.Judge && len(strategies) > 1 {
		return nil, usage("--judge is for one strategy")
	}
	for _, of := range strategies {
		if _, err := c.surveys(of); err != nil {
			return nil, err
		}
	}
	return strategies, nil
}

// search explores strategies on a stage, and shows what was found.
func (c *exploreCommand) search(ctx context.Context, s streams, on *step.Shops, strategies []declared.Strategy) error {
	people := c.beside(s)
	var results []survey.Result
	for _, st := range strategies {
		why, err := unplayable(ctx, on, st)
		if err == nil && !why.IsZero() {
			fmt.Fprintln(s.err, s.say("explore.skipped", "name", st.Name, "why", why))
			continue
		}
		var surveys []survey.Plan
		if err == nil {
			surveys, err = c.run(ctx, s, on, st, func(r survey.Result) {
				results = append(results, r)
				printResult(people, r, c.again())
			})
		}
		if err != nil && len(results) > 0 { // what was found stays
			unwritten := c.writeJSON(s, results)
			if ctx.Err() != nil {
				return cmp.Or(unwritten, errSurprised)
			}
			err = errors.Join(err, unwritten)
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(people.out, s.say("explore.left-out", "name", st.Name, "what", survey.LeftOut(s.in(), st, surveys)))
	}
	if len(results) == 0 {
		return errNoneExplored
	}
	return s.failed(slices.ContainsFunc(results, func(r survey.Result) bool { return len(r.Surprises) > 0 }), c.writeJSON(s, results))
}

var errNoneExplored = usage("none of these can be explored here")

// unplayable says why a strategy cannot be explored on a stage, empty where it can.
func unplayable(ctx context.Context, on *step.Shops, st declared.Strategy) (words.Text, error) {
	if why := step.Unplayable(st); !why.IsZero() {
		return why, nil
	}
	return on.Lacks(ctx, st)
}

// run explores a strategy under its surveys.
func (c *exploreCommand) run(ctx context.Context, s streams, on *step.Shops, st declared.Strategy, found func(survey.Result)) ([]survey.Plan, error) {
	surveys, err := c.surveys(st)
	for i := 0; err == nil && i < len(surveys); i++ {
		err = surveys[i].Run(ctx, on, progress(s), func(r survey.Result) {
			s.moving("")
			found(r)
		})
	}
	s.moving("")
	return surveys, err
}

// surveys are those of a strategy: what is asked for, or else what its properties call for.
func (c *exploreCommand) surveys(st declared.Strategy) (all []survey.Plan, err error) {
	as, err := c.as(st)
	usual := len(c.Events) == 0 && c.Customers == nil
	switch {
	case err != nil:
		return nil, err
	case as == asReservations && !usual:
		return nil, usage("%s sells to two customers and a sweep, without an event: want it without --events and --customers", st.Name)
	case as == asReservations:
		all = []survey.Plan{survey.OfReservations(st)}
	case usual && as == asBaskets:
		all = survey.DefaultOfBaskets(st)
	case usual && as == "":
		all = survey.Default(st)
	default:
		one := survey.Plan{Strategy: st.Name, Customers: max(given(c.Customers), 2), Sales: salesOf(as)}
		if one.Customers > 2 {
			one.Switches = survey.ThreeSwitches
		}
		if !slices.Equal(c.Events, []string{"none"}) {
			if one.Events, err = schedule.ParseEvents(c.Events); err != nil {
				return nil, usage("--events: %w, or none", err)
			}
		}
		all = []survey.Plan{one}
	}
	for i := range all {
		if c.Switches != nil {
			all[i].Switches = *c.Switches
		}
	}
	return all, nil
}

// progress shows on a terminal how far an exploration is.
func progress(s streams) func(survey.Result, int, int) {
	return func(r survey.Result, done, left int) {
		s.moving(s.say("explore.progress", "name", r.Strategy+s.say("comma")+s.in().Say(r.Name()), "done", done, "left", left))
	}
}

// printResult prints what was found, with the flags of a command that plays it again.
func printResult(s streams, r survey.Result, flags string) {
	fmt.Fprintln(s.out, resultLine(s, r))
	for _, found := range r.Found.Shortest {
		as := ""
		switch {
		case r.OneShop:
			as = asOneShop
		case r.Baskets:
			as = asBaskets
		case r.Reservations:
			as = asReservations
		}
		fmt.Fprintf(s.out, "\n  %s\n  %s\n\n", s.in().Say(found.Sentence()), found.Command(program(), as)+flags)
		schedule.Draw(s.out, s.in(), found, widthOf(s.out))
		fmt.Fprintln(s.out)
	}
	for _, once := range r.Found.Once {
		fmt.Fprintln(s.out, "  "+s.say("explore.once", "cause", string(once.Cause), "runs", once.Runs, "replays", once.Replays))
	}
	if r.Starved > 0 {
		fmt.Fprintln(s.out, "  "+s.say("explore.starved", "runs", r.Starved))
	}
	for _, place := range r.Found.Unreached {
		fmt.Fprintln(s.out, "  "+s.say("explore.unreached", "what", place))
	}
	printSurprises(s, s.out, r.Surprises)
}

func printSurprises(s streams, out io.Writer, surprises []words.Text) {
	for _, surprise := range surprises {
		fmt.Fprintf(out, "  !! %s\n", s.in().Say(surprise))
	}
}

func resultLine(s streams, r survey.Result) string {
	name := r.Strategy + s.say("comma") + s.in().Say(r.Name())
	if !r.Skipped.IsZero() {
		return s.say("explore.skipped", "name", name, "why", r.Skipped)
	}
	facts := []any{"name", name, "runs", r.Found.Runs, "bad", r.Found.Bad}
	if n := r.Found.Deadlocks; n > 0 {
		facts = append(facts, "deadlocks", n)
	}
	line := s.say("explore.result", facts...)
	if r.NotMet() {
		line += s.say("explore.not-met", "event", string(r.Event))
	}
	return line
}
