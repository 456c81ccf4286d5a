package step

import (
	"context"
	"errors"
	"slices"

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/schedule"
)

// ErrUnmet is in the chain of an error about a fault that met nothing: the sale had ended, or kept no lease. It is none of a
// sale that waits: that goes on, or nothing is known of the place.
var ErrUnmet = errors.New("the fault met nothing")

// Fault has one customer make so many steps, injects an event that hits it, has the other customer buy, and
// then the first one go on. With inTime, leases end by themselves.
func (s *Service) Fault(ctx context.Context, event schedule.Event, steps int, inTime bool) (schedule.Record, error) {
	what := schedule.Choice{Event: event}
	if event.HitsOne() {
		what.Customer = 'A'
	}
	p := s.Plan(2, event)
	p.Everything, p.Early = true, !inTime
	p.Late = inTime || event.Forgets() // who was there when a server broke shows little: see [schedule.Record.Undecided]
	return s.Play(ctx, p, func() explore.Chooser {
		made, happened := 0, false
		return func(next explore.Next) (int, error) {
			if !happened {
				first := slices.IndexFunc(next.Options, func(o explore.Option) bool { return o.Choice.IsStep() && o.Choice.Customer == 'A' })
				hit := next.Index(what)
				switch {
				case made == steps && hit >= 0:
					happened = true
					return hit, nil
				case made == steps && first >= 0, slices.Contains(next.Ended, 'A'):
					return 0, ErrUnmet
				case first >= 0: // also what looks like a poll: nobody else goes on
					made++
					return first, nil
				}
				return explore.LetTimePass, nil
			}
			of := schedule.Customer('B')
			if event == schedule.Lose { // who has lost an answer goes on at once
				of = 'A'
			}
			for _, c := range []schedule.Customer{of, 'A' + 'B' - of} {
				i := slices.IndexFunc(next.Options, func(o explore.Option) bool {
					return o.Choice.IsStep() && o.Choice.Customer == c && !o.Retry && !o.RowHeld
				})
				if i >= 0 {
					return i, nil
				}
			}
			return explore.LetTimePass, nil
		}
	})
}
