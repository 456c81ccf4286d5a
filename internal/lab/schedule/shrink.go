package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Shrink takes from a bad schedule what it does not need, and plays what is left once more, with
// its events on the processes and servers themselves. What it returns was seen twice.
func (s *Stage) Shrink(ctx context.Context, found Record) (Record, error) {
	best, err := s.again(ctx, found, found.Schedule)
	if err != nil {
		return Record{}, err
	}
	for i := len(best.Schedule) - 1; i >= 0; i-- {
		shorter := slices.Delete(slices.Clone(best.Schedule), i, i+1)
		if !shorter.inOrder() {
			continue
		}
		record, err := s.again(ctx, found, shorter)
		switch {
		case ctx.Err() != nil:
			return Record{}, context.Cause(ctx)
		case err != nil:
			continue
		}
		best = record
		i = len(best.Schedule)
	}
	return best, nil
}

// confirm shrinks the shortest schedule of each cause, side by side. Where it ends otherwise the
// second time, the next one is tried. A cause of which none ended alike twice is returned by itself.
func (s *Stage) confirm(ctx context.Context, found Found) (seen []Record, once []string, err error) {
	shrunk, errs := make([]Record, len(found.Shortest)), make([]error, len(found.Shortest))
	var shrinking sync.WaitGroup
	for i, r := range found.Shortest {
		shrinking.Go(func() {
			for _, candidate := range found.candidates[r.Outcome.Cause] {
				if shrunk[i], errs[i] = s.Shrink(ctx, candidate); !errors.Is(errs[i], errDifferent) {
					return
				}
			}
		})
	}
	shrinking.Wait()
	for i, err := range errs {
		r := found.Shortest[i]
		switch {
		case err == nil:
			seen = append(seen, shrunk[i])
		case errors.Is(err, errDifferent):
			once = append(once, fmt.Sprintf("%s %s: %s: %v", r.Outcome.Verdict, r.Outcome.Cause, r.Listed, err))
		default:
			return nil, nil, fmt.Errorf("%s: played once more: %w", r.Listed, err)
		}
	}
	slices.SortFunc(seen, CompareLength)
	return seen, once, nil
}

var errDifferent = errors.New("it ended otherwise")

func (s *Stage) again(ctx context.Context, found Record, schedule Schedule) (Record, error) {
	record, err := s.PlaySchedule(ctx, found.Strategy, found.Customers, schedule)
	if err != nil {
		return Record{}, err
	}
	if record.Outcome.Verdict != found.Outcome.Verdict || record.Outcome.Cause != found.Outcome.Cause {
		return Record{}, fmt.Errorf("%w: %s %s", errDifferent, record.Outcome.Verdict, record.Outcome.Cause)
	}
	return record, nil
}
