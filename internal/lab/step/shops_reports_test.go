package step

import (
	"encoding/json"
	"errors"
	"net"
	"testing"
	"time"

	"stocklock/internal/shop/labmode"
)

// TestTestbedsThatNumberAlike: each has its own sale and item, by the same ids, and hears of those alone.
func TestTestbedsThatNumberAlike(t *testing.T) {
	s, err := openReports()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	heard := map[string]chan heldReport{"slot1.1": make(chan heldReport, 4), "slot1.2": make(chan heldReport, 4)}
	for testbed, reports := range heard {
		defer s.follow(testbed, []uint64{7}, []string{"rehearsal-7-1"}, func(r heldReport) { reports <- r })()
	}
	for testbed, reports := range heard {
		shop, err := net.Dial("tcp", s.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer shop.Close()
		out := json.NewEncoder(shop)
		for _, report := range []labmode.StepReport{
			{Shop: testbed + "-2"}, {Sale: "rehearsal-7-1", Hold: 1, Text: "a step of the sale"}, {Text: "PEXPIRE stock:7 600"},
		} {
			if err := out.Encode(report); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range []string{"a step of the sale", "PEXPIRE stock:7 600"} {
			select {
			case r := <-reports:
				if r.shop != testbed+"-2" || r.Text != want {
					t.Errorf("%s hears %s of %s, want %s", testbed, r.Text, r.shop, want)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("%s does not hear %s", testbed, want)
			}
		}
	}
}

// TestAShopThatHoldsNoLonger: the run does not count, because the sale goes on by itself.
func TestAShopThatHoldsNoLonger(t *testing.T) {
	b := newBuyer('A', "a", nil)
	r := &shopsRun{run: &run{buyers: []*buyer{b}}, customers: []*shopper{{buyer: b}}}
	b.queue = []*held{{id: uint64(3)}}
	err := r.handle(t.Context(), heldReport{StepReport: labmode.StepReport{Sale: "a", Done: 3}})
	if slow, is := errors.AsType[slowError](err); !is || slow.doubts {
		t.Errorf("%v, want the machine to be too slow", err)
	}
}
