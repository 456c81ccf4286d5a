package exercise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/declared"
)

// Bounds of what a pupil's code may do in one run.
const (
	maxRequests = 200
	maxSilence  = 10 * time.Second
)

// failure ends a check: the code goes on without end, or says nothing.
type failure struct {
	cause verdict.Cause
	said  string
}

func (f failure) Error() string { return f.said }

// Is makes a confirmation take a schedule that ends in a failure for one that cannot be played.
func (f failure) Is(target error) bool { return target == step.ErrCannot }

// player plays schedules of an answer on a stage. It ends a run that sends too much or says nothing, and
// judges the others by more than a stage does: see [player.judge].
type player struct {
	*step.Shops
	exercise Exercise
	oneShop  bool
}

// Play plays one run of an exploration.
func (p player) Play(ctx context.Context, plan step.Plan, choose func() step.Chooser) (schedule.Record, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := failure{verdict.TooSilent, fmt.Sprintf("nothing was heard of the shops for %s: does the code wait for itself?", maxSilence)}
	alarm := time.AfterFunc(maxSilence, func() { cancel(silent) })
	defer alarm.Stop()
	heard := time.Now()
	return p.bounded(ctx, plan, func() step.Chooser {
		next := choose()
		return func(n step.Next) (int, error) {
			// A try that was begun anew after almost as long was as silent.
			if time.Since(heard) > maxSilence*3/4 {
				cancel(silent)
			}
			heard = time.Now()
			alarm.Reset(maxSilence)
			return next(n)
		}
	})
}

// bounded ends a run that sends too much. It does not make the run again: no lease explains so many requests.
func (p player) bounded(ctx context.Context, plan step.Plan, choose func() step.Chooser) (schedule.Record, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	record, err := p.Shops.Play(ctx, plan, func() step.Chooser {
		next := choose()
		return func(n step.Next) (int, error) {
			for c, sent := range n.Requests {
				if sent > maxRequests {
					cancel(failure{verdict.TooManyRequests, fmt.Sprintf("customer %s has sent more than %d requests in one sale", c, maxRequests)})
					return 0, context.Cause(ctx)
				}
			}
			return next(n)
		}
	})
	if cause := context.Cause(ctx); errors.As(cause, new(failure)) {
		return record, cause
	}
	if errors.Is(err, step.ErrEndless) {
		return record, failure{verdict.TooManyRequests, err.Error()}
	}
	return p.judged(record), err
}

// playText plays a schedule in which a customer alone stands for its next step. What cannot be chosen is
// left out: the code does without it.
func (p player) playText(ctx context.Context, strategy, text string) (schedule.Record, error) {
	words := strings.Fields(text)
	plan := step.Plan{Strategy: strategy, Customers: 2, MaxEvents: len(words), Everything: true, Observe: true}
	for _, word := range words {
		event, _, _ := strings.Cut(word, ":")
		if len(word) > 1 && !slices.Contains(plan.Events, schedule.Event(event)) {
			plan.Events = append(plan.Events, schedule.Event(event))
		}
	}
	return p.Play(ctx, plan, func() step.Chooser {
		left := words
		return func(n step.Next) (int, error) {
			for len(left) > 0 {
				word := left[0]
				left = left[1:]
				i := slices.IndexFunc(n.Options, func(o step.Option) bool {
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
	plan := step.Plan{Strategy: strategy, Customers: customers, OneShop: p.oneShop}.Following(order)
	return p.bounded(ctx, plan, func() step.Chooser { return step.Follow(order) })
}

// judged is the record with a cause of its own as its outcome, where [player.judge] finds one.
func (p player) judged(r schedule.Record) schedule.Record {
	if cause, _ := p.judge(r); cause != "" {
		r.Outcome.Verdict, r.Outcome.Cause = verdict.Kind(cause), cause
	}
	return r
}

// say is why a run failed.
func (p player) say(r schedule.Record) string {
	if cause, said := p.judge(r); cause != "" {
		return said
	}
	return r.Sentence()
}

// judge finds what is wrong with a run besides what its stage has found. What the shops answered comes
// first where a crash explains the rest, and last where it is the only thing.
func (p player) judge(r schedule.Record) (verdict.Cause, string) {
	if cause, said := p.crashed(r); cause != "" {
		return cause, said
	}
	if r.Outcome.Bad() && verdict.Cause(r.Outcome.Verdict) != r.Outcome.Cause {
		return "", ""
	}
	for _, rule := range []func(schedule.Record) (verdict.Cause, string){p.unlocked, p.unresolved, keptOut, turnedAway} {
		if cause, said := rule(r); cause != "" {
			return cause, said
		}
	}
	return "", ""
}

// crashed finds an answer that no sale should have.
func (p player) crashed(r schedule.Record) (verdict.Cause, string) {
	for _, c := range schedule.Customers(r.Customers) {
		answer := r.Outcome.Answers[c.String()]
		ended := answer == load.NoAnswer
		if slices.Contains(r.Played, schedule.Choice{Customer: c, Event: schedule.Kill}) || !ended && !strings.HasPrefix(answer, "500") {
			continue
		}
		said := fmt.Sprintf("customer %s was answered with %s", c, answer)
		if ended {
			said = fmt.Sprintf("the shop of customer %s ended by itself", c)
		}
		if why := p.Panic(); why != "" {
			said += ": " + why
		}
		return verdict.Crash, said
	}
	return "", ""
}

// unlocked finds a customer who bought without a request to Redis, where the database is to compare the token of a
// lock. There is no holder whom it could refuse.
func (p player) unlocked(r schedule.Record) (verdict.Cause, string) {
	if !p.exercise.Properties.Has.Includes(declared.AtomicLease | declared.StorageChecked) {
		return "", ""
	}
	for customer, answer := range r.Outcome.Answers {
		asked := slices.ContainsFunc(r.Entries, func(e schedule.Entry) bool {
			return e.Server == labmode.RedisServer && e.Choice.IsStep() && e.Choice.Customer.String() == customer
		})
		if answer == string(load.Sold) && !asked {
			return verdict.Unlocked, fmt.Sprintf("customer %s has bought without a lock: nobody was the holder whom the database has to refuse", customer)
		}
	}
	return "", ""
}

// unresolved finds a customer whose order stands, and who was answered that this is not known, although
// MySQL could be asked.
func (p player) unresolved(r schedule.Record) (verdict.Cause, string) {
	for _, o := range r.Outcome.Orders {
		if p.exercise.LooksUp && r.Outcome.Answers[o.Customer] == string(load.Unknown) {
			return verdict.Unresolved, fmt.Sprintf("customer %s was answered that the outcome is unknown, and the order stands: nobody looked for it", o.Customer)
		}
	}
	return "", ""
}

// keptOut finds a customer who was rejected as busy although units were left and nobody else lived who
// could have the lock.
func keptOut(r schedule.Record) (verdict.Cause, string) {
	sold := 0
	for _, o := range r.Outcome.Orders {
		if _, theirs := r.Outcome.Answers[o.Customer]; theirs {
			sold++
		}
	}
	if !r.Played.Has(schedule.Kill) || int64(sold) >= r.Outcome.Stock {
		return "", ""
	}
	for _, c := range schedule.Customers(r.Customers) {
		if r.Outcome.Answers[c.String()] == string(load.Busy) {
			return verdict.Prolonged, fmt.Sprintf("customer %s was rejected as busy after three leases, and the holder was dead: "+
				"its lock outlasted its lease, because somebody renews it", c)
		}
	}
	return "", ""
}

// turnedAway finds a customer who was neither answered as sold nor as sold out, although nothing but the
// steps of the sales happened.
func turnedAway(r schedule.Record) (verdict.Cause, string) {
	if len(r.Played.Events()) > 0 {
		return "", ""
	}
	for _, c := range schedule.Customers(r.Customers) {
		answer := r.Outcome.Answers[c.String()]
		if answer == string(load.Sold) || answer == string(load.SoldOut) {
			continue
		}
		for _, e := range r.Entries {
			if strings.Contains(e.Answer, "Deadlock found") {
				return verdict.Deadlock, fmt.Sprintf("customer %s was answered with %s: two sales waited for each other, and MySQL ended one of them at %s", c, answer, e.Choice)
			}
		}
		return verdict.TurnedAway, fmt.Sprintf("customer %s was answered with %s, and nothing had gone wrong", c, answer)
	}
	return "", ""
}

// StepCommand plays the schedule of v.Record again, with the shop's program as one more flag.
func (v Verdict) StepCommand() string {
	words := []string{"loadtest step mine"}
	if v.OneShop {
		words = append(words, "--one-shop")
	}
	if v.Record.Schedule.Customers() < v.Record.Customers {
		words = append(words, fmt.Sprintf("--customers %d", v.Record.Customers))
	}
	return strings.Join(append(words, cmp.Or(v.Record.Schedule.String(), "A."+firstStep(*v.Record))), " ")
}

// firstStep is the first step of a run: a schedule that lists nothing would ask what to do.
func firstStep(r schedule.Record) string {
	i := slices.IndexFunc(r.Played, schedule.Choice.IsStep)
	if i < 0 {
		return ""
	}
	return r.Played[i].Step
}
