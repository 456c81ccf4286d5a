package exercise

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
)

// TestAnErrorIsTheAnswersOwn: it says what the code does, on any machine.
func TestAnErrorIsTheAnswersOwn(t *testing.T) {
	for _, tt := range []struct{ first, want string }{
		{"500 {}\nthe shop's log: {\"error\":\"panic: index out of range\\ngoroutine 7\"}", "two lines: a customer met an error: panic: index out of range"},
		{"500 {}\nthe shop's log: {\"error\":\"no such table\"}", "no such table"},
	} {
		got := judgeCell(words.AsItStands("two lines"), trial.Result{Verdict: verdict.Invalid, Problem: trial.ErrNotSeen.Error(), FirstError: tt.first})
		if got.Cause != verdict.Crash || !strings.Contains(got.Said.String(), tt.want) || strings.Contains(got.Said.String(), "goroutine") {
			t.Errorf("%s: %q, want %q", got.Cause, got.Said, tt.want)
		}
	}
}

// TestAnAnswerThatDoesNotCome: only after the time of a crowd was it silence. Its order denies nothing.
func TestAnAnswerThatDoesNotCome(t *testing.T) {
	for err, want := range map[error]verdict.Cause{context.DeadlineExceeded: verdict.TooSilent, io.ErrUnexpectedEOF: verdict.Crash} {
		a := load.Answer{Outcome: load.Unknown, Err: fmt.Errorf("Post: %w", err)}
		if got, why := wrong(a, verdict.Facts{Unanswered: 1}, 0); got != want {
			t.Errorf("%v: %s, %s, want %s", err, got, why, want)
		}
	}
}

// TestACommandThatWouldHold: the step command does not ask what only an exercise asks.
func TestACommandThatWouldHold(t *testing.T) {
	for cause, want := range map[verdict.Cause]string{verdict.Unresolved: "", verdict.Unlocked: "", verdict.NoLock: "loadtest step mine --as one-shop"} {
		v := Verdict{Cause: cause, OneShop: true, Record: &schedule.Record{Strategy: "mine"}}
		if got := v.StepCommand("loadtest"); got != want {
			t.Errorf("%s: %q, want %q", cause, got, want)
		}
	}
}

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
