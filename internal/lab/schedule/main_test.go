package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
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
	s, err := OpenStage(context.Background(), StageOptions{Lease: 300 * time.Millisecond, Events: sched.Events(), Lanes: 1})
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
