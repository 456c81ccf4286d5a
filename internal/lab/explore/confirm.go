package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/verdict"
)

// Once is a cause that some runs had, and that none had when their schedules were played again: what
// shops do on their own, such as a reaper, is not held. The runs still count: their records show
// what came to pass.
type Once struct {
	Cause   verdict.Cause `json:"cause"`
	Runs    int           `json:"runs"`    // so many had the cause
	Replays int           `json:"replays"` // and none of so many
}

func (o Once) String() string {
	return fmt.Sprintf("%s: %d of the runs, and none of %d replays", o.Cause, o.Runs, o.Replays)
}

// maxReplays is how often a bad schedule is played again until it ends alike.
const maxReplays = 3

// Replayer plays a schedule by its text, of a strategy and so many customers.
type Replayer func(ctx context.Context, strategy string, customers int, order schedule.Schedule) (schedule.Record, error)

// Confirm replays the shortest bad schedule of each cause, and removes the choices that it does not
// need. If it never ends alike, Confirm plays the next shortest. Of a cause without a schedule that
// ends alike, the record that was found stays, and Once says so: also where a replay fails.
func Confirm(ctx context.Context, play Replayer, found *Found) error {
	var (
		confirming sync.WaitGroup
		mu         sync.Mutex // guards the rest
		seen       []schedule.Record
		errs       []error
	)
	for _, shortest := range found.Shortest {
		cause := shortest.Outcome.Cause
		confirming.Go(func() {
			replays := 0
			for _, candidate := range found.candidates[cause] {
				for range maxReplays {
					record, err := play.shrink(ctx, candidate)
					if errors.Is(err, errDifferent) {
						replays++
						continue
					}
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						errs = append(errs, fmt.Errorf("%s: played once more: %w", candidate.Schedule, err))
						record = shortest
						found.Once = append(found.Once, Once{cause, found.bad[cause], replays})
					}
					seen = append(seen, record)
					return
				}
			}
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, shortest)
			found.Once = append(found.Once, Once{cause, found.bad[cause], replays})
		})
	}
	confirming.Wait()
	slices.SortFunc(seen, shorter)
	found.Shortest = seen
	return errors.Join(errs...)
}

// shrink removes the choices that a bad schedule does not need, and plays the rest once more, with
// its events on the processes and servers themselves. The result was seen twice.
func (play Replayer) shrink(ctx context.Context, found schedule.Record) (schedule.Record, error) {
	best, err := play.alike(ctx, found, found.Schedule)
	if err != nil {
		return schedule.Record{}, err
	}
	for i := len(best.Schedule) - 1; i >= 0; i-- {
		shorter := slices.Delete(slices.Clone(best.Schedule), i, i+1)
		if !shorter.InOrder() {
			continue
		}
		record, err := play.alike(ctx, found, shorter)
		switch {
		case ctx.Err() != nil:
			return best, nil // which was seen twice
		case err != nil:
			continue
		}
		best = record
		i = len(best.Schedule)
	}
	return best, nil
}

// alike plays a schedule and returns errDifferent if it does not end as another one did.
func (play Replayer) alike(ctx context.Context, found schedule.Record, order schedule.Schedule) (schedule.Record, error) {
	record, err := play(ctx, found.Strategy, found.Customers, order)
	switch {
	case errors.Is(err, ErrCannot) || errors.Is(err, ErrGivenUp):
		return schedule.Record{}, fmt.Errorf("%w: %w", errDifferent, err)
	case err == nil && (record.Outcome.Verdict != found.Outcome.Verdict || record.Outcome.Cause != found.Outcome.Cause):
		return schedule.Record{}, fmt.Errorf("%w: %s %s", errDifferent, record.Outcome.Verdict, record.Outcome.Cause)
	}
	return record, err
}

var errDifferent = errors.New("it ended otherwise")
