package schedule

import (
	"context"
	"errors"
	"slices"
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

// Position is how things stand after the last entry of a schedule, and what can be done next.
type Position struct {
	Record
	Options []Choice
	Ended   bool // nothing can be chosen any more: the record has the outcome
}

// Position plays a schedule and what follows it, and returns how things stood in between. So no
// sale waits for whoever chooses the next step.
func (s *Stage) Position(ctx context.Context, strategy string, customers int, schedule Schedule) (Position, error) {
	var at Position
	events := Events()
	if kind := kindFor(schedule.Events()); !kind.alone {
		events = []Event{Wait, Lose, Forget} // what can follow without shops of one's own
	}
	p := Plan{Strategy: strategy, Customers: customers, Events: append(schedule.Events(), events...), MaxEvents: len(schedule) + 1, Everything: true, Observe: true}
	p.Events = unique(p.Events)
	entries := 0
	record, err := s.Play(ctx, p, func() Chooser {
		play := follow(schedule)
		at.Ended = true
		return func(next Next) (int, error) {
			if len(next.Past) == len(schedule) && at.Ended && next.byDefault() >= 0 {
				at.Ended = false
				entries = next.entries
				at.Options = nil
				for _, o := range next.Options {
					at.Options = append(at.Options, o.Choice)
				}
			}
			return play(next)
		}
	})
	at.Record = record
	if !at.Ended {
		at.Entries = at.Entries[:entries]
	}
	return at, err
}

func unique(events []Event) []Event {
	var once []Event
	for _, e := range events {
		if !slices.Contains(once, e) {
			once = append(once, e)
		}
	}
	return once
}
