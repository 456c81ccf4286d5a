package exercise

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/declared"
)

// Bounds of what a pupil's code may do in one run.
const (
	maxSteps   = 250
	maxSilence = 8 * time.Second // of the shops: what the checker itself does in between has no bound
)

// failure ends a check: the code goes on without end, or says nothing.
type failure struct {
	cause verdict.Cause
	said  words.Text
}

func (f failure) Error() string { return f.said.String() }

// Is makes a confirmation take a schedule that ends in a failure for one that cannot be played.
func (f failure) Is(target error) bool { return target == explore.ErrCannot }

// player plays schedules of an answer on a stage. It ends a run that sends too much or says nothing.
type player struct {
	*step.Shops
	exercise Exercise
	oneShop  bool
	silence  time.Duration // for which a sale may send nothing
}

// Play plays one run.
func (p player) Play(ctx context.Context, plan step.Plan, choose func() explore.Chooser) (schedule.Record, error) {
	plan.MaxSteps, plan.MaxSilence = maxSteps, p.silence
	record, err := p.Shops.Play(ctx, plan, choose)
	unheld, loose := errors.AsType[step.UnheldError](err)
	switch {
	case loose:
		return record, failure{verdict.WithoutContext, words.Of("exercise.without-context", "server", unheld.Server)}
	case errors.Is(err, step.ErrEndless):
		return record, failure{verdict.TooManyRequests, words.Why(err)}
	case errors.Is(err, step.ErrSilent) && !errors.Is(err, explore.ErrGivenUp):
		return record, failure{verdict.TooSilent, words.Of("exercise.silent", "time", p.silence.String())}
	}
	if i := slices.IndexFunc(record.Entries, func(e schedule.Entry) bool { return e.Server == labmode.RedisServer && e.Choice.IsStep() }); p.exercise.WithoutRedis && i >= 0 {
		return record, failure{verdict.Locked, words.Of("exercise.locked", "who", record.Entries[i].Customer, "sent", record.Entries[i].Sent)}
	}
	return p.judged(record), err
}

// playText plays a schedule in which a customer alone stands for its next step. What cannot be chosen is
// left out: the code does without it.
func (p player) playText(ctx context.Context, strategy, text string) (schedule.Record, error) {
	moves := strings.Fields(text)
	plan := step.Plan{Strategy: strategy, Customers: 2, MaxEvents: len(moves), Everything: true, Observe: true}
	if slices.Contains(moves, "C") {
		plan.Customers = 3
	}
	for _, word := range moves {
		event, _, _ := strings.Cut(word, ":")
		if len(word) > 1 && !slices.Contains(plan.Events, schedule.Event(event)) {
			plan.Events = append(plan.Events, schedule.Event(event))
		}
	}
	return p.Play(ctx, plan, func() explore.Chooser {
		left := moves
		return func(n explore.Next) (int, error) {
			for len(left) > 0 {
				word := left[0]
				left = left[1:]
				i := slices.IndexFunc(n.Options, func(o explore.Option) bool {
					return o.Choice.String() == word || o.Choice.IsStep() && o.Choice.Customer.String() == word
				})
				if i >= 0 {
					return i, nil
				}
			}
			return n.ByDefault(), nil
		}
	})
}

// PlaySchedule plays a schedule as loadtest step does. It waits for a free slot as long as it takes.
func (p player) PlaySchedule(ctx context.Context, strategy string, customers int, order schedule.Schedule) (schedule.Record, error) {
	plan := step.Plan{Strategy: strategy, Customers: customers, Sales: schedule.Sales{OneShop: p.oneShop}}.Following(order)
	return p.Play(ctx, plan, func() explore.Chooser { return explore.Follow(order) })
}

// judged is the record with a cause of its own, where the exercise asks for more than any strategy is to do.
func (p player) judged(r schedule.Record) schedule.Record {
	if cause, _ := p.asked(r); cause != "" && !r.Outcome.Bad() {
		r.Outcome.Verdict, r.Outcome.Cause = verdict.Kind(cause), cause
	}
	return r
}

func (p player) asked(r schedule.Record) (verdict.Cause, words.Text) {
	if cause, said := p.unlocked(r); cause != "" {
		return cause, said
	}
	return p.unresolved(r)
}

// verdict is that on a run that failed.
func (p player) verdict(r schedule.Record) Verdict {
	return Verdict{Cause: r.Outcome.Cause, Said: p.say(r), Record: &r, OneShop: p.oneShop}
}

// say is why a run failed.
func (p player) say(r schedule.Record) words.Text {
	switch cause, said := p.asked(r); {
	case r.Outcome.Cause == cause:
		return said
	case r.Outcome.Cause == verdict.Crash && p.Panic() != "":
		return words.Of("exercise.panic", "said", r.Sentence(), "panic", p.Panic())
	}
	return r.Sentence()
}

// unlocked finds a customer who bought without a request to Redis, where the database is to compare the token of a
// lock. There is no holder whom it could refuse.
func (p player) unlocked(r schedule.Record) (verdict.Cause, words.Text) {
	if !p.exercise.Properties.Has.Includes(declared.AtomicLease | declared.StorageChecked) {
		return "", words.Text{}
	}
	for customer, answer := range r.Outcome.Answers {
		asked := slices.ContainsFunc(r.Entries, func(e schedule.Entry) bool {
			return e.Server == labmode.RedisServer && e.Choice.IsStep() && e.Choice.Customer.String() == customer
		})
		if answer == string(load.Sold) && !asked {
			return verdict.Unlocked, words.Of("exercise.unlocked", "who", customer)
		}
	}
	return "", words.Text{}
}

// unresolved finds a customer whose order stands, and who was answered that this is not known, although
// MySQL could be asked. Where two answers were lost, the second one may be that of the look.
func (p player) unresolved(r schedule.Record) (verdict.Cause, words.Text) {
	lost := 0
	for _, c := range r.Played {
		if c.Event == schedule.Lose {
			lost++
		}
	}
	if lost > 1 {
		return "", words.Text{}
	}
	for _, o := range r.Outcome.Orders {
		if p.exercise.LooksUp && r.Outcome.Answers[o.Customer] == string(load.Unknown) {
			return verdict.Unresolved, words.Of("exercise.unresolved", "who", o.Customer)
		}
	}
	return "", words.Text{}
}

// StepCommand is the command of a program that plays the schedule of v.Record again, with the shop's program as one more flag. It is empty where the
// command would say that it held: it does not ask what only the exercise asks.
func (v Verdict) StepCommand(program string) string {
	switch {
	case v.Cause == verdict.Unlocked || v.Cause == verdict.Unresolved:
		return ""
	case v.OneShop:
		return v.Record.Command(program, "one-shop")
	}
	return v.Record.Command(program, "")
}
