package step

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// TestAMarkThatEndsSpoilsASlowRun as the end of a lock does, by its own time: what a strategy keeps for a time is gone then.
func TestAMarkThatEndsSpoilsASlowRun(t *testing.T) {
	const lease, went = 300 * time.Millisecond, 200 * time.Millisecond
	for _, tt := range []struct {
		what    string
		marks   []time.Duration // what is left of it at each look, 0 where there is none
		locked  bool
		spoiled bool
	}{
		{"nothing ends", []time.Duration{0}, false, false},
		{"a mark of a minute", []time.Duration{time.Minute}, false, false},
		{"a mark of a minute, and a lock", []time.Duration{time.Minute}, true, false},
		{"a mark of a lease", []time.Duration{lease}, false, false},
		{"a mark of 100 ms", []time.Duration{100 * time.Millisecond}, false, true},
		{"a mark of 100 ms, and a lock", []time.Duration{100 * time.Millisecond}, true, true},
		{"a mark of 100 ms that is gone", []time.Duration{100 * time.Millisecond, 0}, false, true},
		{"a mark of 100 ms, and a minute more", []time.Duration{100 * time.Millisecond, time.Minute}, false, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRun(Plan{}, nil, 1, pace{lease: lease, strict: true, leased: tt.locked})
			r.beginSegment()
			for _, left := range tt.marks {
				r.keepsFor(left)
			}
			time.Sleep(went)
			if r.endSegment(); r.slow.why != "" != tt.spoiled {
				t.Errorf("%s: spoiled by %q, want %t", tt.what, r.slow.why, tt.spoiled)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // what ended while time was to pass is no mark of the next segment
		r := newRun(Plan{}, nil, 1, pace{lease: lease, strict: true})
		r.keepsFor(lease)
		time.Sleep(lease)
		r.beginSegment()
		time.Sleep(went)
		if r.endSegment(); r.slow.why != "" {
			t.Errorf("spoiled by %q after time was to pass", r.slow.why)
		}
		r.keepsFor(lease)
		r.beginSegment()
		time.Sleep(lease)
		if r.endSegment(); r.slow.why == "" {
			t.Error("a mark from before the segment ends in it, and spoils nothing")
		}
	})
}

// TestALookFindsWhatEndsFirst of what a strategy keeps.
func TestALookFindsWhatEndsFirst(t *testing.T) {
	redis, err := testserver.Start(t).Redis(t.Context(), testserver.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	of := declared.State{Keys: []string{"%s:left"}, RareKeys: []string{"%s:loading"}, Copies: []string{"%s:copy"}}
	keys := keptKeys([]uint64{7}, of)
	for _, key := range keys {
		if err := redis.Client.Do(t.Context(), "SET", key, 1).Err; err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		key string
		end time.Duration
	}{{"", 0}, {keys[1], time.Hour}, {keys[2], time.Minute}} {
		if tt.key != "" {
			if err := redis.Client.Do(t.Context(), "PEXPIRE", tt.key, tt.end.Milliseconds()).Err; err != nil {
				t.Fatal(err)
			}
		}
		look, err := lookAtRedis(t.Context(), redis, []uint64{7}, of)
		if want := keys[0] + " 1, " + keys[1] + " 1, " + keys[2] + " 1"; err != nil || look.Kept != want || look.Locked() {
			t.Fatalf("%+v, %v, want %s", look, err, want)
		}
		if look.Ends > tt.end || look.Ends < tt.end/2 {
			t.Errorf("%q ends after %s: the first ends after %s", tt.key, tt.end, look.Ends)
		}
	}
}
