package explain

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

func TestAnswersAndOrders(t *testing.T) {
	early := map[sale.Point]float64{sale.Read: 12, sale.Write: 13}
	for _, tt := range []struct {
		what  string
		ended verdict.Kind
		build func(e *Evidence)
		want  verdict.Cause
		says  []string
	}{
		{"a process that died before it wrote", verdict.Lied, func(e *Evidence) {
			counting(e)
			e.Declared.AnswersFirst = true
			e.add(customer{id: 1, shop: 1, points: early, reads: 2, answer: 14}, customer{id: 2, shop: 1, points: early, reads: 1, answer: 15},
				customer{id: 3, shop: 1, points: map[sale.Point]float64{sale.Read: 16}, fault: "read kill", outcome: "unknown"})
			e.Interventions = []Intervention{{From: at(20), Shop: "shop 1", What: Dead}}
		}, verdict.NoOrder, []string{"A customer was answered as sold, and has no order: #1 on shop 1.", "had passed the point write when shop 1 was killed by the fault of #3 (+8.0 ms)",
			"answers before it writes", "Another request was answered as sold without an order"}},
		{"an order that was never written, and nobody died", verdict.Lied, func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: early, reads: 2, answer: 14})
		}, verdict.Unexplained, []string{"#1 on shop 1.", "does not show why"}},
		{"a purchase of two requests is one order", verdict.Lied, func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: unguarded(10, 20), reads: 2}, customer{id: 2, shop: 2, answer: 30}, customer{id: 3, shop: 2, answer: 40})
			e.Requests[0].Key, e.Requests[1].Key = "k", "k"
			e.order(1, 2)
			key := "k"
			e.Orders[0].IdempotencyKey = &key
		}, verdict.Unexplained, []string{"#3 on shop 2."}},
		{"an order whose customer was rejected", verdict.Denied, func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: unguarded(10, 20), reads: 2, outcome: "busy", answer: 22})
			e.order(1, 2)
		}, verdict.Denial, []string{"#1 on shop 1 was answered with busy, and its order 100 stands"}},
		{"an order whose customer was fenced off, beside one who was busy and sold in the end", verdict.Denied, func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, outcome: "busy", answer: 5}, customer{id: 2, shop: 2, sent: 6, points: unguarded(10, 20), reads: 2},
				customer{id: 3, shop: 1, sent: 30, points: unguarded(31, 40), reads: 1, outcome: "fenced", answer: 42})
			e.Requests[0].Key, e.Requests[1].Key = "k", "k"
			e.order(2, 2)
			e.order(3, 1)
			key := "k"
			e.Orders[0].IdempotencyKey = &key
		}, verdict.Denial, []string{"#3 on shop 1 was answered with fenced off, and its order 101 stands"}},
		{"a customer who was sold a unit, and sold out then", verdict.Denied, func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: unguarded(10, 20), reads: 2, answer: 22}, customer{id: 2, shop: 2, sent: 10, outcome: "sold_out", answer: 21},
				customer{id: 3, shop: 2, sent: 30, outcome: "sold_out", answer: 31})
			e.order(1, 2)
			key := "k"
			e.Orders[0].IdempotencyKey = &key
			for i := range e.Requests {
				e.Requests[i].Key = key
			}
		}, verdict.Denial, []string{"#3 on shop 2 was answered with sold out, and its order 100 stands"}},
		{"two orders of one purchase", verdict.Twice, func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: unguarded(10, 20), reads: 2}, customer{id: 2, shop: 2, points: unguarded(12, 22), reads: 1})
			e.Requests[0].Key, e.Requests[1].Key = "k", "k"
			e.order(1, 2)
			e.order(2, 1)
			key := "k"
			e.Orders[0].IdempotencyKey, e.Orders[1].CreatedAt = &key, at(22)
			e.Orders[1].IdempotencyKey = &key
		}, verdict.SoldAgain, []string{"has two orders, 100 and 101"}},
		{"units that were counted out and never sold", verdict.Left, func(e *Evidence) {
			counting(e)
			e.Declared.AnswersFirst = true
			e.add(customer{id: 1, shop: 1, points: unguarded(10, 20), reads: 2}, customer{id: 2, shop: 2, sent: 30, outcome: "sold_out", answer: 35})
			e.order(1, 2)
			e.redis(9.0, "set", 10.0, "incrby", 11.0, "incrby")
		}, verdict.Unreturned, []string{"#2 on shop 2 was answered as sold out, and 1 of 2 units were never sold", "counted units out 2 times, and there are 1 orders"}},
		{"a customer who was sent away before others bought the last unit, and one who came after", verdict.Left, func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: unguarded(10, 20), reads: 2}, customer{id: 2, shop: 2, sent: 21, outcome: "sold_out", answer: 25},
				customer{id: 3, shop: 1, sent: 30, points: unguarded(31, 40), reads: 1}, customer{id: 4, shop: 2, sent: 50, outcome: "sold_out", answer: 51})
			e.order(1, 2)
			e.order(3, 1)
			e.SentAway = "7-2"
		}, verdict.Unexplained, []string{"#2 on shop 2 was answered as sold out while units were left, which were sold later.", "does not show why"}},
		{"units that were left", verdict.Left, func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: unguarded(10, 20), reads: 2}, customer{id: 2, shop: 2, sent: 30, outcome: "sold_out", answer: 35})
			e.order(1, 2)
		}, verdict.Unexplained, []string{"1 of 2 units were never sold", "does not show why"}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			e := evidence(tt.build)
			e.Verdict = tt.ended
			check(t, told(t, e), tt.want, tt.says)
		})
	}
}

// TestManyPurchasesAreExplainedInTime: each of the 50,000 was rejected once and then sold, but for what the verdicts name.
func TestManyPurchasesAreExplainedInTime(t *testing.T) {
	const many = 50_000
	e := evidence(func(e *Evidence) {
		for i := range many + 2 {
			key := fmt.Sprint("purchase-", i)
			e.add(customer{id: 2 * i, shop: 1, sent: 1, outcome: "busy", answer: 2}, customer{id: 2*i + 1, shop: 2, sent: 3, answer: 4})
			e.Requests[2*i].Key, e.Requests[2*i+1].Key = key, key
			if i == many {
				continue // answered as sold, without an order
			}
			e.order(2*i+1, 1)
			e.Orders[len(e.Orders)-1].IdempotencyKey = &key
		}
		e.Requests[2*many+3].Outcome = "busy"
		e.Orders = append(e.Orders, e.Orders[many])
	})
	for kind, want := range map[verdict.Kind]verdict.Cause{verdict.Lied: verdict.Unexplained, verdict.Denied: verdict.Denial, verdict.Twice: verdict.SoldAgain} {
		e.Verdict = kind
		if x := explainWithin(t.Context(), e, 20*time.Second); x.Cause != want {
			t.Errorf("%s: %s: %s", kind, x.Cause, words.English.Say(x.Why...))
		}
	}
}

// TestNobodyIsAccused where the record does not have who was sent away, or oversold.
func TestNobodyIsAccused(t *testing.T) {
	for _, tt := range []struct {
		what  string
		ended verdict.Kind
		build func(e *Evidence)
	}{
		{"a customer who was sent away after the attack", verdict.Left, func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: unguarded(10, 20), reads: 2}, customer{id: 2, shop: 2, sent: 30, outcome: "sold_out", answer: 35})
			e.order(1, 2)
			e.SentAway = "7-3"
		}},
		{"nobody of the attack was sent away before all was sold", verdict.Left, func(e *Evidence) {
			e.InitialStock = 1
			e.add(customer{id: 1, shop: 1, points: unguarded(10, 20), reads: 1}, customer{id: 2, shop: 2, sent: 30, outcome: "sold_out", answer: 35})
			e.order(1, 1)
		}},
		{"orders that are beyond no stock", verdict.Oversold, func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: unguarded(10, 20), reads: 2})
			e.order(1, 2)
		}},
	} {
		e := evidence(tt.build)
		e.Verdict = tt.ended
		if said := words.English.Say(told(t, e).Why...); said != "The record does not show which request it was." {
			t.Errorf("%s: it says %q", tt.what, said)
		}
	}
}

// twoOfOne are two sales that a counter gave the same unit, the second one after the first had it.
func twoOfOne(e *Evidence) {
	counting(e)
	e.InitialStock = 1
	e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Read: 10, sale.Write: 11, sale.Written: 60}, reads: 1},
		customer{id: 2, shop: 2, sent: 20, points: map[sale.Point]float64{sale.Read: 40, sale.Write: 41, sale.Written: 70}, reads: 1})
	// The order is written in the background, which reads again.
	e.Events = append(e.Events, labmode.Event{Time: at(50), Shop: "shop 1", Request: "7-1", Point: sale.Read, Facts: map[string]any{"stock": json.Number("1")}})
	e.order(1, 1)
	e.order(2, 1)
	e.Orders[0].CreatedAt, e.Orders[1].CreatedAt = at(59), at(69)
}

// overdue is a sale that held its unit from 10 to 700, and one that had it from 600 on.
func overdue(fault string) func(e *Evidence) {
	return func(e *Evidence) {
		holding(e)
		e.InitialStock = 1
		e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Read: 10, sale.Write: 690, sale.Written: 700}, reads: 1, fault: fault},
			customer{id: 2, shop: 2, sent: 20, points: unguarded(600, 620), reads: 1})
		for i := range e.Events {
			if e.Events[i].Point == sale.Written {
				e.Events[i].Facts["held"] = json.Number("1")
				if e.Events[i].Request == "7-1" {
					e.Events[i].Facts["held"] = json.Number("0")
				}
			}
		}
		e.order(2, 1)
		e.order(1, 1)
	}
}

func TestUnitsKeptElsewhere(t *testing.T) {
	for _, tt := range []struct {
		what  string
		build func(e *Evidence)
		want  verdict.Cause
		says  []string
	}{
		{"a counter that was evicted", func(e *Evidence) {
			twoOfOne(e)
			e.redis(9.0, "set", 10.0, "incrby", 30.0, "evicted", 39.0, "set", 39.5, "incrby")
		}, verdict.Evicted, []string{"Redis counted unit 1 out twice, to #1 on shop 1 and then to #2 on shop 2", "evicted its counter (+20 ms)", "where the orders of 1 earlier sale were still to be written",
			"orders for 2 units, and the stock was 1"}},
		{"a counter whose server died", func(e *Evidence) {
			twoOfOne(e)
			e.redis(9.0, "set", 10.0, "incrby", 30.0, "gone")
		}, verdict.Forgotten, []string{"Redis died with its counter (+20 ms)", "had an older count"}},
		{"a counter whose server forgot it", func(e *Evidence) {
			twoOfOne(e)
			e.redis(9.0, "set", 10.0, "incrby", 30.0, "gone")
			e.Interventions = []Intervention{{From: at(29), Until: at(35), What: "redis-emptied"}}
		}, verdict.Forgotten, []string{"Redis restarted without its data (+20 ms)"}},
		{"a counter that nothing happened to", func(e *Evidence) {
			twoOfOne(e)
			e.redis(9.0, "set", 10.0, "incrby", 39.5, "incrby")
		}, verdict.Unexplained, []string{"counted unit 1 out twice"}},
		{"a hold that was outlasted", overdue("read sleep 680ms"), verdict.Overrun, []string{"#1 on shop 1 worked for 680 ms", "no longer in MySQL when it confirmed it (+690 ms)", "It still made order 101",
			"#2 on shop 2 had held units after the end of that hold", "orders for 2 units, and the stock was 1"}},
		{"a hold whose process was stopped", overdue("read stop 680ms"), verdict.LateWrite, []string{"#1 on shop 1 was stopped for 680 ms (SIGSTOP) while it held its units"}},
		{"a hold whose process was stopped by another's fault", func(e *Evidence) {
			overdue("")(e)
			e.add(customer{id: 3, shop: 1, points: map[sale.Point]float64{sale.Read: 11, sale.Write: 689}, fault: "read stop 678ms", outcome: "conflict", answer: 701})
		}, verdict.LateWrite, []string{"The process of #1 on shop 1 was stopped for 678 ms"}},
		{"a hold that was late by itself", overdue(""), verdict.Overrun, []string{"#1 on shop 1 was inside for longer than its lease"}},
		{"a hold of which nothing was noted", func(e *Evidence) {
			overdue("")(e)
			for i := range e.Events {
				delete(e.Events[i].Facts, "held")
			}
		}, verdict.Unexplained, []string{"orders for 2 units"}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			x := told(t, evidence(tt.build))
			if tt.want == verdict.Unexplained {
				if x.Known() {
					t.Errorf("explained by %s", x.Cause)
				}
				return
			}
			check(t, x, tt.want, tt.says)
			for _, s := range x.Steps {
				if s.Text.Key == "step-wrote" {
					t.Errorf("%+v: what an order has is not what the row had", s)
				}
			}
		})
	}
}

// TestAnnouncementsThatAreReadLate: a busy machine reads them after the sales that they let in had noted
// their entry.
func TestAnnouncementsThatAreReadLate(t *testing.T) {
	e := evidence(lateSale(sale.Written))
	for i := range e.Changes {
		if e.Changes[i].What == eventDel {
			e.Changes[i].Time = e.Changes[i].Time.Add(3 * clockTolerance)
		}
	}
	check(t, told(t, e), verdict.ForeignDelete, []string{"#0 on shop 3 released"})
}

// TestADeadlineThatOthersMoved: a process that tries to take over a lock, and is too late, replaces the
// deadline of the new holder by its own. The lock is still the holder's until that has passed.
func TestADeadlineThatOthersMoved(t *testing.T) {
	e := evidence(func(e *Evidence) {
		overlap("read sleep 1180ms")(e)
		e.redis(9.0, "set", 11.0, "set", 12.0, "set", 519.0, "set", 540.0, "del")
	})
	check(t, told(t, e), verdict.Overrun, []string{"#2 on shop 2 took the lock over (+509 ms)"})

	// #1 took the lock over itself, from a holder that is not looked at.
	e = evidence(func(e *Evidence) {
		overlap("read sleep 1180ms")(e)
		e.Events = append([]labmode.Event{{Time: at(-490), Shop: "shop 3", Request: "7-0", Point: sale.Acquired}}, e.Events...)
		e.Requests = append(e.Requests, Request{ID: "7-0", Shop: "shop 3", Outcome: "unknown"})
		e.redis(-491.0, "set", 9.5, "set", 519.0, "set", 540.0, "del")
	})
	check(t, told(t, e), verdict.Overrun, []string{"#2 on shop 2 took the lock over (+509 ms)"})

	// The deadline that had passed was the earlier holder's, not that of #1.
	e.Changes, e.Interventions = nil, []Intervention{{From: begun, Shop: "shop 2", What: "clock-ahead 5s"}}
	e.redis(-491.0, "set", 9.5, "set", 200.0, "set", 540.0, "del")
	for i := range e.Events {
		if e.Events[i].Request == "7-2" {
			e.Events[i].Time = e.Events[i].Time.Add(-319 * time.Millisecond)
		}
	}
	check(t, told(t, e), verdict.ClockSkew, []string{"#2 on shop 2 took the lock over from #1 on shop 1"})
}
