package exercise

import (
	"fmt"
	"testing"

	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
)

// TestABasketThatIsRefusedWasNotMissed: only a customer who was sold everything has passed a point without call taken.
func TestABasketThatIsRefusedWasNotMissed(t *testing.T) {
	for _, tt := range []struct {
		problem error
		want    verdict.Cause
	}{
		{fmt.Errorf("%w: A was answered with sold", trial.ErrPassedBy), verdict.NotSeen},
		{fmt.Errorf("%w: A was answered with sold_out", trial.ErrNotSeen), ""},
	} {
		if got := judgeCell(words.AsItStands("two lines"), trial.Result{Verdict: verdict.Invalid, Problem: tt.problem.Error()}); got.Cause != tt.want {
			t.Errorf("%v: %q, want %q", tt.problem, got.Cause, tt.want)
		}
	}
}
