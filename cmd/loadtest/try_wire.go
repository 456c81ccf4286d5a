package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/mistakes"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/survey"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
)

// task is what is played of a part, with a share of the time.
type task struct {
	part, what string
	play       func(until time.Time) error
	short      bool // it needs no time: its result is known
}

// atTheWire plays sales request by request, where the requests of the service can be seen.
func (t *try) atTheWire(ctx context.Context) {
	parts := slices.DeleteFunc([]string{"explore", "faults"}, func(part string) bool { return !slices.Contains(t.wanted(), part) })
	if t.Step != "" {
		parts = []string{"step"}
	}
	var on *step.Service
	opened := func() (err error) {
		if on == nil {
			t.progress("looking for a lease and for what renews it")
			on, err = step.OpenService(ctx, t.on, t.probe)
		}
		return err
	}
	var tasks []task
	for _, part := range parts {
		if why := t.unplayable(); why != "" {
			t.add(report.TriedPart{Part: part, Verdict: verdict.Skipped, Reason: why})
			continue
		}
		t.part(ctx, part, "", func() error {
			if err := opened(); err != nil {
				return err
			}
			tasks = append(tasks, map[string]func(context.Context, *step.Service) []task{"explore": t.explore, "faults": t.faults, "step": t.step}[part](ctx, on)...)
			return nil
		})
	}
	if on == nil {
		return
	}
	if ends := on.Ends(); len(ends) > 0 {
		fmt.Fprintf(t.out, "keys that end, and are no lock: %s\n", strings.Join(ends, ", "))
	}
	if leases, renewed := on.Leases(); leases {
		fmt.Fprintf(t.out, "a lock with a lease, %s\n", map[bool]string{true: "which is renewed: it ends only where its process is stopped, or its renewals are withheld", false: "which " + on.NotRenewed()}[renewed])
	}
	for i, each := range tasks {
		long := slices.DeleteFunc(slices.Clone(tasks[i:]), func(t task) bool { return t.short })
		left := time.Until(t.until)
		share := min(left, 2*left/time.Duration(max(len(long), 1))) // most parts need less than an even one
		t.part(ctx, each.part, each.what, func() error { return each.play(time.Now().Add(share)) })
	}
}

// unplayable says why the service cannot be played request by request, empty where it can.
func (t *try) unplayable() string {
	switch {
	case len(t.probe.Unseen) > 0:
		return "its requests are not all seen: " + strings.Join(t.probe.Unseen, "; ")
	case t.file.Excludes():
		return "it is one process, which can keep its own customers apart: only contention says something"
	}
	return ""
}

// step plays one schedule, and prints all requests.
func (t *try) step(ctx context.Context, on *step.Service) []task {
	return []task{{part: "step", play: func(time.Time) error {
		t.progress("%s; a lease ends in its own time", t.order)
		on.Spare(t.Spare)
		record, err := on.InTime(ctx, "", 2, t.order)
		t.moving("")
		if err == nil {
			err = explore.Followed(t.order, record)
		}
		if errors.Is(err, explore.ErrCannot) {
			t.mistake = fmt.Errorf("--step: %w", err)
		}
		if err != nil {
			return err
		}
		schedule.Print(t.out, words.English, record)
		part := report.TriedPart{Part: "step", Verdict: record.Outcome.Verdict, Reason: strings.TrimPrefix(record.Sentence().String(), string(record.Outcome.Verdict)+": "), Record: &record}
		if why := record.Undecided(); why != "" {
			part.Verdict, part.Reason = verdict.Invalid, "it decides nothing: "+why
		}
		t.add(part)
		return nil
	}}}
}

// explore plays every order of two sales, and those in which a lease ends; and orders of three, where those have
// shown nothing bad.
func (t *try) explore(ctx context.Context, on *step.Service) (tasks []task) {
	search := func(customers int, events ...schedule.Event) task {
		what := searched[""]
		if customers > 2 {
			what = fmt.Sprintf("orders of three sales with at most %d switches", survey.ThreeSwitches)
		}
		for _, e := range events {
			what += searched[e]
		}
		if slices.Contains(events, schedule.Wait) && !on.Unrenewed() {
			what = searched[""] + ", while a key of one ends that is no lock"
		}
		return task{part: "explore", what: what, play: func(until time.Time) error {
			search := explore.Search{FirstBad: t.Fast, Enough: func() bool { return time.Now().After(until) }}
			if customers > 2 {
				if slices.ContainsFunc(t.parts, func(p report.TriedPart) bool { return p.Part == "explore" && p.Record != nil }) {
					return nil // two have shown what fails
				}
				search.Switches = survey.ThreeSwitches
			}
			return t.search(ctx, on, on.Plan(customers, events...), what, search)
		}}
	}
	tasks = []task{search(2)}
	_, renewed := on.Leases()
	if on.Unrenewed() || len(on.Ends()) > 0 {
		tasks = append(tasks, search(2, schedule.Wait))
	}
	if len(t.on.Processes) > 2 {
		defer func() { tasks = append(tasks, search(3)) }()
	}
	switch {
	case !renewed:
		return tasks
	case on.Lease() > step.LongestSearched:
		t.add(report.TriedPart{Part: "explore", Verdict: verdict.Skipped, Reason: fmt.Sprintf(
			"every order of two sales, while the lease of one ends: it is renewed, and ends in its own time, which %s are too long for: give it at most %s in start.env",
			on.Lease().Round(time.Second), step.LongestSearched)})
		return tasks
	}
	// A renewed lease ends only where its process is stopped, or its renewals are withheld. The process can
	// notice that by its clock.
	return append(tasks, search(2, schedule.Pause), search(2, schedule.Withhold))
}

// searched says what a search is of, by its event.
var searched = map[schedule.Event]string{
	"":                "every order of two sales",
	schedule.Wait:     ", while the lease of one ends",
	schedule.Pause:    ", while the process of one is stopped for a lease",
	schedule.Withhold: ", while the renewals of one are withheld for a lease",
}

func (t *try) search(ctx context.Context, on *step.Service, plan step.Plan, what string, search explore.Search) error {
	early := slices.Contains(plan.Events, schedule.Wait) // leases are ended early
	again := explore.Replayer(on.PlaySchedule)
	if slices.Contains(plan.Events, schedule.Pause) || slices.Contains(plan.Events, schedule.Withhold) {
		plan.Early, plan.Late, again = false, true, on.InTime // who polls meanwhile does that by a clock
	}
	found, err := explore.Explore(ctx, plan.On(on), search, func(done, left int) { t.progress("%s: %d played, %d known to be left", what, done, left) })
	t.progress("%s: playing the shortest once more", what)
	err = errors.Join(err, explore.Confirm(ctx, again, &found))
	t.moving("")
	if err != nil && found.Bad == 0 {
		return err
	}
	bad, decided := found.Repeated(), found.Decided()
	part := report.TriedPart{Part: "explore", Verdict: verdict.Held, Bad: found.Bad}
	played(&part, what, "schedule", decided)
	if unplayed := found.Unplayed(); !early && len(unplayed) > 0 { // their records show what came to pass
		bad = append(bad, unplayed...)
		part.Reason += "; not all were played again"
	}
	if err != nil && ctx.Err() == nil {
		part.Reason += "; " + firstLine(err)
	}
	only := "" // what was bad only where a lease was ended early
	for _, record := range bad {
		if early {
			t.progress("%s: once more, and the lease ends in its own time", what)
			again, err := on.InTime(ctx, record.Strategy, record.Customers, record.Schedule)
			t.moving("")
			if ctx.Err() != nil {
				break
			}
			if err != nil || !again.Outcome.Bad() {
				why := again.Sentence().String()
				if err != nil {
					why = firstLine(err)
				}
				only = fmt.Sprintf("; %s is bad where the lease is ended early, and not in its own time: %s: give the lock a shorter lease in start.env, or the service longer timeouts", record.Schedule, why)
				continue
			}
			record = again
		}
		t.draw(record)
		if part.Record == nil {
			part.Record, part.Verdict = &record, record.Outcome.Verdict
		}
	}
	switch {
	case ctx.Err() != nil:
		part.Reason += cutShort
	case search.FirstBad && found.Bad > 0 && part.Record == nil: // it is no finding after all: others may be
		search.FirstBad = false
		return t.search(ctx, on, plan, what, search)
	}
	switch {
	case part.Record != nil:
	case ctx.Err() != nil:
		part.Verdict = verdict.Invalid
	case only != "":
		part.Verdict, part.Reason = verdict.Invalid, part.Reason+only
	default:
		part.Verdict, part.Reason = withoutFinding(found, plan.Customers, what, part.Reason)
	}
	t.add(part)
	return nil
}

// withoutFinding rules on a search that has no finding.
func withoutFinding(found explore.Found, customers int, what, played string) (verdict.Kind, string) {
	held := found.Decided().Held()
	switch unknown := found.Unknown(); {
	case !unknown.IsZero():
		return verdict.Invalid, unknown.String()
	case found.Bad > 0:
		return verdict.Invalid, played + "; none of them ended alike when it was played again"
	case found.Runs == 0 && customers > 2:
		return verdict.Inapplicable, what + ": left out, since time was up: see --for"
	case found.Runs == 0:
		return verdict.Invalid, "nothing could be played in the time: see --for"
	case found.Limited() && customers > 2 && held:
		return verdict.Held, played + "; the rest is left out, since time was up: see --for"
	case found.Limited():
		return verdict.Invalid, played + "; not all, since time was up: see --for"
	case !held:
		return verdict.Invalid, played
	}
	return verdict.Held, played
}

// played adds to a part how many places or schedules were played, how many were bad, and why some decided nothing.
func played(p *report.TriedPart, what, of string, decided schedule.Decided) {
	p.Schedules, p.Undecided = decided.Runs, decided.Undecided
	p.Reason = fmt.Sprintf("%s: %s, %d bad", what, schedule.Plural(int64(p.Schedules), of), p.Bad)
	if why := decided.String(); why != "" {
		p.Reason += ", " + why
	}
}

// firstLine is an error without the last words of a process.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// draw prints a bad schedule, and what mends it.
func (t *try) draw(record schedule.Record) {
	fmt.Fprintf(t.out, "\n  %s\n", record.Sentence().String())
	if page := mendedAt(record.Outcome.Cause); page != "" {
		fmt.Fprintf(t.out, "  what mends it: %s\n", page)
	}
	fmt.Fprintf(t.out, "  %s\n\n", t.replay(record))
	schedule.Draw(t.out, words.English, record, widthOf(t.out))
	fmt.Fprintln(t.out)
}

// replay is the command that plays a record again.
func (t *try) replay(r schedule.Record) string {
	order := r.Schedule
	if r.Customers > order.Customers() { // a third one is named by its first step
		last := slices.IndexFunc(r.Played, func(c schedule.Choice) bool { return c.Customer == schedule.Customers(r.Customers)[r.Customers-1] })
		order = r.Played[:last+1]
	}
	spare := ""
	if r.Outcome.Stock >= int64(r.Customers) {
		spare = " --spare"
	}
	return fmt.Sprintf("%s try %s --step %s%s", program(), quoted(t.File), quoted(order.String()), spare)
}

// mendedAt is the address of the section that mends a cause, empty where none does.
func mendedAt(cause verdict.Cause) string { return mistakes.Section(cause.Mends(), "en") }
