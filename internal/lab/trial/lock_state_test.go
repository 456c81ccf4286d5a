package trial

import (
	"testing"
	"time"
)

// TestWhatBecomesOfALease: a lease has ended, was renewed, or neither, by what the server says at two
// moments.
func TestWhatBecomesOfALease(t *testing.T) {
	begun := time.Now()
	at := func(ms int) time.Time { return begun.Add(time.Duration(ms) * time.Millisecond) }
	lock := func(value string, now, end int) map[string]keyState {
		return map[string]keyState{"lock": {value: value, now: at(now), end: at(end)}}
	}
	endless := map[string]keyState{"lock": {value: "1", now: at(0)}}
	was := lockState{asked: at(0), keys: lock("1", 0, 500)}
	for _, tt := range []struct {
		what         string
		own, inValue bool
		is           map[string]keyState
		want         How
		holds        bool
	}{
		{what: "nothing changed", is: lock("1", 100, 500), holds: true},
		{what: "its own, not yet removed after its end", own: true, is: lock("1", 501, 500), holds: true},
		{what: "the key is gone", is: nil, want: Ended},
		{what: "another value", is: lock("2", 100, 600), want: Ended},
		{what: "its own, with a later end", own: true, is: lock("1", 100, 600), want: Renewed, holds: true},
		{what: "the same value for all, with another end", is: lock("1", 100, 600), want: Renewed},
		{what: "the same value for all, not yet with an end", is: map[string]keyState{"lock": {value: "1", now: at(100)}}},
		{what: "the same value for all, taken again", is: lock("1", 600, 1000), want: Ended},
		{what: "the same value of its own, later", own: true, is: lock("1", 600, 1000), want: Renewed, holds: true},
		{what: "a value that is the end, over", inValue: true, is: lock("1", 600, 500), want: Ended},
		{what: "a value that is the end, moved by a loser", inValue: true, is: lock("2", 100, 501), holds: true},
	} {
		was.own, was.inValue = tt.own, tt.inValue
		is := lockState{keys: tt.is}
		if got := was.since(is); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
		if got := was.holds(is); got != tt.holds {
			t.Errorf("%s: it is still the holder's: %t, want %t", tt.what, got, tt.holds)
		}
	}
	if end, ok := was.ends(); !ok || !end.Equal(at(500)) {
		t.Errorf("the lease ends at %v, %t", end, ok)
	}
	if _, ok := (lockState{keys: endless}).ends(); ok {
		t.Error("a lock without a lease ends")
	}
	if forever := (lockState{keys: endless}); !forever.holds(forever) {
		t.Error("a lock without a lease is not its holder's any more")
	}
	if lost := (lockState{keys: endless, lost: true}); lost.holds(lost) {
		t.Error("a lock that the server had lost is its holder's")
	}
	row := lockState{keys: map[string]keyState{"row": {row: true, now: at(0), end: at(500)}}}
	for end, want := range map[int]How{520: "", 2000: Ended} {
		if got := row.since(lockState{keys: map[string]keyState{"row": {row: true, now: at(600), end: at(end)}}}); got != want {
			t.Errorf("a row whose end is now at %d ms: %q, want %q", end, got, want)
		}
	}
}

// TestAMajorityOfAQuorum: what becomes of a lock on five servers follows from three of them.
func TestAMajorityOfAQuorum(t *testing.T) {
	begun := time.Now()
	quorum := func(there, ms int) map[string]keyState {
		keys := map[string]keyState{}
		for i := range there {
			keys[string(rune('a'+i))] = keyState{value: "mine", now: begun, end: begun.Add(time.Duration(ms) * time.Millisecond)}
		}
		return keys
	}
	was := lockState{own: true, keys: quorum(5, 500)}
	for there, want := range map[int]How{5: "", 4: "", 3: "", 2: Ended, 0: Ended} {
		is := lockState{keys: quorum(there, 500)}
		if got, holds := was.since(is), was.holds(is); got != want || holds != (there > 2) {
			t.Errorf("%d of 5 are there: %q, still held %t", there, got, holds)
		}
	}
}
