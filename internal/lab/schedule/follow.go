package schedule

import (
	"context"
	"errors"
)

// cannotError is an order of steps that cannot be.
type cannotError string

func (e cannotError) Error() string { return string(e) }

func (cannotError) Is(target error) bool { return target == ErrCannot }

// ErrCannot is in the chain of an error about a schedule whose order of steps cannot be.
var ErrCannot = errors.New("the schedule cannot be played")

// follow plays a schedule, and after it customer by customer to the end.
func follow(s Schedule) Chooser {
	left := s
	return func(next Next) (int, error) {
		i := next.byDefault()
		if len(left) == 0 {
			return i, nil
		}
		if listed := next.index(left[0]); listed >= 0 {
			left = left[1:]
			return listed, nil
		}
		if i < 0 {
			return i, nil // time has to pass before the listed step is there
		}
		return 0, cannotError(next.Why(left[0]))
	}
}

// PlaySchedule plays a schedule with its own events, and looks at both servers after each step.
func (s *Stage) PlaySchedule(ctx context.Context, strategy string, customers int, schedule Schedule) (Record, error) {
	p := Plan{Strategy: strategy, Customers: customers, Events: schedule.Events(), MaxEvents: len(schedule), Everything: true, Observe: true}
	return s.Play(ctx, p, func() Chooser { return follow(schedule) })
}
