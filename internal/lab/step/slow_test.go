package step

import (
	"sync/atomic"
	"testing"
	"time"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/testserver"
)

// TestALateRenewalSpoilsARun: a lease that ended because the machine was busy is no finding. One that a
// pause or an event ended is.
func TestALateRenewalSpoilsARun(t *testing.T) {
	const lease = time.Second
	begun := time.Now()
	after := func(d time.Duration) time.Time { return begun.Add(d) }
	for _, tt := range []struct {
		what          string
		first, second time.Duration // renewals of A, since the start
		resumed       time.Duration
		ended         schedule.Hold // of A
		spoiled       bool
	}{
		{"late, and it had ended", lease / 3, 2 * lease, 0, schedule.Hold{Customer: 'A', To: 4}, true},
		{"in time, and it had ended", lease / 3, lease, 0, schedule.Hold{Customer: 'A', To: 4}, false},
		{"late by a pause", lease / 3, 2 * lease, 3 * lease / 2, schedule.Hold{Customer: 'A', To: 4}, false},
		{"late, and Redis has forgotten it", lease / 3, 2 * lease, 0, schedule.Hold{Customer: 'A', To: 4, EndedEvent: schedule.Forget}, false},
		{"late, and another's had ended", lease / 3, 2 * lease, 0, schedule.Hold{Customer: 'B', To: 4}, false},
		{"late, and it goes on", lease / 3, 2 * lease, 0, schedule.Hold{Customer: 'A', To: -1}, false},
	} {
		r := newRun(Plan{}, nil, 1, pace{lease: lease, strict: true, starved: new(atomic.Int64)})
		r.buyers, r.holds = []*buyer{{customer: 'A'}, {customer: 'B'}}, []schedule.Hold{tt.ended}
		r.resumed['A'] = after(tt.resumed)
		for _, at := range []time.Duration{tt.first, tt.second} {
			r.noteRenewal('A', after(at))
		}
		if got := r.slow.why != ""; got != tt.spoiled {
			t.Errorf("%s: spoiled by %q, want %t", tt.what, r.slow.why, tt.spoiled)
		}
	}
}

// TestAMarkThatEndsSpoilsASlowRun as the end of a lock does: what a strategy keeps for a time is gone then.
func TestAMarkThatEndsSpoilsASlowRun(t *testing.T) {
	redis, err := testserver.Start(t).Redis(t.Context(), testserver.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	of := declared.State{Keys: []string{"%s:left"}, RareKeys: []string{"%s:loading"}}
	for px, spoiled := range map[string]bool{"PERSIST": false, "PEXPIRE": true} {
		keys := keptKeys([]uint64{7}, of)
		for _, key := range keys {
			if err := redis.Client.Do(t.Context(), "SET", key, 1).Err; err != nil {
				t.Fatal(err)
			}
		}
		mark := []any{px, keys[1], 60_000}
		if px == "PERSIST" {
			mark = mark[:2]
		}
		if err := redis.Client.Do(t.Context(), mark...).Err; err != nil {
			t.Fatal(err)
		}
		look, err := lookAtRedis(t.Context(), redis, []uint64{7}, of)
		if want := keys[0] + " 1, " + keys[1] + " 1"; err != nil || look.Kept != want || look.Locked() {
			t.Fatalf("%+v, %v, want %s", look, err, want)
		}
		r := newRun(Plan{}, nil, 1, pace{lease: time.Nanosecond, strict: true})
		r.leased = look.Ends
		if r.endSegment(); r.slow.why != "" != spoiled {
			t.Errorf("%s: spoiled by %q, want %t", px, r.slow.why, spoiled)
		}
	}
}
