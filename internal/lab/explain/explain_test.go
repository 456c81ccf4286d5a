package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
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
		r := Request{ID: id, Shop: shop, Sent: at(s.sent), Outcome: s.outcome, Nested: s.nested, Fault: s.fault != ""}
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

// unguarded are those of a sale without a lock.
func unguarded(read, written float64) map[sale.Point]float64 {
	return map[sale.Point]float64{sale.Read: read, sale.Write: written - 0.5, sale.Written: written}
}

func explained(e Evidence) *Explanation { return Explain(context.Background(), e) }

func evidence(build func(e *Evidence)) Evidence {
	e := Evidence{Strategy: "s", Exclusive: true, Lease: lease * time.Millisecond, InitialStock: 2, Began: begun, Ended: at(3000), Traced: true}
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

func TestFirstViolation(t *testing.T) {
	expires := func(e *Evidence) {
		e.redis(9.0, "set", 9.1, "expire", 509.5, "expired", 519.0, "set", 519.1, "expire", 540.0, "del")
	}
	for _, tt := range []struct {
		what  string
		build func(e *Evidence)
		want  Cause
		says  []string
	}{
		{"no lock at all", func(e *Evidence) {
			e.Exclusive = false
			e.add(customer{id: 1, shop: 1, points: unguarded(1, 12), reads: 2, wrote: 1}, customer{id: 2, shop: 1, points: unguarded(2, 11), reads: 2, wrote: 1})
			e.order(2, 2)
			e.order(1, 2)
			e.order(3, 1)
		}, NoLock, []string{"#1 on shop 1", "#2 on shop 1", "stock of 2"}},
		{"a mutex in each process", func(e *Evidence) {
			e.Exclusive = false
			e.add(customer{id: 1, shop: 1, points: whole(1, 2, 12, 13), reads: 2, wrote: 1}, customer{id: 2, shop: 2, points: whole(2, 3, 11, 12), reads: 2, wrote: 1})
			e.order(2, 2)
			e.order(1, 2)
			e.order(3, 1)
		}, OneProcess, []string{"mutex of its own process"}},
		{"work longer than the lease", func(e *Evidence) { overlap("read sleep 1180ms")(e); expires(e) }, Overrun,
			[]string{"#1 on shop 1 worked for 118", "lease of 500 ms ended in Redis (+500 ms)", "#2 on shop 2 then got the lock"}},
		{"a lease after which others had theirs", func(e *Evidence) {
			overlap("read sleep 1180ms")(e)
			e.redis(9.0, "set", 9.1, "expire", 209.5, "expired", 210.0, "set", 210.1, "expire", 512.0, "expired", 519.0, "set", 519.1, "expire", 540.0, "del")
			e.Lease = 200 * time.Millisecond
		}, Overrun, []string{"ended in Redis (+200 ms)"}},
		{"a process that was stopped", func(e *Evidence) { overlap("write stop 1180ms")(e); expires(e) }, Paused, []string{"stopped for 118", "SIGSTOP"}},
		{"a holder that cannot renew", func(e *Evidence) {
			overlap("read sleep 1180ms")(e)
			expires(e)
			e.Interventions = append(e.Interventions, Intervention{From: at(14), Until: at(1250), Shop: "shop 1", What: "redis-cut"})
		}, CutOff, []string{"#1 on shop 1 was cut off from Redis"}},
		{"another shop's partition is not to blame", func(e *Evidence) {
			overlap("read sleep 1180ms")(e)
			expires(e)
			e.Interventions = append(e.Interventions, Intervention{From: at(14), Until: at(1250), Shop: "shop 3", What: "redis-cut"})
		}, Overrun, nil},
		{"a failover", func(e *Evidence) {
			overlap("write sleep 1180ms")(e)
			e.redis(9.0, "set", 9.1, "expire", 100.0, "gone")
			e.Changes = append(e.Changes, Change{Time: at(519), Server: "replica", Key: "stock:7", What: "set"})
		}, Failover, []string{"its Redis died (+90 ms)"}},
		{"a deadline that was taken over", func(e *Evidence) {
			overlap("read sleep 1180ms")(e)
			e.redis(9.0, "set", 519.0, "set", 540.0, "del")
		}, Overrun, []string{"#2 on shop 2 took the lock over (+509 ms)"}},
		{"a clock that runs ahead", func(e *Evidence) {
			e.Interventions = []Intervention{{From: begun, Shop: "shop 2", What: "clock-ahead 5s"}}
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 25, 26), reads: 2, wrote: 1}, customer{id: 2, shop: 2, points: whole(13, 14, 30, 31), reads: 2, wrote: 1})
			e.redis(9.5, "set", 12.5, "set", 25.5, "del")
			e.order(1, 2)
			e.order(2, 2)
			e.order(3, 1)
		}, ClockSkew, []string{"shop 2 has its clock ahead by 5s", "only 3.0 ms before"}},
		{"the same, noted the other way round", func(e *Evidence) {
			e.Interventions = []Intervention{{From: begun, Shop: "shop 2", What: "clock-ahead 5s"}}
			e.add(customer{id: 1, shop: 1, points: whole(10.4, 12, 25, 26), reads: 2, wrote: 1}, customer{id: 2, shop: 2, points: whole(10.2, 14, 30, 31), reads: 2, wrote: 1})
			e.redis(9.5, "set", 9.6, "set", 25.5, "del")
			e.order(1, 2)
			e.order(2, 2)
			e.order(3, 1)
		}, ClockSkew, []string{"#2 on shop 2 took the lock over from #1 on shop 1"}},
		{"a lease that was over before its holder knew of it", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(520, 522, 545, 546), reads: 2, wrote: 1}, customer{id: 2, shop: 2, points: whole(530, 531, 540, 541), reads: 2, wrote: 1})
			e.redis(9.0, "set", 9.1, "expire", 510.0, "expired", 529.0, "set", 529.1, "expire")
			e.order(2, 2)
			e.order(1, 2)
			e.order(3, 1)
		}, LateGrant, []string{"before shop 1 learned of it"}},
		{"nothing that explains it", func(e *Evidence) { overlap("")(e); e.redis(9.0, "set", 9.1, "expire") }, Unexplained, []string{"does not show why"}},
		{"no trace", func(e *Evidence) { overlap("")(e); e.Events, e.Traced = nil, false }, Untraced, []string{"Orders 100 and 101 both read a stock of 2"}},
	} {
		t.Run(tt.what, func(t *testing.T) { check(t, explained(evidence(tt.build)), tt.want, tt.says) })
	}
}

// lateSale is #0, late at a point from 20 to 530; the lock is #1's by then, and #2 gets in behind.
func lateSale(p sale.Point) func(e *Evidence) {
	return func(e *Evidence) {
		late := customer{id: 0, shop: 3, points: whole(5, 6, 20, 531), reads: 3, wrote: 2, fault: string(p) + " sleep 510ms"}
		late.points[sale.Releasing] = 530
		if p == sale.Releasing {
			late.points[sale.Releasing] = 20
		}
		e.InitialStock = 3
		e.add(late,
			customer{id: 1, shop: 1, points: whole(506, 507, 560, 561), reads: 2, wrote: 1},
			customer{id: 2, shop: 2, points: whole(532, 533, 555, 556), reads: 2, wrote: 1})
		e.redis(4.0, "set", 4.1, "expire", 504.5, "expired", 505.0, "set", 505.1, "expire", 530.5, "del", 531.5, "set", 531.6, "expire", 556.0, "del")
		e.order(0, 3)
		e.order(2, 2)
		e.order(1, 2)
		e.order(4, 1)
	}
}

func TestReleaseOfAnothersLock(t *testing.T) {
	check(t, explained(evidence(lateSale(sale.Written))), LateRelease, []string{"#0 on shop 3 released", "freed the lock that was #1 on shop 1's", "#2 on shop 2 got in"})
	check(t, explained(evidence(lateSale(sale.Releasing))), SplitRelease, []string{"#0 on shop 3 went on with its release", "deleted the lock that was #1 on shop 1's"})

	// #0 freed the lock of #1. #1 had written by then, and its release freed the lock of #2: #3
	// got in.
	cascade := func(e *Evidence) {
		e.InitialStock = 4
		late := customer{id: 0, shop: 3, points: whole(5, 6, 20, 531), reads: 4, wrote: 3, fault: "written sleep 510ms"}
		late.points[sale.Releasing] = 530
		e.add(late,
			customer{id: 1, shop: 1, points: whole(506, 507, 529, 540), reads: 3, wrote: 2},
			customer{id: 2, shop: 2, points: whole(532, 533, 560, 561), reads: 2, wrote: 1},
			customer{id: 3, shop: 3, points: whole(541, 542, 555, 556), reads: 2, wrote: 1})
		e.Events[len(e.Events)-1].Time = at(556)
		e.redis(4.0, "set", 504.5, "expired", 505.0, "set", 530.5, "del", 531.5, "set", 539.0, "del", 540.5, "set")
		e.order(0, 4)
		e.order(1, 3)
		e.order(3, 2)
		e.order(2, 2)
		e.order(4, 1)
	}
	check(t, explained(evidence(cascade)), LateRelease, []string{"#0 on shop 3", "The release of #1 on shop 1 then freed the lock of #2 on shop 2 in turn"})
}

// TestOrderOfAShopThatDied draws an order that its shop did not live to note.
func TestOrderOfAShopThatDied(t *testing.T) {
	x := explained(evidence(func(e *Evidence) {
		e.Exclusive = false
		e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Read: 1, sale.Write: 11}, reads: 2, outcome: "unknown", answer: 13},
			customer{id: 2, shop: 2, points: unguarded(2, 11), reads: 2, wrote: 1})
		e.order(2, 2)
		e.order(1, 2)
		e.order(3, 1)
		e.Orders[1].CreatedAt = at(12)
	}))
	check(t, x, NoLock, nil)
	if x.Moment == nil || x.Moment.AtMS != 11 || x.Steps[len(x.Steps)-1].AtMS < 11 {
		t.Errorf("moment %+v, want when MySQL has the order, 11 ms after its read", x.Moment)
	}
}

// TestOrderNotedLate draws both orders, even when the first was noted well after the second.
func TestOrderNotedLate(t *testing.T) {
	x := explained(evidence(func(e *Evidence) {
		e.Exclusive = false
		e.add(customer{id: 1, shop: 1, points: unguarded(1, 11), reads: 2, wrote: 1}, customer{id: 2, shop: 2, points: unguarded(2, 30), reads: 2, wrote: 1})
		e.order(2, 2)
		e.order(1, 2)
		e.order(3, 1)
	}))
	check(t, x, NoLock, nil)
	if last := x.Steps[len(x.Steps)-1]; English.Say(last.Text) != "wrote 1, order 100" {
		t.Errorf("the last step is %q, want the order that was noted last", English.Say(last.Text))
	}
}

// TestLockTakenInTwoSteps has #2 take the lock long before its guard is complete: just when #1
// notes that it has the lock, which #0 had freed by then.
func TestLockTakenInTwoSteps(t *testing.T) {
	e := evidence(func(e *Evidence) {
		lateSale(sale.Written)(e)
		e.Requests, e.Events, e.Changes = nil, nil, nil
		late := customer{id: 0, shop: 3, points: whole(5, 6, 20, 506), reads: 3, wrote: 2, fault: "written sleep 484ms"}
		late.points[sale.Releasing] = 504
		two := customer{id: 2, shop: 2, points: whole(560, 561, 570, 571), reads: 2, wrote: 1}
		two.points[sale.Acquiring] = 515
		e.add(late, customer{id: 1, shop: 1, points: whole(510, 511, 580, 581), reads: 2, wrote: 1}, two)
		e.redis(4.0, "set", 503.0, "expired", 503.1, "set", 504.9, "del", 514.0, "set", 559.0, "expire")
	})
	check(t, explained(e), LateRelease, []string{"#0 on shop 3 released", "#2 on shop 2 got in"})
}

func TestStuck(t *testing.T) {
	for _, tt := range []struct {
		what  string
		build func(e *Evidence)
		want  Cause
		says  []string
	}{
		{"a dead holder", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Acquiring: 10, sale.Acquired: 10, sale.Read: 12}, reads: 2, fault: "read kill", outcome: "unknown"})
			e.redis(9.0, "set")
			e.Locks = []Lock{{Key: "stock:7", TTL: -1}}
		}, DeadHolder, []string{"killed at the point read", "still has stock:7, with no expiry", "1 request had asked in vain"}},
		{"a holder that died taking it", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Acquiring: 10}, fault: "acquiring kill", outcome: "unknown"})
			e.redis(9.0, "set")
			e.Locks = []Lock{{Key: "stock:7", TTL: -1}}
		}, DeadTaking, []string{"before anything gave the lock an expiry"}},
		{"a sale that waits for itself", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Acquiring: 10, sale.Acquired: 10, sale.Releasing: 385, sale.Released: 386}, nested: true, outcome: "busy", answer: 386})
			e.Locks = []Lock{{Key: "stock:7", TTL: 114 * time.Millisecond}}
		}, SelfDeadlock, []string{"waits for itself until its wait of 375 ms is over", "for another 114 ms"}},
		{"a release that was lost", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 1015, 3000), reads: 2, wrote: 1, fault: "read sleep 1s"})
			e.Interventions = []Intervention{{From: at(14), Until: at(1250), Shop: "shop 1", What: "redis-cut"}}
			e.redis(9.0, "set")
			e.Locks = []Lock{{Key: "stock:7", TTL: -1}}
			e.order(1, 2)
		}, LostRelease, []string{"Its release never reached Redis"}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			e := evidence(tt.build)
			e.Stuck = true
			e.add(customer{id: 9, shop: 2, sent: 2700, outcome: "busy", answer: 2990})
			check(t, explained(e), tt.want, tt.says)
		})
	}
}

func TestHeld(t *testing.T) {
	next := customer{id: 2, shop: 2, sent: 300, points: whole(520, 521, 539, 540), reads: 2, wrote: 1}
	said := map[Phrase]bool{}
	for _, tt := range []struct {
		what  string
		build func(e *Evidence)
		want  Cause
		says  []string
	}{
		{"a write that the fence refused", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Acquired: 10, sale.Read: 12, sale.Write: 15, sale.Releasing: 1030, sale.Released: 1031}, reads: 2,
				fault: "write stop 1s", outcome: "fenced", answer: 1031}, next)
			e.order(2, 2)
		}, Refused, []string{"#1 on shop 1 was stopped at the point write", "#2 on shop 2 got the lock", "fencing token was older"}},
		{"a failover that the fence noticed", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Acquired: 10, sale.Read: 12, sale.Write: 15, sale.Releasing: 361, sale.Released: 362}, reads: 2,
				fault: "write sleep 350ms", outcome: "fenced", answer: 362}, customer{id: 2, shop: 2, sent: 100, points: whole(120, 121, 139, 140), reads: 2, wrote: 1})
			e.redis(9.0, "set", 9.1, "expire", 100.0, "gone")
			e.order(2, 2)
		}, Refused, []string{"Its Redis died", "had never heard of its lock", "#2 on shop 2 got the lock"}},
		{"a lease that was renewed", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 1199, 1200), reads: 2, wrote: 1, fault: "read sleep 1180ms"},
				customer{id: 2, shop: 2, sent: 300, points: whole(1202, 1203, 1220, 1221), reads: 1})
			e.redis(9.0, "hset", 9.1, "expire", 175.0, "expire", 341.0, "expire", 1200.0, "del")
			e.order(1, 2)
			e.order(2, 1)
		}, Outlived, []string{"renewed 2 times"}},
		{"a lock without an expiry", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 1199, 1200), reads: 2, wrote: 1, fault: "read sleep 1180ms"})
			e.redis(9.0, "set", 1200.0, "del")
			e.order(1, 2)
		}, Outlived, []string{"has no expiry"}},
		{"a lease that nobody was there to take over", func(e *Evidence) {
			e.Recovers = true
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 1199, 1200), reads: 2, wrote: 1, fault: "read sleep 1180ms"})
			e.redis(9.0, "set", 1200.0, "del")
			e.order(1, 2)
		}, Outlived, []string{"lease was over meanwhile", "nobody else got in"}},
		{"a lock of which nothing was seen", func(e *Evidence) {
			e.Recovers = true
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 1199, 1200), reads: 2, wrote: 1, fault: "read sleep 1180ms"})
			e.order(1, 2)
		}, KeptOut, []string{"kept everybody else out"}},
		{"a holder that learned of the loss", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Acquired: 10, sale.Read: 12, sale.Releasing: 1012, sale.Released: 1013}, reads: 2,
				fault: "read sleep 1s", outcome: "lost", answer: 1013}, next)
			e.order(2, 2)
		}, LossNoticed, []string{"reported in time"}},
		{"a lock that freed itself", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Acquired: 10, sale.Read: 12}, reads: 2, fault: "read kill", outcome: "unknown"}, next)
			e.redis(9.0, "set", 9.1, "expire", 509.5, "expired", 519.0, "set")
			e.order(2, 2)
		}, Expired, []string{"freed itself 500 ms after it was taken", "#2 on shop 2 went on"}},
		{"a lock that freed itself for nobody", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Acquired: 10, sale.Read: 12}, reads: 2, fault: "read kill", outcome: "unknown"})
			e.order(1, 2)
		}, Expired, []string{"freed itself when its lease was over"}},
		{"a row lock that ended with its connection", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Read: 12}, reads: 2, fault: "read kill", outcome: "unknown"},
				customer{id: 2, shop: 2, points: unguarded(21, 30), reads: 2})
			e.order(2, 2)
		}, NoLease, []string{"Its connection to MySQL ended with it"}},
		{"a write that found the row changed", func(e *Evidence) {
			slow := customer{id: 1, shop: 1, points: unguarded(10, 530), reads: 2, fault: "read sleep 510ms"}
			e.add(slow, customer{id: 2, shop: 2, sent: 15, points: unguarded(20, 30), reads: 2, wrote: 1})
			e.Events = append(e.Events, labmode.Event{Time: at(525), Shop: "shop 1", Request: "7-1", Point: sale.Read})
			e.order(2, 2)
			e.order(1, 1)
		}, Refused, []string{"It read again"}},
		{"a quorum of which one server died", func(e *Evidence) {
			e.Recovers = true
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 399, 400), reads: 2, wrote: 1, fault: "write sleep 380ms"})
			for _, server := range []string{"redis 1 of 3", "redis 2 of 3", "redis 3 of 3"} {
				e.Changes = append(e.Changes, Change{Time: at(9), Server: server, What: "set"})
			}
			e.Changes = append(e.Changes, Change{Time: at(100), Server: "redis 1 of 3", What: Gone})
			e.order(1, 2)
		}, Majority, []string{"Most of the others still had its lock"}},
		{"a release that found another's lock", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 14, 535), reads: 3, wrote: 2, fault: "written sleep 520ms"}, next)
			e.redis(9.0, "set", 9.1, "expire", 509.5, "expired", 519.0, "set")
			e.order(1, 3)
			e.order(2, 2)
			e.InitialStock = 3
		}, NotOwner, []string{"freed nothing"}},
		{"one's own lock again", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 25, 26), reads: 2, wrote: 1, nested: true})
			e.order(1, 2)
		}, Reentered, []string{"second time"}},
		{"a queue", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 25, 26), reads: 2, wrote: 1}, customer{id: 2, shop: 2, sent: 5, points: whole(27, 28, 40, 41), reads: 1})
			e.order(1, 2)
			e.order(2, 1)
		}, KeptOut, []string{"#2 on shop 2 wanted to read while #1 on shop 1"}},
		{"nobody else", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 25, 26), reads: 2, wrote: 1}, customer{id: 2, shop: 2, sent: 50, points: whole(51, 52, 60, 61), reads: 1})
			e.order(1, 2)
			e.order(2, 1)
		}, KeptOut, []string{"Nobody else came while #1 on shop 1"}},
		{"a queue behind the last unit", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 25, 26), reads: 1, wrote: 0}, customer{id: 2, shop: 2, sent: 5, points: whole(27, 28, 29, 30), reads: 0, outcome: "sold_out", answer: 31})
			e.order(1, 1)
		}, KeptOut, []string{"#2 on shop 2 wanted to read while #1 on shop 1"}},
		{"a queue that others are let past", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 25, 26), reads: 2, wrote: 1}, customer{id: 2, shop: 2, sent: 27, points: whole(28, 29, 40, 41), reads: 1, wrote: 0},
				customer{id: 3, shop: 3, sent: 15, points: whole(42, 43, 44, 45), reads: 0, outcome: "sold_out", answer: 46})
			e.order(1, 2)
			e.order(2, 1)
		}, KeptOut, []string{"#3 on shop 3 wanted to read while #1 on shop 1"}},
		{"a fault after which nothing was noted", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Read: 10, sale.Write: 11, sale.Written: 12}, reads: 2, wrote: 1, fault: "written sleep 500ms", answer: 513})
			e.order(1, 2)
		}, NoLease, []string{"asleep at the point written for 501 ms"}},
		{"no protection, and a fault that nobody met", func(e *Evidence) {
			e.Exclusive = false
			slow := customer{id: 1, shop: 1, points: unguarded(10, 530), reads: 2, wrote: 1, fault: "read sleep 510ms"}
			e.add(slow, customer{id: 2, shop: 2, sent: 540, points: unguarded(541, 550), reads: 1})
			e.order(1, 2)
			e.order(2, 1)
		}, NobodyMet, []string{"asleep at the point read", "nobody wrote between its read and its write"}},
		{"no protection, and no need of it", func(e *Evidence) {
			e.Exclusive = false
			e.add(customer{id: 1, shop: 1, points: unguarded(10, 20), reads: 2, wrote: 1}, customer{id: 2, shop: 2, sent: 30, points: unguarded(31, 40), reads: 1})
			e.order(1, 2)
			e.order(2, 1)
		}, NobodyMet, []string{"Nothing protects #1 on shop 1"}},
		{"a row lock", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: unguarded(10, 20), reads: 2, wrote: 1}, customer{id: 2, shop: 2, points: unguarded(21, 30), reads: 1})
			e.order(1, 2)
			e.order(2, 1)
		}, NoLease, []string{"the database lets one write at a time"}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			x := explained(evidence(tt.build))
			check(t, x, tt.want, tt.says)
			for _, text := range x.Why {
				said[text.Phrase] = true
			}
		})
	}
	saysEveryRule(t, said)
}

// check holds an explanation to its cause, and its drawing to what it says.
func check(t *testing.T, x *Explanation, want Cause, says []string) {
	t.Helper()
	if x == nil {
		t.Fatalf("no explanation, want %s", want)
	}
	if x.Cause != want {
		t.Errorf("cause %s, want %s: %s", x.Cause, want, English.Say(x.Why...))
	}
	for _, s := range says {
		if !strings.Contains(English.Say(x.Why...), s) {
			t.Errorf("it says %q, want %q in it", English.Say(x.Why...), s)
		}
	}
	if want == Untraced {
		return
	}
	if x.ToMS <= x.FromMS || x.Moment == nil || x.Moment.AtMS < x.FromMS || x.Moment.AtMS > x.ToMS {
		t.Errorf("drawn from %v to %v, the moment %+v: want it within", x.FromMS, x.ToMS, x.Moment)
	}
	last := x.FromMS
	for _, s := range x.Steps {
		if s.AtMS < last || s.AtMS > x.ToMS || s.Lane >= len(x.Lanes) || s.To >= len(x.Lanes) {
			t.Errorf("step %+v, want after %v, until %v, in one of %d lanes", s, last, x.ToMS, len(x.Lanes))
		}
		last = s.AtMS
	}
	set := map[int]bool{}
	for _, s := range x.Steps {
		switch s.Text.Phrase {
		case "step-set", "step-set-anew":
			set[s.Lane] = true
		case "step-expired", "step-deleted", "step-renewed":
			if !set[s.Lane] {
				t.Errorf("%+v is drawn, and nothing that set the lock before it", s)
			}
		}
	}
	for _, l := range x.Lanes {
		for _, s := range l.Spans {
			if s.FromMS < x.FromMS || s.ToMS > x.ToMS || s.ToMS <= s.FromMS {
				t.Errorf("lane %s: span %+v, want within %v to %v", English.Say(l.Name), s, x.FromMS, x.ToMS)
			}
		}
	}
}

// TestDrawingAgreesWithTheOrders compares what is drawn of an oversell with what MySQL has.
func TestDrawingAgreesWithTheOrders(t *testing.T) {
	e := evidence(overlap("read sleep 1180ms"))
	e.redis(9.0, "set", 9.1, "expire", 509.5, "expired", 519.0, "set", 519.1, "expire", 540.0, "del")
	x := explained(e)
	if len(x.Rows) != 3 || x.Rows[0].ID != 100 || x.Rows[1].ID != 101 || x.Rows[0].Read != x.Rows[1].Read || x.Rows[2].Nth != 3 {
		t.Errorf("rows %+v, want the two that read the same stock, and the third of two units", x.Rows)
	}
	if x.Moment.AtMS != 1189 || !x.Moment.Alarm || !strings.Contains(English.Say(x.Moment.What), "order 101 wrote over order 100") {
		t.Errorf("moment %+v, want the write of #1, 1189 ms after it had the lock", x.Moment)
	}
	if x.Both == nil || x.Both.FromMS != 510 || x.Both.ToMS != 530 {
		t.Errorf("both inside: %+v, want 510 to 530", x.Both)
	}
	var locked []string
	for _, l := range x.Lanes {
		for _, s := range l.Spans {
			if s.Kind == Locked {
				locked = append(locked, fmt.Sprintf("%s %.1f-%.1f", English.Say(s.Text), s.FromMS, s.ToMS))
			}
		}
	}
	if got := strings.Join(locked, ", "); got != "#1 -1.0-499.5, #2 509.0-530.0" {
		t.Errorf("the lock in Redis: %s", got)
	}
}
