package explain

import (
	"strings"
	"testing"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
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
