package labmode

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"stocklock/internal/sale"
)

// Action is what a fault does.
type Action string

const (
	// Sleep delays the one sale; the process goes on.
	Sleep Action = "sleep"
	// Kill ends the process as kill -9 would: nothing is cleaned up.
	Kill Action = "kill"
	// Stop stops the whole process with SIGSTOP. A child of it, started just before, sends SIGCONT
	// when the time is over.
	Stop Action = "stop"
	// Hold keeps the one sale until its client lets it go on: see [HoldsPath]. The duration bounds it.
	Hold Action = "hold"
	// HoldEach is Hold each time that the sale passes the point. All other actions are for the first time.
	HoldEach Action = "hold-each"
	// Lose loses the answer to the COMMIT of the sale's order, which is carried out. It says so at its point
	// with the fact [LostFact].
	Lose Action = "lose"
)

// LostFact is the fact of a point whose fault has lost the answer to a COMMIT.
const LostFact = "lost"

// MaxDuration is the longest sleep, stop or hold that [ParseFault] accepts.
const MaxDuration = time.Minute

// Fault is one action at one point of a sale. The zero value is no fault.
//
// The load test decides which request carries which fault and sends it in [FaultHeader]; the shop
// injects it when the sale comes to that point. The same seed gives the same schedule.
type Fault struct {
	Point  sale.Point
	Action Action
	For    time.Duration // how long to sleep or to stay stopped, or to be held at most; zero for Kill and Lose
}

// holds reports whether the fault keeps a sale until its client lets it go on.
func (f Fault) holds() bool { return f.Action == Hold || f.Action == HoldEach }

// String gives the form that [ParseFault] reads.
func (f Fault) String() string {
	if f.Action == Kill || f.Action == Lose {
		return fmt.Sprintf("%s %s", f.Point, f.Action)
	}
	return fmt.Sprintf("%s %s %s", f.Point, f.Action, f.For)
}

// ParseFault reads "<point> sleep <duration>", "<point> stop <duration>", "<point> hold <duration>",
// "<point> hold-each <duration>", "<point> kill" or "<point> lose".
func ParseFault(s string) (Fault, error) {
	words := strings.Fields(s)
	if len(words) < 2 {
		return Fault{}, fmt.Errorf("fault %q: want %q, with sleep, stop, hold or hold-each, or %q, with kill or lose", s, "<point> sleep <duration>", "<point> kill")
	}
	f := Fault{Point: sale.Point(words[0]), Action: Action(words[1])}
	if !slices.Contains(slices.Concat(sale.Points, sale.ViewPoints, []sale.Point{sale.Taken}), f.Point) {
		return Fault{}, fmt.Errorf("fault %q: no point %q, want one of %v", s, f.Point, sale.Points)
	}
	switch f.Action {
	case Kill, Lose:
		if len(words) != 2 {
			return Fault{}, fmt.Errorf("fault %q: %s takes no duration", s, f.Action)
		}
		return f, nil
	case Sleep, Stop, Hold, HoldEach:
	default:
		return Fault{}, fmt.Errorf("fault %q: no action %q, want sleep, stop, hold, hold-each, kill or lose", s, f.Action)
	}
	if len(words) != 3 {
		return Fault{}, fmt.Errorf("fault %q: %s takes one duration, such as 300ms", s, f.Action)
	}
	d, err := time.ParseDuration(words[2])
	if err != nil || d <= 0 || d > MaxDuration {
		return Fault{}, fmt.Errorf("fault %q: duration %q is not between 1ns and %s", s, words[2], MaxDuration)
	}
	f.For = d
	return f, nil
}
