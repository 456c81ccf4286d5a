package trial

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"stocklock/internal/lab/scenario"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

func TestClassify(t *testing.T) {
	for _, tt := range []struct {
		what   string
		status int
		body   string
		err    error
		want   Outcome
	}{
		{"an order", 201, `{"id":1}`, nil, Sold},
		{"a sold-out item is no failure", 409, `{"type":"/problems/sold-out"}`, nil, SoldOut},
		{"another 409", 409, `{"type":"/problems/fenced-off"}`, nil, Fenced},
		{"a lock that was not free", 503, `{"type":"/problems/busy"}`, nil, Busy},
		{"a lock that was lost", 503, `{"type":"/problems/lock-lost"}`, nil, Lost},
		{"a server behind the shop is gone", 503, `{"type":"/problems/unavailable"}`, nil, Unknown},
		{"an answer that never came", 0, "", errors.New("EOF"), Unknown},
		{"nobody listens", 0, "", &net.OpError{Op: "dial", Err: errors.New("refused")}, Refused},
		{"a problem that should not be", 400, `{"type":"/problems/malformed"}`, nil, Failed},
		{"no problem at all", 502, `<html>`, nil, Failed},
	} {
		if got := classify(tt.status, []byte(tt.body), tt.err); got != tt.want {
			t.Errorf("%s: classify(%d, %q, %v) = %s, want %s", tt.what, tt.status, tt.body, tt.err, got, tt.want)
		}
	}
}

func TestJudge(t *testing.T) {
	overrun, err := scenario.ByName("overrun")
	if err != nil {
		t.Fatal(err)
	}
	long := scenario.Injection{Fault: labmode.Fault{Point: sale.Read, Action: labmode.Sleep, For: time.Second}}
	for _, tt := range []struct {
		what string
		r    Result
		a    *attack
		want scenario.Kind
	}{
		{"all sold, no more", Result{}, &attack{}, scenario.Held},
		{"more orders than stock", Result{Oversold: 1}, &attack{}, scenario.Oversold},
		{"oversold first, stuck later", Result{Oversold: 1, Remaining: 3}, &attack{stuck: true}, scenario.Oversold},
		{"nothing moves", Result{Remaining: 3}, &attack{stuck: true}, scenario.Stuck},
		{"nothing moves, and one shop answers", Result{Remaining: 3}, &attack{stuck: true,
			hits: []*hit{{sent: time.Now(), err: errors.New("refused")}, {shop: 1, sent: time.Now()}}}, scenario.Stuck},
		{"no shop answers", Result{Remaining: 3}, &attack{stuck: true,
			hits: []*hit{{sent: time.Now()}, {sent: time.Now().Add(time.Second), err: errors.New("refused")}}}, scenario.Invalid},
		{"the attack ended too early", Result{Remaining: 3}, &attack{}, scenario.Invalid},
		{"an answer without an order", Result{AnswersWithoutOrder: 1}, &attack{}, scenario.Invalid},
		{"two orders for one request", Result{Duplicates: 1}, &attack{}, scenario.Invalid},
		{"an answer that should not be", Result{Errors: 1, Oversold: 5}, &attack{}, scenario.Invalid},
		{"all long work lost its lock", Result{}, &attack{cell: Cell{Scenario: overrun},
			hits: []*hit{{injection: long, outcome: Lost}, {injection: long, outcome: Lost}, {outcome: Sold}}}, scenario.Stuck},
		{"one long work sold", Result{}, &attack{cell: Cell{Scenario: overrun},
			hits: []*hit{{injection: long, outcome: Lost}, {injection: long, outcome: Sold}}}, scenario.Held},
		{"long work lost its lock to another fault", Result{}, &attack{hits: []*hit{{injection: long, outcome: Lost}}}, scenario.Held},
		{"spoiled before", Result{Verdict: scenario.Invalid, Oversold: 5}, &attack{}, scenario.Invalid},
	} {
		tt.r.judge(tt.a)
		if tt.r.Verdict != tt.want {
			t.Errorf("%s: %s, want %s", tt.what, tt.r.Verdict, tt.want)
		}
	}
}

func TestMergeShowsTheSurprise(t *testing.T) {
	good := Result{Seed: 1, Verdict: scenario.Held, Expected: scenario.Held, Agreed: 1, Seconds: 1}
	bad := Result{Seed: 2, Verdict: scenario.Oversold, Expected: scenario.Held, Seconds: 1}
	got := Merge([]Result{good, bad, good})
	if got.Seed != 2 || got.Runs != 3 || got.Agreed != 2 || got.Seconds != 3 || !got.Surprise() {
		t.Errorf("Merge = %+v, want the surprising run, 2 of 3 agreed", got)
	}
}

func TestCameToFollowsATrace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.jsonl")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	time.AfterFunc(20*time.Millisecond, func() {
		f.WriteString(`{"t":1,"shop":"s","request":"7-10","point":"read"}` + "\n" + `{"t":2,"shop":"s","request":"7-1","po`)
		time.Sleep(10 * time.Millisecond)
		f.WriteString(`int":"read"}` + "\n")
	})
	never := func() bool { return false }
	if !cameTo(t.Context(), file, "7-1", sale.Read, never) {
		t.Error("the point was written, and not found")
	}
	if cameTo(t.Context(), file, "7-1", sale.Write, func() bool { return true }) {
		t.Error("found a point that was not written")
	}
}
