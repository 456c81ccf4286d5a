package soak

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/testserver"
)

// TestEachWayToBeWrongIsFound compares one customer's answer with the orders under the customer's
// key.
func TestEachWayToBeWrongIsFound(t *testing.T) {
	for _, test := range []struct {
		name   string
		bought uint64   // the order in the 201, 0 without one
		orders []uint64 // that there are
		found  string   // empty for nothing
	}{
		{"sold", 7, []uint64{7}, ""},
		{"sold, and answered without an id", anyID, []uint64{7}, ""},
		{"not sold", 0, nil, ""},
		{"a 201 without an order", 7, nil, "1 answers without their order"},
		{"a 201 without an id or an order", anyID, nil, "1 answers without their order"},
		{"a 201 with another's order", 7, []uint64{8}, "1 answers without their order"},
		{"two orders for one key", 7, []uint64{7, 9}, "1 orders that a customer has twice"},
		{"an order after a refusal, or without an answer", 0, []uint64{7}, "1 orders without an answer"},
		{"an order with a row too many", 7, []uint64{7, 7}, "1 answers without their order"},
	} {
		a, sold := Account{Strategy: "x", Orders: 1}, &items{strategies: []declared.Strategy{{Name: "x"}}}
		c := newCustomers(1, nil, []*items{sold})
		c.bought = []uint64{test.bought}
		var orders []order
		for _, id := range test.orders {
			orders = append(orders, order{of: id, public: id})
		}
		a.compare(c, sold, orders)
		var r Report
		r.judge(a)
		if test.found == "" && len(r.Findings) > 0 || test.found != "" && !slices.Contains(r.Findings, "x: "+test.found) {
			t.Errorf("%s: found %q, want %q", test.name, r.Findings, test.found)
		}
	}
	for what, a := range map[string]Account{
		"units oversold": {Orders: 1, Oversold: 1}, "updates lost": {Orders: 1, LostUpdates: -1}, "without a customer's key": {Orders: 1, Keyless: 1},
		"nothing was sold": {},
	} {
		var r Report
		r.judge(a)
		if len(r.Findings) != 1 || !strings.Contains(r.Findings[0], what) {
			t.Errorf("found %q, want %q", r.Findings, what)
		}
	}
	r := Report{Options: Options{Sales: 10}}
	if r.judge(Account{Orders: 9, Left: 1}); len(r.Findings) != 1 || !strings.Contains(r.Findings[0], "1 units are left") {
		t.Errorf("found %q where not all units are sold", r.Findings)
	}
}

// TestTheAnswerNamesItsOrder, in lab mode and to customers.
func TestTheAnswerNamesItsOrder(t *testing.T) {
	const own, others = "01890a5d-ac96-774b-bcce-b302099a8057", "01890a5d-ac96-774b-bcce-b302099a8058"
	lab := `{"public_id":"` + own + `","item_id":%d,"quantity":%d}`
	for _, tt := range []struct {
		body           string
		item, quantity int
		order          string // that there is
		found          string // empty for nothing
	}{
		{lab, 7, 1, own, ""},
		{lab, 7, 1, others, "1 answers without their order"},
		{`{"id":"` + own + `","item_id":%d,"quantity":%d}`, 7, 1, own, ""},
		{`{"id":"` + own + `","item_id":%d,"quantity":%d}`, 7, 1, others, "1 answers without their order"},
		{lab, 8, 1, own, "not what was ordered"},
		{lab, 7, 2, own, "not what was ordered"},
	} {
		a, sold := Account{Orders: 1}, &items{strategies: []declared.Strategy{{}}, all: []audit.Run{{ItemID: 7}}, inTurn: true}
		c := newCustomers(1, []*rig.TestbedShop{{Shop: &rig.Shop{}}}, []*items{sold})
		asked, _ := c.next()
		c.answered(load.Answer{Order: asked, Outcome: load.Sold, Body: fmt.Appendf(nil, tt.body, tt.item, tt.quantity)})
		a.compare(c, sold, []order{{of: 1, public: idOf(tt.order)}})
		var r Report
		r.judge(a)
		found := strings.Join(append(r.Findings, c.failures...), "; ")
		if tt.found == "" && found != "" || !strings.Contains(found, tt.found) {
			t.Errorf(tt.body+" with the order %s: found %q, want %q", tt.item, tt.quantity, tt.order, found, tt.found)
		}
	}
}

// TestAnExampleTellsEachTry, also those that were refused and leave nothing in doubt.
func TestAnExampleTellsEachTry(t *testing.T) {
	sold := &items{strategies: []declared.Strategy{{}}, all: []audit.Run{{}}, inTurn: true}
	c, a := newCustomers(1, []*rig.TestbedShop{{Shop: &rig.Shop{}}}, []*items{sold}), Account{}
	asked, _ := c.next()
	c.answered(load.Answer{Order: asked, Outcome: load.Refused})
	c.answered(load.Answer{Order: asked, Outcome: load.Sold})
	a.compare(c, sold, nil)
	if len(a.Examples) != 1 || !strings.Contains(a.Examples[0], "answered refused by shop 1, sold by shop 1,") || a.Doubtful != 0 {
		t.Errorf("%q, %d in doubt", a.Examples, a.Doubtful)
	}
}

// TestSavedCounts: one line, in which a soak of kills has no recovery.
func TestSavedCounts(t *testing.T) {
	r := Report{Options: Options{Seed: 3}, Lasted: 90 * time.Second, Purchases: 9, Findings: []string{"one"},
		Recoveries: recoveries{&kinds[0]: {Times: 2, Worst: time.Second}, &kinds[1]: {Times: 3, Worst: 1510 * time.Millisecond}},
		Accounts:   []Account{{Orders: 4, Lines: 5, Doubtful: 1, Sold: 6, Left: 7}, {Orders: 1, Lines: 2, Sold: 10}}}
	const counts = " 90 seconds 9 customers 1 in-doubt-at-first 5 orders 7 lines 23 units 1 findings\n"
	for name, sales := range map[string]int64{"seed=3 5 1.51 worst-recovery-s": 0, "kills 5": 16} {
		var out strings.Builder
		r.Sales = sales
		if err := r.Save(&out); err != nil || out.String() != "BenchmarkSoak/"+name+counts {
			t.Errorf("saved %q, %v, want %s%s", &out, err, name, counts)
		}
	}
}

// TestAFaultThatNoSaleMet is no fault in a sale: a kill is a plain one then, and a stop was none. What did not recover is kept.
func TestAFaultThatNoSaleMet(t *testing.T) {
	all := recoveries{}
	all.add(episode{faults: []fault{{kind: &kinds[1], missed: true}, {kind: &kinds[3], missed: true}}}, time.Second, false)
	all.add(episode{faults: []fault{{kind: &kinds[1]}, {kind: &kinds[3]}}}, time.Second, true)
	for at, want := range []Recovery{{1, time.Second, time.Second, 1}, {1, time.Second, time.Second, 0}, {}, {1, time.Second, time.Second, 1}} {
		if got := all[&kinds[at]]; got != want {
			t.Errorf("%s: %+v, want %+v", kinds[at].title(), got, want)
		}
	}
	r := Report{Recoveries: recoveries{&kinds[3]: {Worst: time.Second, Never: 1}}}
	if !strings.Contains(r.recoveryTable(), kinds[3].title()) {
		t.Error("a finding has a fault that the table leaves out")
	}
	processes, err := testserver.New()
	if err != nil {
		t.Fatal(err)
	}
	defer processes.Close()
	process := &testserver.Process{Program: testserver.Program{
		Name: "sleep", Args: []string{"sleep", "600"}, Dir: t.TempDir(), Ready: func(context.Context) error { return nil }}}
	if err := processes.Launch(t.Context(), process); err != nil {
		t.Fatal(err)
	}
	shops := []*rig.TestbedShop{{Shop: &rig.Shop{Process: process}}}
	for _, stopped := range []bool{false, true} {
		s := &soak{testbed: &rig.Testbed{Shops: shops}}
		s.customers = newCustomers(1, shops, []*items{{strategies: []declared.Strategy{{}}, all: []audit.Run{{}}, inTurn: true}})
		f := fault{kind: &kinds[3], lasts: lease}
		buying, stop := context.WithCancel(t.Context())
		var customer sync.WaitGroup
		customer.Go(func() {
			for buying.Err() == nil {
				order, _ := s.customers.next()
				if stopped && order.Fault.Action == labmode.Stop {
					if err := process.Pause(); err != nil {
						t.Error(err)
					}
					time.Sleep(time.Second) // many looks
					if err := process.Resume(); err != nil {
						t.Error(err)
					}
				}
				s.customers.answered(load.Answer{Order: order, Outcome: load.Busy, Latency: lease})
			}
		})
		e := episode{faults: []fault{f}}
		_, err := s.inject(t.Context(), e)
		stop()
		if customer.Wait(); err != nil || e.faults[0].missed == stopped {
			t.Errorf("a slow request, whose shop was stopped %t: missed %t, %v", stopped, e.faults[0].missed, err)
		}
	}
}

func TestSlowRecoveryIsFound(t *testing.T) {
	e := episode{faults: []fault{{kind: &kinds[0]}, {kind: &kinds[1]}}}
	r := Report{Options: Options{RecoverWithin: time.Second}, Recoveries: recoveries{}, Before: &Gauges{}, After: &Gauges{}}
	r.Recoveries.add(e, 900*time.Millisecond, true)
	if r.close(); !r.Survived() {
		t.Errorf("found %q", r.Findings)
	}
	r.Recoveries.add(e, 1100*time.Millisecond, true)
	if r.close(); len(r.Findings) != 2 {
		t.Errorf("both kinds were slow: found %q", r.Findings)
	}
	r.Findings = nil
	r.Recoveries.add(e, 3*time.Second, false)
	if r.close(); len(r.Findings) != 2 || !strings.Contains(r.Findings[0], "did not recover") {
		t.Errorf("both kinds were not recovered from: found %q", r.Findings)
	}
	if first := r.Recoveries[&kinds[0]]; first.Times != 3 || first.Worst != 3*time.Second || first.Never != 1 {
		t.Errorf("counted %+v", first)
	}
}

// TestASoakWithoutAFaultIsUndecided: what was not met is not survived. What was found counts all the same.
func TestASoakWithoutAFaultIsUndecided(t *testing.T) {
	for _, test := range []struct {
		Report
		says string // empty for one that decides
	}{
		{Report{Options: Options{Sales: 10}}, "a shorter --kill-every"},
		{Report{Recoveries: recoveries{&kinds[3]: {Worst: 1}}}, "no fault was met"},
		{Report{Recoveries: recoveries{&kinds[3]: {Times: 1}}}, ""},
		{Report{Findings: []string{"one"}}, ""},
	} {
		if why := test.Undecided(); (why != "") != (test.says != "") || !strings.Contains(why, test.says) {
			t.Errorf("%+v: undecided since %q, want %q", test.Recoveries, why, test.says)
		}
	}
}

func TestLeaksAreFound(t *testing.T) {
	gauges := func(change func(*Gauges)) *Gauges {
		g := &Gauges{Shops: []Gauge{{Shop: "shop-1", Goroutines: 20, Heap: 5 << 20}}, KeysThatExpire: 4}
		change(g)
		return g
	}
	before := gauges(func(*Gauges) {})
	for what, change := range map[string]func(*Gauges){
		"goroutines":             func(g *Gauges) { g.Shops[0].Goroutines += moreGoroutines + 1 },
		"bytes of heap":          func(g *Gauges) { g.Shops[0].Heap = 40 << 20 },
		"in use at rest":         func(g *Gauges) { g.Shops[0].Busy = 1 },
		"unknown connections":    func(g *Gauges) { g.MySQL = 1 },
		"1 locks":                func(g *Gauges) { g.Locks = 1 },
		"1 processes wait":       func(g *Gauges) { g.Waiters = 1 },
		"keys that never expire": func(g *Gauges) { g.KeysForEver = 1 },
		"":                       func(g *Gauges) { g.Shops[0].Goroutines += moreGoroutines; g.Shops[0].MySQL = 50; g.KeysThatExpire = 99 },
	} {
		found := leaks(before, gauges(change))
		if what == "" && len(found) > 0 || what != "" && (len(found) != 1 || !strings.Contains(found[0], what)) {
			t.Errorf("found %q, want %q", found, what)
		}
	}
}

// TestASettlingThatIsInterruptedFindsNothing: customers who had no time to ask again are no finding.
func TestASettlingThatIsInterruptedFindsNothing(t *testing.T) {
	c := newCustomers(1, nil, nil)
	c.again = append(c.again, &purchase{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if open, err := c.settle(ctx, time.Second); open != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d without an answer, %v, want one and the interruption", open, err)
	}
}
