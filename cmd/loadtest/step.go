package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/declared"
)

type stepCommand struct {
	Strategy string   `arg:"" help:"A strategy of the shop: see loadtest list strategies."`
	Schedule []string `arg:"" optional:"" help:"Steps and events in their order, such as: A.select B.select. What it does not list runs customer by customer to the end. Without one, on a terminal, you choose step by step."`

	Customers     int  `default:"0" min:"0" max:"3" help:"How many buy, with one unit less in stock. 0 for as many as the schedule names, two at least."`
	Transcript    bool `help:"Print the run as terminals with redis-cli and mysql."`
	Draw          bool `help:"Print one column for each customer instead of the requests."`
	NoTimes       bool `help:"Leave out of --draw what differs from run to run: times, random owners, tokens."`
	stageSettings `embed:""`
	outputs       `embed:"" set:"forms=.json, with all requests, answers and observations"`
}

// Help is shown under the flags.
func (*stepCommand) Help() string {
	var b strings.Builder
	b.WriteString("A step is a customer and a command, with a number from the second time on: A.set, A.get2, A.release for a script.\n\nEvents:\n\n")
	for i, form := range schedule.EventForms() {
		event, _, _ := strings.Cut(form, ":")
		fmt.Fprintf(&b, "    %-11s %s\n", schedule.EventForms()[i], schedule.Event(event).Doc(words.English))
	}
	b.WriteString("\nExamples:\n\n" +
		"    loadtest step none A.select B.select\n" +
		"    loadtest step set-ex-nx A.set A.select wait B.set B.select --draw\n" +
		"    loadtest step reentrant A.acquire A.select pause:A B.acquire --transcript\n")
	return b.String()
}

func (c *stepCommand) Run(ctx context.Context, s streams) error {
	plan, n, err := c.plan()
	if err == nil {
		err = c.check(".json")
	}
	if err != nil {
		return err
	}
	shop, of, err := askShop(ctx, c.shopSettings, s, func(shop *catalog.Catalog) (of declared.Strategy, err error) {
		if of, err = shop.Any(c.Strategy); err != nil {
			return of, usage("%w", err)
		}
		if c.As, err = c.as(of); err != nil {
			return of, err
		}
		switch why := step.Unplayable(of); {
		case c.As == asReservations && (c.Customers == 2 || len(plan.Events()) > 0):
			return of, usage("reservations are of three customers, the last of whom sweeps, and without an event")
		case !why.IsZero():
			return of, usage("%s cannot be stepped through: %s", of.Name, why)
		}
		return of, nil
	})
	if err != nil {
		return err
	}
	defer shop.Close()
	opened, err := c.open(ctx, s, shop, 1, of)
	if err != nil {
		return err
	}
	defer opened.Close()
	switch why, err := opened.Lacks(ctx, of); {
	case err != nil:
		return err
	case !why.IsZero():
		return usage("%s cannot be stepped through here: it %s", of.Name, why)
	}
	on := step.As{Shops: opened, Sales: salesOf(c.As)}
	if c.As == asReservations {
		n, c.Customers = schedule.MaxCustomers, schedule.MaxCustomers
	}
	if len(plan) == 0 && isTerminal(s.out) && isTerminal(os.Stdin) {
		return c.interact(ctx, s, on, max(n, 2))
	}
	return c.play(ctx, s, on)
}

// plan is the schedule, and how many customers buy.
func (c *stepCommand) plan() (schedule.Schedule, int, error) {
	plan, err := schedule.Parse(strings.Join(c.Schedule, " "))
	if err != nil {
		return nil, 0, usage("%w", err)
	}
	switch {
	case c.Customers == 1:
		return nil, 0, usage("--customers is 1: want 2 or 3")
	case c.Transcript && (c.Draw || c.NoTimes):
		return nil, 0, usage("want --transcript or --draw, which --no-times is of")
	}
	n := c.Customers
	if n == 0 {
		n = plan.Customers()
	}
	if plan.Customers() > n {
		return nil, 0, usage("the schedule needs %d customers, and --customers is %d", plan.Customers(), n)
	}
	return plan, n, nil
}

// play plays the schedule on a stage, and shows what happened.
func (c *stepCommand) play(ctx context.Context, s streams, on step.As) error {
	plan, n, err := c.plan()
	if err != nil {
		return err
	}
	record, err := on.PlaySchedule(ctx, c.Strategy, n, plan)
	switch {
	case errors.Is(err, explore.ErrCannot):
		return usage("%w", err)
	case err != nil:
		return err
	}
	return c.show(s, on, record)
}

func (c *stepCommand) show(s streams, on step.As, record schedule.Record) error {
	people, shown := c.beside(s), record
	switch {
	case c.Transcript:
		schedule.Transcript(people.out, s.in(), record, on.Script)
		return c.writeJSON(s, record)
	case c.Draw || c.NoTimes:
		if c.NoTimes {
			shown = record.WithoutTimes()
		}
		schedule.Draw(people.out, s.in(), shown, widthOf(people.out))
	default:
		schedule.Print(people.out, s.in(), record)
	}
	fmt.Fprintln(people.out, s.in().Say(shown.Sentence()))
	fmt.Fprintln(people.out, record.Command(program(), c.As)+c.again())
	return c.writeJSON(s, record)
}

// interact lets a person choose. No sale waits for the person: each choice plays the schedule so
// far on a fresh item.
func (c *stepCommand) interact(ctx context.Context, s streams, on step.As, n int) error {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- strings.TrimSpace(in.Text())
		}
	}()
	var plan schedule.Schedule
	for {
		position, err := on.Position(ctx, c.Strategy, n, plan)
		if errors.Is(err, explore.ErrCannot) {
			fmt.Fprintln(s.out, err)
			plan = plan[:len(plan)-1]
			continue
		}
		if err != nil {
			return err
		}
		schedule.Draw(s.out, s.in(), position.Record, widthOf(s.out))
		if position.Ended {
			fmt.Fprintln(s.out, s.in().Say(position.Sentence()))
		}
		fmt.Fprintln(s.out, schedule.Record{Strategy: c.Strategy, Schedule: plan, Customers: n}.Command(program(), c.As)+c.again())
		for i, option := range position.Options {
			fmt.Fprintf(s.out, "  %d %s", i+1, option)
		}
		fmt.Fprint(s.out, "  "+s.say("step.ask"))
		var line string
		var more bool
		select {
		case line, more = <-lines:
		case <-ctx.Done():
			c.unwritten(s)
			return context.Cause(ctx)
		}
		if !more || line == "q" {
			fmt.Fprintln(s.out)
			c.unwritten(s)
			return nil
		}
		plan = c.choose(s, position, plan, line)
		if line == "e" {
			record, err := on.PlaySchedule(ctx, c.Strategy, n, plan)
			if err != nil {
				return err
			}
			return c.show(s, on, record)
		}
	}
}

// unwritten says that the files of a person who leaves were not written.
func (c *stepCommand) unwritten(s streams) {
	if len(c.Out) > 0 {
		fmt.Fprintln(s.err, s.say("step.unwritten", "files", strings.Join(c.Out, ", ")))
	}
}

// choose returns the schedule after a line that a person typed.
func (c *stepCommand) choose(s streams, at step.Position, plan schedule.Schedule, line string) schedule.Schedule {
	if line == "u" {
		return plan[:max(len(plan)-1, 0)]
	}
	if i, err := strconv.Atoi(line); err == nil {
		if i >= 1 && i <= len(at.Options) {
			return append(plan, at.Options[i-1])
		}
		fmt.Fprintln(s.out, s.say("step.want", "n", len(at.Options)))
		return plan
	}
	if line == "" || line == "e" {
		return plan
	}
	more, err := schedule.Parse(line)
	if err != nil {
		fmt.Fprintln(s.out, err)
		return plan
	}
	return append(plan, more...)
}
