package schedule

import (
	"testing"

	"stocklock/internal/lab/verdict"
)

// TestWhatDecides: a run is decided by the answers of those whom the event has not struck, or else by who came
// afterwards.
func TestWhatDecides(t *testing.T) {
	for _, tt := range []struct {
		a, b, ordinary string
		struck         []Customer
		why            string
	}{
		{a: "sold", b: "sold_out"},
		{a: "sold", b: "busy"},
		{a: "busy", b: "busy", why: "A was answered with busy"},
		{a: "busy", b: "busy", ordinary: "sold"},
		{a: "no answer", b: "sold", struck: []Customer{'A'}},
		{a: "no answer", b: "busy", struck: []Customer{'A'}, why: "B was answered with busy"},
		{a: "no answer", b: "busy", struck: []Customer{'A'}, ordinary: "sold_out"},
		{a: "sold", b: "500: item 7", struck: []Customer{'A'}, ordinary: "sold_out", why: "B was answered with 500"},
		{a: "sold", b: "no answer", struck: []Customer{'A'}, why: "B was answered with no answer"},
		{a: "sold", b: "500: gone", struck: []Customer{'A', 'B'}, why: "nobody came afterwards"},
		{a: "sold", b: "500: gone", struck: []Customer{'A', 'B'}, ordinary: "500: gone", why: "who came afterwards was answered with 500"},
		{a: "sold", b: "500: gone", struck: []Customer{'A', 'B'}, ordinary: "sold_out"},
	} {
		r := Record{Wire: true, Customers: 2, Struck: tt.struck, Outcome: Outcome{Verdict: verdict.Held, Ordinary: tt.ordinary, Answers: map[string]string{"A": tt.a, "B": tt.b}}}
		if why := r.Undecided(); why != tt.why {
			t.Errorf("%+v: %q", tt, why)
		}
	}
}

// TestAPartIsHeld where a run decided behind each request that leaves something.
func TestAPartIsHeld(t *testing.T) {
	run := func(behind string, leaves bool, b string) Record {
		return Record{Wire: true, Customers: 2, Behind: behind, Leaves: leaves, Outcome: Outcome{Verdict: verdict.Held, Answers: map[string]string{"A": "sold", "B": b}}}
	}
	for _, tt := range []struct {
		runs []Record
		held bool
		says string
	}{
		{nil, false, ""},
		{[]Record{run("A.set", true, "sold_out"), run("A.commit", false, "sold_out")}, true, ""},
		{[]Record{run("A.set", true, "sold_out"), run("A.commit", false, "500: x")}, true, "1 of 2 decided: B was answered with 500 (1)"},
		{[]Record{run("A.set", true, "500: x"), run("A.commit", false, "sold_out")}, false, "1 of 2 decided: B was answered with 500 (1)"},
		{[]Record{run("A.set", true, "500: x"), run("A.set", true, "sold_out")}, true, "1 of 2 decided: B was answered with 500 (1)"},
		{[]Record{run("A.commit", false, "no answer")}, false, "0 of 1 decided: B was answered with no answer (1)"},
	} {
		var d Decided
		for _, r := range tt.runs {
			d.Add(r)
		}
		if d.Held() != tt.held || d.String() != tt.says {
			t.Errorf("%+v: held %v, %q", tt.runs, d.Held(), d)
		}
	}
}

// TestACrashIsFound where no event happened. Under one a refusal is right.
func TestACrashIsFound(t *testing.T) {
	for _, tt := range []struct {
		played Schedule
		b      string
		want   verdict.Kind
	}{
		{nil, "500: panic", verdict.Crashed}, {nil, "no answer", verdict.Crashed}, {nil, "502", verdict.Crashed},
		{nil, "busy", verdict.Held}, {nil, "conflict", verdict.Held}, {nil, "limited", verdict.Held}, {nil, "unknown", verdict.Held},
		{Schedule{{Event: Wait}}, "500: panic", verdict.Held}, {Schedule{{Event: Arrive, Customer: 'B'}}, "500: panic", verdict.Crashed},
	} {
		r := Record{Customers: 2, Played: tt.played, Outcome: Outcome{Stock: 1, Orders: []Order{{Customer: "A"}}, Answers: map[string]string{"A": "sold", "B": tt.b}}}
		r.Decide()
		if r.Conclude(State{}, false); r.Outcome.Verdict != tt.want || (r.Outcome.Cause == verdict.Crash) != (tt.want == verdict.Crashed) {
			t.Errorf("%v, B was answered with %s: %s %s, want %s", tt.played, tt.b, r.Outcome.Verdict, r.Outcome.Cause, tt.want)
		}
	}
}
