package trial

import (
	"net/http"
	"testing"
	"time"

	"stocklock/internal/lab/load"
)

// TestStepsFindTheKnee has a shop that serves a hundred requests a second.
func TestStepsFindTheKnee(t *testing.T) {
	shape, err := load.ParseShape("50,100,200/2s")
	if err != nil {
		t.Fatal(err)
	}
	a := attackOf(Options{Shape: shape})
	a.begun = time.Now()
	free := a.begun
	requests, _ := shape.Total()
	for n := range requests {
		scheduled := a.begun.Add(shape.Due(n))
		if free.Before(scheduled) {
			free = scheduled
		}
		free = free.Add(10 * time.Millisecond)
		outcome := load.Sold
		if n == requests-1 {
			outcome = load.SoldOut
		}
		a.customers.hits = append(a.customers.hits, &Customer{number: n, scheduled: scheduled,
			Answer: load.Answer{Outcome: outcome, Status: http.StatusCreated, Sent: scheduled, Latency: free.Sub(scheduled)}})
	}
	steps := a.steps()
	if len(steps) != 3 || !steps[0].KeptUp || !steps[1].KeptUp || steps[2].KeptUp {
		t.Fatalf("steps %+v, want three, of which the last does not keep up", steps)
	}
	if s := steps[2]; s.Requests != 400 || s.Sold != 399 || s.SoldOut != 1 || s.SalesPerSecond < 95 || s.SalesPerSecond > 105 || s.Latency.P99 < 1900 {
		t.Errorf("the last step %+v, want 400 requests, about 100 sales a second, and late answers", s)
	}
	if got := a.ranOut(); got < 5900*time.Millisecond || got > 8100*time.Millisecond {
		t.Errorf("the stock ran out after %s", got)
	}
}
