package explore

import (
	"context"
	"errors"
	"testing"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/verdict"
)

// found has one bad schedule of a cause, which some of the runs had.
func foundBad(t *testing.T, runs int, text string) Found {
	t.Helper()
	order, err := schedule.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	r := schedule.Record{Schedule: order, Outcome: schedule.Outcome{Verdict: verdict.Oversold, Cause: verdict.Overrun}}
	return Found{Runs: 100, Bad: runs, Shortest: []schedule.Record{r}, bad: map[verdict.Cause]int{verdict.Overrun: runs}, candidates: map[verdict.Cause][]schedule.Record{verdict.Overrun: {r}}}
}

func TestABadScheduleIsPlayedAgain(t *testing.T) {
	for _, tt := range []struct {
		what    string
		failsAt int // which replay ends alike; 0 for none
		bad     int
		once    int
		listed  string
	}{
		{"the first replay ends alike", 1, 4, 0, "A.set wait B.set"},
		{"only the last one does", maxReplays, 4, 0, "A.set wait B.set"},
		{"none does: what was seen counts", 0, 4, 1, "A.set wait B.set"},
	} {
		found, n := foundBad(t, 4, "A.set wait B.set"), 0
		err := Confirm(t.Context(), func(_ context.Context, _ string, _ int, s schedule.Schedule) (schedule.Record, error) {
			if n++; n != tt.failsAt {
				return schedule.Record{}, nil // it holds
			}
			return schedule.Record{Schedule: s, Outcome: found.Shortest[0].Outcome}, nil
		}, &found)
		if err != nil || found.Bad != tt.bad || len(found.Once) != tt.once || len(found.Shortest) != 1 {
			t.Errorf("%s: %d bad, once %v, shortest %v, %v", tt.what, found.Bad, found.Once, found.Shortest, err)
			continue
		}
		if tt.once == 1 && (found.Once[0].Runs != 4 || found.Once[0].Replays != maxReplays) {
			t.Errorf("%s: %+v, want 4 runs and %d replays", tt.what, found.Once[0], maxReplays)
		}
		if found.Shortest[0].Schedule.String() != tt.listed {
			t.Errorf("%s: %s, want %s", tt.what, found.Shortest[0].Schedule, tt.listed)
		}
	}
}

func TestAScheduleIsShrunk(t *testing.T) {
	found := foundBad(t, 1, "A.set A.select wait B.set B.select")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := Confirm(ctx, func(_ context.Context, _ string, _ int, s schedule.Schedule) (schedule.Record, error) {
		if len(s) == 2 {
			cancel() // what was seen twice until then stays
		}
		if len(s.Events()) == 0 || len(s) < 3 {
			return schedule.Record{}, nil // it holds
		}
		return schedule.Record{Schedule: s, Outcome: found.Shortest[0].Outcome}, nil
	}, &found)
	if err != nil || len(found.Shortest[0].Schedule) != 3 || len(found.Shortest[0].Schedule.Events()) != 1 {
		t.Errorf("shrunk to %s, %v, want three words, one of them the event", found.Shortest[0].Schedule, err)
	}
}

func TestAReplayThatTheHarnessFailed(t *testing.T) {
	found, broken := foundBad(t, 1, "A.set"), errors.New("no server")
	err := Confirm(t.Context(), func(context.Context, string, int, schedule.Schedule) (schedule.Record, error) {
		return schedule.Record{}, broken
	}, &found)
	if !errors.Is(err, broken) || len(found.Unplayed()) != 1 || len(found.Repeated()) > 0 {
		t.Errorf("Confirm = %v, unplayed: %v, repeated: %v, want %v, and one that was not played again", err, found.Unplayed(), found.Repeated(), broken)
	}
}
