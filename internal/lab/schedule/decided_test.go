package schedule

import (
	"strings"
	"testing"

	"stocklock/internal/lab/verdict"
)

// TestWhatDecides: a run is decided by the answers of those whom the event has not taken away, or else by who came
// afterwards.
func TestWhatDecides(t *testing.T) {
	for _, tt := range []struct {
		a, b, ordinary string
		takenAway      []Customer
		why            string
	}{
		{a: "sold", b: "sold_out"},
		{a: "sold", b: "busy"},
		{a: "busy", b: "busy", why: "A was answered with busy"},
		{a: "busy", b: "busy", ordinary: "sold"},
		{a: "no answer", b: "sold", takenAway: []Customer{'A'}},
		{a: "no answer", b: "busy", takenAway: []Customer{'A'}, why: "B was answered with busy"},
		{a: "no answer", b: "busy", takenAway: []Customer{'A'}, ordinary: "sold_out"},
		{a: "sold", b: "500: item 7", takenAway: []Customer{'A'}, ordinary: "sold_out", why: "B was answered with 500"},
		{a: "sold", b: "no answer", takenAway: []Customer{'A'}, why: "B was answered with no answer"},
		{a: "sold", b: "500: gone", takenAway: []Customer{'A', 'B'}, why: "nobody came afterwards"},
		{a: "sold", b: "500: gone", takenAway: []Customer{'A', 'B'}, ordinary: "500: gone", why: "who came afterwards was answered with 500"},
		{a: "sold", b: "500: gone", takenAway: []Customer{'A', 'B'}, ordinary: "sold_out"},
	} {
		r := Record{Wire: true, Customers: 2, TakenAway: tt.takenAway, Outcome: Outcome{Verdict: verdict.Held, Ordinary: tt.ordinary, Answers: map[string]string{"A": tt.a, "B": tt.b}}}
		if why := r.Undecided(); why != tt.why {
			t.Errorf("%+v: %q", tt, why)
		}
	}
}

// TestWhatIsQueued: a unit whose order can still come of a queue is not left, and decides nothing.
func TestWhatIsQueued(t *testing.T) {
	for queued, want := range map[bool]verdict.Kind{false: verdict.Left, true: verdict.Held} {
		r := Record{Wire: true, Customers: 2, Queued: queued, TakenAway: []Customer{'A'}, Played: Schedule{{Event: Kill, Customer: 'A'}}, Outcome: Outcome{Stock: 1, Ordinary: "sold_out", Answers: map[string]string{"A": "no answer", "B": "sold_out"}}}
		if r.Decide(); r.Outcome.Verdict != want || (r.Undecided() != "") != queued {
			t.Errorf("queued: %v: %s, undecided: %q", queued, r.Outcome.Verdict, r.Undecided())
		}
	}
}

// TestAUnitInALease is neither left nor lost where that lease has not ended, and decides nothing.
func TestAUnitInALease(t *testing.T) {
	for _, tt := range []struct {
		unended, ordinary string
		lost              int64
		want              verdict.Kind
	}{
		{"", "sold_out", 0, verdict.Left}, {"leases run", "sold_out", 0, verdict.Held},
		{"", "sold", -1, verdict.Unbalanced}, {"leases run", "sold", -1, verdict.Held},
		{"leases run", "sold", 1, verdict.Unbalanced}, {"leases run", "busy", 1, verdict.Unbalanced}, {"", "busy", 0, verdict.Stuck}, {"leases run", "busy", 0, verdict.Held},
	} {
		r := Record{Wire: true, Customers: 2, Unended: tt.unended, LostUpdates: tt.lost, TakenAway: []Customer{'A'}, Played: Schedule{{Event: Kill, Customer: 'A'}},
			Outcome: Outcome{Stock: 2, Ordinary: tt.ordinary, Orders: []Order{{Customer: "B"}}, Answers: map[string]string{"A": "no answer", "B": "sold"}}}
		if r.Decide(); r.Outcome.Verdict != tt.want || (r.Undecided() == "") != r.Outcome.Bad() {
			t.Errorf("%+v: %s, undecided: %q", tt, r.Outcome.Verdict, r.Undecided())
		}
	}
}

// TestAnAnswerWithoutAName is no reason to be stuck. It shows nothing.
func TestAnAnswerWithoutAName(t *testing.T) {
	for ordinary, want := range map[string]verdict.Kind{"418: later": verdict.Held, "500: gone": verdict.Stuck, "busy": verdict.Stuck} {
		r := Record{Wire: true, Customers: 2, Outcome: Outcome{Stock: 1, Ordinary: ordinary, Answers: map[string]string{"A": "busy", "B": "busy"}}}
		if r.Decide(); r.Outcome.Verdict != want || (r.Unnamed() != "") != (want == verdict.Held) {
			t.Errorf("%s: %s, without a name: %q", ordinary, r.Outcome.Verdict, r.Unnamed())
		}
	}
}

// TestAPartIsHeld where a run decided behind each request that leaves something.
func TestAPartIsHeld(t *testing.T) {
	run := func(behind string, leaves bool, b string) Record {
		return Record{Wire: true, Customers: 2, Behind: behind, Leaves: leaves, Outcome: Outcome{Verdict: verdict.Held, Answers: map[string]string{"A": "sold", "B": b}}}
	}
	ended := run("A.set", true, "500: x")
	ended.Played = Schedule{{Event: Wait}}
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
		{[]Record{ended, run("A.set", true, "sold_out")}, false, "1 of 2 decided: B was answered with 500 (1)"},
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

// TestACrashIsFound where nothing has happened to the customer. Under an event a refusal is right.
func TestACrashIsFound(t *testing.T) {
	for _, tt := range []struct {
		played Schedule
		b      string
		want   verdict.Kind
	}{
		{nil, "500: panic", verdict.Crashed}, {nil, "no answer", verdict.Crashed}, {nil, "502", verdict.Crashed},
		{nil, "busy", verdict.Held}, {nil, "conflict", verdict.Held}, {nil, "limited", verdict.Held}, {nil, "unknown", verdict.Held},
		{Schedule{{Event: Wait}}, "500: panic", verdict.Crashed}, {Schedule{{Event: Wait}}, "503: unavailable", verdict.Held},
		{Schedule{{Event: Kill, Customer: 'A'}}, "no answer", verdict.Crashed}, {Schedule{{Event: Kill, Customer: 'B'}}, "no answer", verdict.Held}, {Schedule{{Event: Forget}}, "500: lost", verdict.Held},
		{Schedule{{Event: Arrive, Customer: 'B'}}, "500: panic", verdict.Crashed},
	} {
		played := append(Schedule{{Customer: 'A', Step: "select"}, {Customer: 'B', Step: "select"}}, tt.played...)
		r := Record{Customers: 2, Played: played, Outcome: Outcome{Stock: 1, Orders: []Order{{Customer: "A"}}, Answers: map[string]string{"A": "sold", "B": tt.b}}}
		r.Decide()
		if r.Conclude(State{}, false); r.Outcome.Verdict != tt.want || (r.Outcome.Cause == verdict.Crash) != (tt.want == verdict.Crashed) {
			t.Errorf("%v, B was answered with %s: %s %s, want %s", tt.played, tt.b, r.Outcome.Verdict, r.Outcome.Cause, tt.want)
		}
	}
}

// TestARefusalWithUnitsLeft: a customer who is sent away although nothing has happened to it, and a unit is there.
func TestARefusalWithUnitsLeft(t *testing.T) {
	for _, tt := range []struct {
		played, b, ordinary, said string
		wire                      bool
		want                      verdict.Cause
	}{
		{played: "A.select B.select A.update B.update C.select", b: "conflict", want: verdict.TurnedAway},
		{played: "A.select B.select A.update B.update C.select", b: "conflict", said: "Error 1213: Deadlock found", want: verdict.Deadlock},
		{played: "A.select B.select A.update B.update C.select", b: "sold_out", want: verdict.Unreturned},
		{played: "A.select B.select A.update B.update C.select", b: "busy", wire: true},
		{played: "A.select A.update C.select C.update B.select", b: "busy"},
		{played: "A.select wait B.select C.select", b: "busy"},
		{played: "A.select C.set kill:C B.set", b: "busy", ordinary: "sold", want: verdict.Prolonged},
		{played: "A.select C.set kill:C B.set", b: "busy", ordinary: "busy", want: verdict.Prolonged},
		{played: "A.select C.set kill:C kill:B B.set", b: "busy", ordinary: "sold"},
	} {
		order, err := Parse(tt.played)
		if err != nil {
			t.Fatal(err)
		}
		r := Record{Customers: 3, Wire: tt.wire, Played: order, Entries: []Entry{{Answer: tt.said}},
			Outcome: Outcome{Stock: 2, Ordinary: tt.ordinary, Orders: []Order{{Customer: "A"}}, Answers: map[string]string{"A": "sold", "B": tt.b, "C": "sold"}}}
		if order.Has(Kill) {
			r.Outcome.Answers["C"] = "no answer"
		} else {
			r.Outcome.Orders = append(r.Outcome.Orders, Order{Customer: "C"})
		}
		r.Decide()
		if r.Conclude(State{TTLMS: 100}, false); r.Outcome.Cause != tt.want {
			t.Errorf("%+v: %s %d by %q, want %q", tt, r.Outcome.Verdict, r.Outcome.N, r.Outcome.Cause, tt.want)
		}
	}
}

// TestARoundWithAUnitForEach: what the other round decides behind the same request says nothing of it.
func TestARoundWithAUnitForEach(t *testing.T) {
	var d Decided
	for stock, b := range map[int64]string{1: "sold_out", 2: "500"} {
		d.Add(Record{Wire: true, Customers: 2, TakenAway: []Customer{'A'}, Behind: "A.decr", Leaves: true, Outcome: Outcome{Verdict: verdict.Held, Stock: stock, Answers: map[string]string{"B": b}}})
	}
	if d.Held() {
		t.Error("the places with a unit for each customer decided nothing: " + d.String())
	}
}

// TestWhoHasCrashed is named, and not who was killed.
func TestWhoHasCrashed(t *testing.T) {
	r := Record{Customers: 2, Played: Schedule{{Event: Kill, Customer: 'A'}}, Outcome: Outcome{Verdict: verdict.Crashed, Stock: 1, Answers: map[string]string{"A": "no answer", "B": "500: panic"}}}
	if said := r.Sentence().String(); !strings.Contains(said, "B was") {
		t.Error(said)
	}
}
