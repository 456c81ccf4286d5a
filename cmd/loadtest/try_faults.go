package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/report"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/wire"
)

// tryFaults are those that need no point inside of the service.
var tryFaults = []struct {
	event    schedule.Event
	name     string
	redis    bool // it breaks Redis alone
	lease    bool // it ends a lease
	renewals bool // it holds renewals
}{
	{event: schedule.Kill, name: "kill -9 of a process"},
	{event: schedule.Lose, name: "a connection cut before the answer"},
	{event: schedule.Pause, name: "a process stopped while its lease ends", redis: true, lease: true},
	{event: schedule.Withhold, name: "the renewals of a process withheld while its lease ends", redis: true, lease: true, renewals: true},
	{event: schedule.FlushAll, name: "FLUSHALL", redis: true},
	{event: schedule.Evict, name: "Redis evicts what a sale keeps there", redis: true},
	{event: schedule.Restart, name: "Redis is killed and starts again without its data", redis: true},
	{event: schedule.Failover, name: "Redis dies, and a replica without its last writes takes over", redis: true},
}

// faults breaks one sale behind each of its requests, lets another customer buy, and then the first one go
// on.
func (t *try) faults(ctx context.Context, on *step.Service) (tasks []task) {
	leases, renewed := on.Leases()
	asked := slices.ContainsFunc(t.probe.Sold, func(s schedule.Sent) bool { return s.Server == wire.Redis })
	for _, f := range tryFaults {
		why := ""
		switch {
		case f.redis && !asked:
			why = "a sale never asks Redis"
		case f.lease && !leases:
			why = "a sale keeps no lock in Redis that ends by itself"
		case f.renewals && !renewed:
			why = on.NotRenewed() + " its lease"
		}
		if why != "" {
			tasks = append(tasks, task{part: "faults", short: true, play: func(time.Time) error {
				t.add(report.TriedPart{Part: "faults", Verdict: verdict.Inapplicable, Reason: f.name + ": " + why})
				return nil
			}})
			continue
		}
		tasks = append(tasks, task{part: "faults", what: f.name, play: func(until time.Time) error { t.fault(ctx, on, f.event, f.name, until); return nil }})
	}
	return append(tasks, task{part: "faults", what: outwaited, play: func(until time.Time) error { return t.outwait(ctx, on, until) }})
}

const (
	outwaited = "a wait for the lock that ends before its holder goes on"
	cutShort  = "; not all, since it was interrupted"
)

// outwait holds one sale behind each of its requests until the other one waits for its lock no more. A service may fail
// then: the lab made it wait.
func (t *try) outwait(ctx context.Context, on *step.Service, until time.Time) error {
	part := report.TriedPart{Part: "faults", Verdict: verdict.Held}
	if unended := t.probe.Unended(); len(unended) > 0 { // they would end while their holder is held
		part.Verdict, part.Reason = verdict.Inapplicable, outwaited+": "+strings.Join(unended, "; ")
		t.add(part)
		return nil
	}
	var decided schedule.Decided
	short, outlasted := "", false
	for steps := 1; steps <= len(t.probe.Sold) && part.Record == nil && short == "" && !outlasted; steps++ {
		if time.Now().After(until) {
			short = "; not all, since time was up: see --for"
			break
		}
		t.progress("%s, after %d of %d requests", outwaited, steps, len(t.probe.Sold))
		record, err := on.Outwait(ctx, steps)
		t.moving("")
		switch {
		case ctx.Err() != nil:
			short = cutShort
		case errors.Is(err, step.ErrOutlasted):
			outlasted = true
		case errors.Is(err, step.ErrUnmet), err == nil && record.Outcome.Verdict == verdict.Crashed:
		case err != nil:
			decided.Fail(fmt.Sprint(steps), firstLine(err))
		default:
			if decided.Add(record); record.Outcome.Bad() {
				part.Bad, part.Record, part.Verdict = 1, &record, record.Outcome.Verdict
				t.draw(record)
			}
		}
	}
	played(&part, outwaited, "place", decided)
	switch {
	case part.Record != nil:
	case outlasted && decided.Undecided > 0:
		part.Verdict, part.Reason = verdict.Invalid, part.Reason+"; "+step.ErrOutlasted.Error()
	case outlasted:
		part.Verdict, part.Reason = verdict.Inapplicable, outwaited+": "+step.ErrOutlasted.Error()
	case short != "":
		part.Verdict, part.Reason = verdict.Invalid, part.Reason+short
	case decided.Runs == 0:
		part.Verdict, part.Reason = verdict.Inapplicable, outwaited+": no sale goes on when its wait is over"
	case !decided.Held():
		part.Verdict = verdict.Invalid
	}
	t.add(part)
	return nil
}

func (t *try) fault(ctx context.Context, on *step.Service, event schedule.Event, name string, until time.Time) {
	part := report.TriedPart{Part: "faults", Verdict: verdict.Held}
	var decided schedule.Decided
	_, renewed := on.Leases()
	first, short := 0, ""
	if event == schedule.Kill || event.Forgets() {
		first = 1
	}
	places := len(t.probe.Sold) + 1 - first
	rounds := 1
	if event.Forgets() && on.KeepsStock() {
		rounds = 2 // the second one with a unit more
	}
	defer on.Spare(false)
	slow := event == schedule.Pause || event == schedule.Withhold // each takes a lease
	for i := range rounds * places {
		steps := first + i%places
		on.Spare(i >= places)
		if time.Now().After(until) {
			short = "; not all, since time was up: see --for"
			break
		}
		t.progress("%s, after %d of %d requests", name, steps, len(t.probe.Sold))
		record, err := on.Fault(ctx, event, steps, renewed)
		t.moving("")
		switch {
		case errors.Is(err, step.ErrUnmet):
			continue
		case err != nil && ctx.Err() == nil:
			decided.Fail(fmt.Sprint(steps), firstLine(err))
			continue
		}
		if ctx.Err() != nil {
			short = cutShort
			break
		}
		if event == schedule.Pause && !renewed && record.Outcome.Bad() { // the lease was ended early
			if record, err = on.InTime(ctx, record.Strategy, record.Customers, record.Schedule); ctx.Err() != nil {
				short = cutShort
				break
			}
			if err != nil || !record.Outcome.Bad() {
				why := "it is bad where the lease is ended early, and not in its own time"
				if err != nil {
					why += ": " + firstLine(err)
				}
				decided.Fail(fmt.Sprint(steps), why)
				continue
			}
		}
		if decided.Add(record); !record.Outcome.Bad() {
			continue
		}
		if part.Bad++; part.Record == nil {
			part.Record, part.Verdict = &record, record.Outcome.Verdict
			t.draw(record)
		}
		if slow || t.Fast {
			name += " (to the first)"
			break
		}
	}
	played(&part, name, "place", decided)
	part.Reason += short
	switch {
	case part.Record != nil:
	case decided.Runs == 0 && short == "":
		part.Verdict, part.Reason = verdict.Invalid, name+": it met nothing"
	case short != "", !decided.Held():
		part.Verdict = verdict.Invalid
	}
	t.add(part)
}
