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
	"stocklock/internal/lab/stage"
)

// Bounds of what a pupil's code may do in one run.
const (
	maxRequests = 200
	maxSilence  = 10 * time.Second
)

// failure is what is wrong with the pupil's code besides what a schedule shows.
type failure struct {
	cause  Cause
	said   string
	record *schedule.Record // of the run, where it was observed
}

func (f failure) Error() string { return f.said }

// Is makes a stage take a failure for final: it does not play the run again.
func (f failure) Is(target error) bool { return target == stage.ErrCannot }

// bounded plays runs on a stage, and ends one that sends too much, says nothing, or crashes.
type bounded struct{ *stage.Stage }

func (b bounded) Play(ctx context.Context, p stage.Plan, choose func() stage.Chooser) (schedule.Record, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := failure{cause: TooSilent, said: fmt.Sprintf("nothing was heard of the shops for %s: does the code wait for itself?", maxSilence)}
	alarm := time.AfterFunc(maxSilence, func() { cancel(silent) })
	defer alarm.Stop()
	heard := time.Now()
	var tooMany error
	record, err := b.Stage.Play(ctx, p, func() stage.Chooser {
		next := choose()
		return func(n stage.Next) (int, error) {
			// A try that was begun anew after almost as long was as silent.
			if time.Since(heard) > maxSilence*3/4 {
				cancel(silent)
			}
			heard = time.Now()
			alarm.Reset(maxSilence)
			for c, sent := range n.Requests {
				if sent > maxRequests {
					tooMany = failure{cause: TooManyRequests, said: fmt.Sprintf("customer %s has sent more than %d requests in one sale", c, maxRequests)}
					return 0, tooMany
				}
			}
			return next(n)
		}
	})
	if cause := context.Cause(ctx); errors.As(cause, new(failure)) {
		return record, cause
	}
	if tooMany != nil {
		return record, tooMany
	}
	if errors.Is(err, stage.ErrEndless) {
		return record, failure{cause: TooManyRequests, said: err.Error()}
	}
	if err == nil {
		err = cmp.Or(b.crashed(record), soldTwice(record), b.keptOut(ctx, record))
	}
	return record, err
}

// soldTwice finds a customer who asked once and has two orders. It returns nil where there is none.
func soldTwice(r schedule.Record) error {
	has := map[string]bool{}
	for _, o := range r.Outcome.Orders {
		if has[o.Customer] {
			return failure{cause: SoldTwice, said: fmt.Sprintf("customer %s asked once, and has two orders; the schedule: %s", o.Customer, inWords(r))}
		}
		has[o.Customer] = true
	}
	return nil
}

// keptOut finds a customer who waited in vain for the lock of a dead one, and did so again when the
// schedule was played once more. It returns nil where there is none.
func (b bounded) keptOut(ctx context.Context, r schedule.Record) error {
	if waitedInVain(r) == "" {
		return nil
	}
	again, err := b.PlaySchedule(ctx, r.Strategy, r.Customers, r.Schedule)
	if err != nil {
		return nil // nothing is known
	}
	customer := waitedInVain(again)
	if customer == "" {
		return nil
	}
	return failure{KeptOut, fmt.Sprintf("customer %s was rejected as busy after three leases, and the holder was dead: "+
		"its lock outlasted its lease, because somebody renews it", customer), &again}
}

// waitedInVain is a customer who was rejected as busy although units were left and nobody else lived
// who could have the lock, empty where there is none.
func waitedInVain(r schedule.Record) string {
	sold := 0
	for _, o := range r.Outcome.Orders {
		if _, theirs := r.Outcome.Answers[o.Customer]; theirs {
			sold++
		}
	}
	killed := slices.ContainsFunc(r.Schedule, func(c schedule.Choice) bool { return c.Event == schedule.Kill })
	if !killed || r.Outcome.Bad() || int64(sold) >= r.Outcome.Stock {
		return ""
	}
	for customer, answer := range r.Outcome.Answers {
		if answer == string(load.Busy) {
			return customer
		}
	}
	return ""
}

// inWords is the schedule of a run, where nothing has to be listed, too.
func inWords(r schedule.Record) string {
	return cmp.Or(r.Schedule.String(), "one customer after the other")
}

// crashed finds an answer that no sale should have. It returns nil where there is none.
func (b bounded) crashed(r schedule.Record) error {
	killed := map[string]bool{}
	for _, c := range r.Schedule {
		if c.Event == schedule.Kill {
			killed[c.Customer.String()] = true
		}
	}
	for customer, answer := range r.Outcome.Answers {
		if killed[customer] {
			continue
		}
		ended := answer == "no answer"
		if !ended && !strings.HasPrefix(answer, "500") {
			continue
		}
		said := "customer " + customer + " was answered with " + answer
		if ended {
			said = "the shop of customer " + customer + " ended by itself"
		}
		if why := b.Panic(); why != "" {
			said += ": " + why
		}
		return failure{cause: Crashed, said: said + "; the schedule: " + inWords(r)}
	}
	return nil
}
