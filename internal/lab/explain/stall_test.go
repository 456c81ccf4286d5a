package explain

import (
	"strings"
	"testing"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/declared"
)

func TestStallIsTheMachinesFaultOnly(t *testing.T) {
	begun := time.Now()
	at := func(ms int) time.Time { return begun.Add(time.Duration(ms) * time.Millisecond) }
	for _, tt := range []struct {
		what          string
		left          int // when it released
		fault         bool
		interventions []Intervention
		want          bool
	}{
		{"in time", 90, false, nil, false},
		{"too long with nothing done to it", 130, false, nil, true},
		{"too long on purpose", 130, true, nil, false},
		{"too long while its shop was cut off", 130, false, []Intervention{{From: at(20), Until: at(60), Shop: "shop 1"}}, false},
		{"too long while another shop was cut off", 130, false, []Intervention{{From: at(20), Until: at(60), Shop: "shop 2"}}, true},
		{"too long while a server was away", 130, false, []Intervention{{From: at(20), Until: at(60)}}, false},
	} {
		e := Evidence{
			Lease: 100 * time.Millisecond, Ended: at(200), Interventions: tt.interventions,
			Requests: []Request{{ID: "1-1", Shop: "shop 1", Sent: at(0), Fault: tt.fault}},
			Events: []labmode.Event{
				{Time: at(0), Request: "1-1", Shop: "shop 1", Point: sale.Acquired},
				{Time: at(tt.left), Request: "1-1", Shop: "shop 1", Point: sale.Released},
			},
		}
		if got := e.Stall(); (got != "") != tt.want || tt.want && !strings.Contains(got, "130 ms") {
			t.Errorf("%s: Stall = %q", tt.what, got)
		}
	}
}

// TestAHeldSaleStalls: the play holds a second sale, whose lease is not to end. Its lock is in Redis, or its units are
// reserved in MySQL, before it reads. Another sale of its shop is held meanwhile.
func TestAHeldSaleStalls(t *testing.T) {
	begun := time.Now()
	at := func(ms int) time.Time { return begun.Add(time.Duration(ms) * time.Millisecond) }
	held := map[string]any{"fault": "read hold 18s"}
	for _, tt := range []struct {
		enters sale.Point
		kept   declared.LeaseHome
		left   int // when it has written
		want   string
	}{
		{sale.Acquired, declared.LeaseInExpiry, 2000, ""},
		{sale.Acquired, declared.LeaseInExpiry, 2163, "2153 ms"},
		{sale.Read, declared.LeaseInMySQL, 1999, ""},
		{sale.Read, declared.LeaseInMySQL, 2163, "2163 ms"},
		{sale.Read, declared.NoLease, 2163, ""},
	} {
		e := Evidence{
			Lease: 500 * time.Millisecond, Ended: at(3000),
			Requests: []Request{{ID: "1-1", Shop: "shop 1", Sent: at(0), Fault: true}, {ID: "1-2", Shop: "shop 1", Sent: at(0), Lease: 2 * time.Second}},
			Events: []labmode.Event{
				{Time: at(5), Request: "1-1", Shop: "shop 1", Point: sale.Written, Facts: held},
				{Time: at(10), Request: "1-2", Shop: "shop 1", Point: tt.enters, Facts: held},
				{Time: at(tt.left), Request: "1-2", Shop: "shop 1", Point: sale.Written},
				{Time: at(2500), Request: "1-1", Shop: "shop 1", Point: sale.Released},
			},
		}
		e.Declared.Lease.Kept = tt.kept
		if got := e.Stall(); (got != "") != (tt.want != "") || !strings.Contains(got, tt.want) {
			t.Errorf("a lease of %q, and it has written after %d ms: Stall = %q", tt.kept, tt.left, got)
		}
	}
}
