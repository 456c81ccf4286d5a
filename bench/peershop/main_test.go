package main

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/step/steptest"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/testserver"
)

// TestSchedulesAtThePointsOfTheSale: libraries whose requests cannot be held are played step by step
// where a sale acquires and releases, and end as they must.
func TestSchedulesAtThePointsOfTheSale(t *testing.T) {
	testserver.NeedsServers(t)
	program := filepath.Join(t.TempDir(), "peershop")
	build := rig.GoCommand(t.Context(), "../..", "-C", "bench", "build", "-o", program, "./peershop")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	on := steptest.Open(t, program, step.Options{Lease: time.Second, OwnSlots: 1})
	var playing sync.WaitGroup
	for _, tt := range []struct {
		strategy, schedule string
		verdict            verdict.Kind
		cause              verdict.Cause
	}{
		{"rueidislock", "A.acquire B.acquire", verdict.Held, ""},
		{"rueidislock", "A.acquire A.select forget B.acquire B.select", verdict.Oversold, verdict.Forgotten},
		{"rueidislock", "A.acquire A.select B.acquire pause:A B.select", verdict.Oversold, verdict.LateWrite},
		{"etcd", "A.acquire B.acquire", verdict.Held, ""},
		{"etcd", "A.acquire A.select B.acquire pause:A B.select", verdict.Oversold, verdict.LateWrite},
		{"etcd-fenced", "A.acquire A.update A.select B.acquire pause:A B.update B.select", verdict.Held, ""},
	} {
		plan := steptest.Parse(t, tt.schedule)
		playing.Go(func() {
			r, err := on.PlaySchedule(t.Context(), tt.strategy, 2, plan)
			if err != nil || r.Outcome.Verdict != tt.verdict || r.Outcome.Cause != tt.cause {
				t.Errorf("%s %s: %s %s, %v, want %s %s", tt.strategy, tt.schedule, r.Outcome.Verdict, r.Outcome.Cause, err, tt.verdict, tt.cause)
			}
		})
	}
	playing.Wait()
}
