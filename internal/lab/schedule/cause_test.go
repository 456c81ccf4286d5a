package schedule

import (
	"strings"
	"testing"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/shop/labmode"
)

// TestWhatALockDoesNotExclude has B read what A had overwritten, although A released before B had the lock.
func TestWhatALockDoesNotExclude(t *testing.T) {
	for _, tt := range []struct {
		what, steps string
		holds       []Hold
		want        Cause
	}{
		{"a commit after the release", "A.acquire A.select A.update A.insert A.release B.acquire B.select A.commit B.update B.insert B.release B.commit",
			[]Hold{{Customer: 'A', From: 0, To: 4, EndedBy: 'A'}, {Customer: 'B', From: 5, To: 10, EndedBy: 'B'}}, LateCommit},
		{"a lease that ends while the release is under way", "A.acquire A.select A.update A.insert B.acquire B.select A.release A.commit B.update B.insert B.release B.commit",
			[]Hold{{Customer: 'A', From: 0, To: 4}, {Customer: 'B', From: 4, To: 10, EndedBy: 'B'}}, LateCommit},
		{"a lock that a process passes on", "A.acquire A.select A.update A.insert B.select A.commit B.update B.insert B.release B.commit",
			[]Hold{{Customer: 'A', From: 0, To: 8, EndedBy: 'B'}}, LateCommit},
		{"a snapshot", "A.select B.select A.acquire A.select2 A.update A.insert A.commit A.release B.acquire B.select2 B.update B.insert B.commit B.release",
			[]Hold{{Customer: 'A', From: 2, To: 7, EndedBy: 'A'}, {Customer: 'B', From: 8, To: 13, EndedBy: 'B'}}, OldSnapshot},
		{"a snapshot whose second read was not seen", "A.select B.select A.acquire A.select2 A.update A.insert A.commit A.release B.acquire B.update B.insert B.commit B.release",
			[]Hold{{Customer: 'A', From: 2, To: 7, EndedBy: 'A'}, {Customer: 'B', From: 8, To: 12, EndedBy: 'B'}}, OldSnapshot},
		{"a lease that ends inside", "A.acquire A.select B.acquire B.select A.update A.insert A.commit A.release B.update B.insert B.commit B.release",
			[]Hold{{Customer: 'A', From: 0, To: 1}, {Customer: 'B', From: 2, To: 11, EndedBy: 'B'}}, Overrun},
	} {
		r := Record{Holds: tt.holds, Outcome: Outcome{Verdict: verdict.Oversold, Orders: []Order{{Customer: "A", Read: 1}, {Customer: "B", Read: 1}}}}
		for choice := range strings.FieldsSeq(tt.steps) {
			c, err := parseChoice(choice)
			if err != nil {
				t.Fatal(err)
			}
			e := Entry{Choice: c, Server: labmode.MySQLServer, Sent: strings.ToUpper(strings.TrimRight(c.Step, "2")), Tx: true}
			if c.Step == "acquire" || c.Step == "release" {
				e.Server, e.Tx = labmode.RedisServer, false
			}
			r.Entries = append(r.Entries, e)
		}
		if r.Conclude(State{}, false); r.Outcome.Cause != tt.want {
			t.Errorf("%s: %s, want %s", tt.what, r.Outcome.Cause, tt.want)
		}
	}
}
