package step

import (
	"sync/atomic"
	"testing"
	"time"

	"stocklock/internal/lab/schedule"
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
