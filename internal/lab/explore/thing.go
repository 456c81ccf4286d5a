package explore

import (
	"context"
	"errors"
	"slices"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/words"
)

// Thing is one run of something that can be stepped: customers who make one step after the other, and events
// between them. Package step has the sales of real shops, and the example of this package two threads with a counter.
type Thing interface {
	// Next waits until nobody is on the way, and says how the run can go on. Ended says that it is over.
	Next(ctx context.Context) (next Next, ended bool, err error)
	// Take goes on with an option.
	Take(ctx context.Context, next Next, option int) error
	// Pass lets time pass, since nobody can go on as things are.
	Pass(ctx context.Context, next Next) error
	// Record is what a run that is over has shown.
	Record(ctx context.Context) (schedule.Record, error)
}

// Option is one way in which a run can go on.
type Option struct {
	Choice  schedule.Choice
	Touches []schedule.Touch // what it touches if it is chosen now
	// Retry says that the step repeats a try of a polled lock although nothing has happened since
	// that could let it succeed.
	Retry bool
	// RowHeld says that the step would wait for what another customer's connection holds in MySQL, and
	// do nothing before that is free.
	RowHeld bool
}

// free says whether the step can go on and is worth it.
func (o Option) free() bool { return o.Choice.IsStep() && !o.Retry && !o.RowHeld }

// Next is the state of a run in which something has to be chosen.
type Next struct {
	Options []Option // the customers' steps from A on, then the events
	// Past has everything that was chosen until now. [Play] fills it in.
	Past schedule.Schedule
	// Arriving says that the last choice was an arrival for the lease that passes then.
	Arriving bool
	// Ended are the customers who make no step any more.
	Ended []schedule.Customer
	// Timed are those who wait for what another customer has, until a time of their own is over.
	Timed []schedule.Customer
	// Entries is how many the record has until now.
	Entries int
	// Why says of a choice that is not among the options why it cannot be.
	Why func(schedule.Choice) error
}

// Chooser returns the index of the option with which a run goes on, or [LetTimePass].
type Chooser func(Next) (int, error)

// LetTimePass in place of an option waits until somebody can go on.
const LetTimePass = -1

var (
	// ErrStop is for a [Chooser]: it ends a run that is not to be made again.
	ErrStop = errors.New("stopped")
	// ErrCannot is in the chain of an error about a schedule whose order of steps cannot be.
	ErrCannot = errors.New("the schedule cannot be played")
	// ErrGivenUp is in the chain of an error about a run that failed each time it was made.
	ErrGivenUp = errors.New("a run was given up")
)

// ByDefault returns the index of the step that runs where a schedule says nothing: customer by
// customer to the end. Where time has to pass first, it returns LetTimePass.
func (n Next) ByDefault() int { return slices.IndexFunc(n.Options, Option.free) }

// Index returns the index of the option with a choice, -1 for none.
func (n Next) Index(c schedule.Choice) int {
	return slices.IndexFunc(n.Options, func(o Option) bool { return o.Choice == c })
}

// Of returns the index of a customer's step, -1 for none.
func (n Next) Of(c schedule.Customer) int {
	return slices.IndexFunc(n.Options, func(o Option) bool { return o.Choice.IsStep() && o.Choice.Customer == c })
}

// switches says whether an option is a step of another customer although the last one could go on.
func (n Next) switches(o Option) bool {
	if !o.Choice.IsStep() {
		return false
	}
	for _, before := range slices.Backward(n.Past) {
		if before.IsStep() {
			return before.Customer != o.Choice.Customer && slices.ContainsFunc(n.Options, func(other Option) bool {
				return other.free() && other.Choice.Customer == before.Customer
			})
		}
	}
	return false
}

// Play makes one run. It notes in the record what was chosen.
func Play(ctx context.Context, run Thing, choose Chooser) (schedule.Record, error) {
	var past schedule.Schedule
	listed := 0 // so many of them have to be listed
	for {
		next, ended, err := run.Next(ctx)
		if err != nil {
			return schedule.Record{}, err
		}
		if ended {
			record, err := run.Record(ctx)
			record.Schedule, record.Played = past[:listed], past
			return record, err
		}
		next.Past = past
		i, err := choose(next)
		switch {
		case err != nil:
		case i == LetTimePass:
			err = run.Pass(ctx, next)
		default:
			past = append(past, next.Options[i].Choice)
			if i != next.ByDefault() {
				listed = len(past)
			}
			err = run.Take(ctx, next, i)
		}
		if err != nil {
			return schedule.Record{}, err
		}
	}
}

// Follow plays a schedule, and after it customer by customer to the end.
func Follow(s schedule.Schedule) Chooser {
	left := s
	return func(next Next) (int, error) {
		i := next.ByDefault()
		if len(left) == 0 {
			return i, nil
		}
		if listed := next.Index(left[0]); listed >= 0 {
			left = left[1:]
			return listed, nil
		}
		polls := next.Of(left[0].Customer)
		if i == LetTimePass || slices.Contains(next.Timed, left[0].Customer) || polls >= 0 && next.Options[polls].Retry {
			return LetTimePass, nil // before the listed step is there
		}
		return 0, cannotError{next.Why(left[0])}
	}
}

// Followed says what of a schedule a run by [Follow] has not come to, because everyone had ended. It is nil where it has
// played all.
func Followed(s schedule.Schedule, r schedule.Record) error {
	if len(r.Played) >= len(s) {
		return nil
	}
	left, why := s[len(r.Played)], words.Of("cannot.nothing")
	if answer, came := r.Outcome.Answers[left.Customer.String()]; came {
		why = words.Of("cannot.ended", "who", left.Customer.String(), "answer", answer)
	}
	return cannotError{words.Of("cannot", "choice", left.String(), "why", why)}
}

// cannotError is an order of steps that cannot be.
type cannotError struct{ error }

// Unwrap returns why.
func (e cannotError) Unwrap() error { return e.error }

func (cannotError) Is(target error) bool { return target == ErrCannot }
