package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	if os.Getenv("TRY") == "" {
		t.Skip()
	}
	sched, err := Parse(os.Getenv("SCHED"))
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	s, err := OpenStage(context.Background(), StageOptions{Lease: 300 * time.Millisecond, Lanes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fmt.Println("stage", time.Since(begun))
	for range 2 {
		begun = time.Now()
		r, err := s.PlaySchedule(t.Context(), os.Getenv("TRY"), sched.Customers(), sched)
		fmt.Println("played", time.Since(begun), err)
		for _, e := range r.Entries {
			st, _ := json.Marshal(e.State)
			fmt.Printf("%7.1f %-10s %-6s %s => %s %s %s own=%v\n         %s\n", e.AtMS, e.Choice, e.Server, e.Sent, e.Answer, e.Blocked, e.Note, e.Own, st)
		}
		o, _ := json.Marshal(r.Outcome)
		fmt.Println(r.Listed, "|", r.switches, string(o))
		fmt.Printf("%+v\n", r.tenures)
	}
}

func TestExploreTry(t *testing.T) {
	if os.Getenv("EXPLORE") == "" {
		t.Skip()
	}
	var events []Event
	for _, e := range strings.Fields(os.Getenv("EVENTS")) {
		events = append(events, Event(e))
	}
	n, sw := 2, 0
	fmt.Sscan(os.Getenv("N"), &n)
	fmt.Sscan(os.Getenv("SW"), &sw)
	begun := time.Now()
	s, err := OpenStage(context.Background(), StageOptions{Lease: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fmt.Println("stage", time.Since(begun))
	for _, name := range strings.Fields(os.Getenv("EXPLORE")) {
		begun = time.Now()
		f, err := Explore(t.Context(), s, Search{Plan: Plan{Strategy: name, Customers: n, Events: events, MaxEvents: 1, LocalClock: os.Getenv("CLOCK") != "", Everything: os.Getenv("UNPRUNED") != ""},
			Switches: sw, Unpruned: os.Getenv("UNPRUNED") != ""}, nil)
		fmt.Println(name, time.Since(begun), f.Runs, f.Partial, f.Bad, f.outcomes, err)
		for _, r := range f.Shortest {
			fmt.Println("   ", r.Outcome.Verdict, r.Outcome.Cause, r.switches, ":", r.Listed)
		}
	}
}
