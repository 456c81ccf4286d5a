package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
	"stocklock/internal/strategy/declared"
)

var begun = time.Unix(1_700_000_000, 0)

// at is a time in milliseconds since the attack's begin.
func at(ms float64) time.Time { return begun.Add(time.Duration(ms * float64(time.Millisecond))) }

const lease = 500

// customer adds a request that asks at its first time, and then comes by the points at
// the times given; what it reads and writes comes from the points' facts.
type customer struct {
	id      int
	shop    int
	sent    float64
	points  map[sale.Point]float64
	reads   int64
	wrote   int64
	fault   string // such as "write stop 1s"
	nested  bool
	lease   time.Duration // in milliseconds; 0 for that of the evidence
	outcome string
	answer  float64
}

func (e *Evidence) add(sales ...customer) {
	for _, s := range sales {
		id := fmt.Sprintf("7-%d", s.id)
		shop := fmt.Sprintf("shop %d", s.shop)
		for _, p := range sale.Points {
			when, passed := s.points[p]
			if !passed {
				continue
			}
			facts := map[string]any{}
			if p == sale.Read {
				facts["stock"] = json.Number(fmt.Sprint(s.reads))
			}
			if p == sale.Written {
				facts["stock"] = json.Number(fmt.Sprint(s.wrote))
			}
			if strings.HasPrefix(s.fault, string(p)+" ") {
				facts["fault"] = s.fault
			}
			e.Events = append(e.Events, labmode.Event{Time: at(when), Shop: shop, Request: id, Point: p, Facts: facts})
		}
		r := Request{ID: id, Shop: shop, Sent: at(s.sent), Outcome: s.outcome, Nested: s.nested, Fault: s.fault != "", Lease: s.lease * time.Millisecond}
		if s.outcome == "" {
			r.Outcome = "sold"
		}
		if s.answer > 0 {
			r.Answered = at(s.answer)
		} else if when, ok := s.points[sale.Released]; ok {
			r.Answered = at(when)
		} else if when, ok := s.points[sale.Written]; ok {
			r.Answered = at(when)
		}
		e.Requests = append(e.Requests, r)
	}
}

// order commits the sale with this number.
func (e *Evidence) order(id int, read int64) {
	e.Orders = append(e.Orders, stock.Order{ID: uint64(100 + len(e.Orders)), RequestID: fmt.Sprintf("7-%d", id), Quantity: 1, StockRead: read, StockWritten: read - 1})
}

func (e *Evidence) redis(changes ...any) {
	for i := 0; i < len(changes); i += 2 {
		e.Changes = append(e.Changes, Change{Time: at(changes[i].(float64)), Server: "redis", Key: "stock:7", What: RedisEvent(changes[i+1].(string))})
	}
}

// whole are the points of a sale that enters, takes a while, and leaves.
func whole(enter, read, written, released float64) map[sale.Point]float64 {
	return map[sale.Point]float64{
		sale.Acquiring: enter, sale.Acquired: enter, sale.Read: read, sale.Write: written - 0.5, sale.Written: written, sale.Releasing: written, sale.Released: released,
	}
}

// fact adds a fact to a point of each sale, by the number of the sale.
func (e *Evidence) fact(p sale.Point, name string, value func(n int) string) {
	for i, event := range e.Events {
		if event.Point == p {
			n, _ := strconv.Atoi(strings.TrimPrefix(event.Request, "7-"))
			e.Events[i].Facts[name] = value(n)
		}
	}
}

// unguarded are those of a sale without a lock.
func unguarded(read, written float64) map[sale.Point]float64 {
	return map[sale.Point]float64{sale.Read: read, sale.Write: written - 0.5, sale.Written: written}
}

// explained takes the verdict from the orders, where none is given. It waits for longer than a cell's explanation may take: under load, with the race detector, a chain of 500 took 7 s.
func explained(e Evidence) *Explanation {
	if _, oversold := e.pastTheStock(); e.Verdict == "" && oversold {
		e.Verdict = verdict.Oversold
	} else if e.Verdict == "" {
		e.Verdict = verdict.Held
	}
	return explainWithin(context.Background(), e, 2*time.Minute)
}

// told is an explanation whose sentences agree with the record.
func told(t *testing.T, e Evidence) *Explanation {
	t.Helper()
	slices.SortStableFunc(e.Events, func(a, b labmode.Event) int { return a.Time.Compare(b.Time) })
	x := explained(e)
	checkFacts(t, e, x)
	return x
}

func evidence(build func(e *Evidence)) Evidence {
	e := Evidence{Exclusive: true, Lease: lease * time.Millisecond, InitialStock: 2, Began: begun, Ended: at(3000), Traced: true}
	build(&e)
	return e
}

// overlap has #1 inside from 10 to 1200, and #2 from 520 to 540: both read 2.
func overlap(fault string) func(e *Evidence) {
	return func(e *Evidence) {
		one := customer{id: 1, shop: 1, points: whole(10, 12, 1199, 1200), reads: 2, wrote: 1, fault: fault}
		if strings.HasPrefix(fault, "write") {
			one.points[sale.Write] = 15
		}
		e.add(one, customer{id: 2, shop: 2, sent: 300, points: whole(520, 521, 539, 540), reads: 2, wrote: 1})
		e.order(2, 2)
		e.order(1, 2)
		e.order(3, 1)
	}
}

// check holds an explanation to its cause, and its drawing to what it says.
func check(t *testing.T, x *Explanation, want verdict.Cause, says []string) {
	t.Helper()
	if x == nil {
		t.Fatalf("no explanation, want %s", want)
	}
	if x.Cause != want {
		t.Errorf("cause %s, want %s: %s", x.Cause, want, words.English.Say(x.Why...))
	}
	for _, s := range says {
		if !strings.Contains(words.English.Say(x.Why...), s) {
			t.Errorf("it says %q, want %q in it", words.English.Say(x.Why...), s)
		}
	}
	if want == verdict.Untraced {
		return
	}
	if x.ToMS <= x.FromMS || x.Moment == nil || x.Moment.AtMS < x.FromMS || x.Moment.AtMS > x.ToMS {
		t.Errorf("drawn from %v to %v, the moment %+v: want it within", x.FromMS, x.ToMS, x.Moment)
	}
	last := x.FromMS
	for _, s := range x.Steps {
		if s.AtMS < last || s.AtMS > x.ToMS || s.Column >= len(x.Columns) || s.To >= len(x.Columns) {
			t.Errorf("step %+v, want after %v, until %v, in one of %d columns", s, last, x.ToMS, len(x.Columns))
		}
		last = s.AtMS
	}
	set := map[int]bool{}
	for _, s := range x.Steps {
		switch s.Text.Key {
		case "step-set", "step-set-anew":
			set[s.Column] = true
		case "step-expired", "step-deleted", "step-renewed":
			if !set[s.Column] {
				t.Errorf("%+v is drawn, and nothing that set the lock before it", s)
			}
		}
	}
	for _, l := range x.Columns {
		for _, s := range l.Spans {
			if s.FromMS < x.FromMS || s.ToMS > x.ToMS || s.ToMS <= s.FromMS {
				t.Errorf("column %s: span %+v, want within %v to %v", words.English.Say(l.Name), s, x.FromMS, x.ToMS)
			}
		}
	}
}

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
