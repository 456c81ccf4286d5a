package explain

import (
	"encoding/json"
	"testing"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/declared"
)

// counting and holding keep units elsewhere than in the item's row.
func counting(e *Evidence) { e.Declared.State.Keys = []string{"{%s}:left"} }

func holding(e *Evidence) {
	e.Declared.State.Remaining, e.Declared.Lease.Kept = "SELECT 1", declared.LeaseInMySQL
}

func TestHeld(t *testing.T) {
	next := customer{id: 2, shop: 2, sent: 300, points: whole(520, 521, 539, 540), reads: 2, wrote: 1}
	said := map[string]bool{}
	for _, tt := range []struct {
		what  string
		build func(e *Evidence)
		want  verdict.Cause
		says  []string
	}{
		{"a write that the fence refused", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Acquired: 10, sale.Read: 12, sale.Write: 15, sale.Releasing: 1030, sale.Released: 1031}, reads: 2,
				fault: "write stop 1s", outcome: "fenced", answer: 1031}, next)
			e.order(2, 2)
		}, verdict.Refused, []string{"#1 on shop 1 was stopped at the point write", "#2 on shop 2 got the lock", "fencing token was older"}},
		{"a write that a snapshot refused", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Acquired: 10, sale.Read: 12, sale.Write: 15, sale.Releasing: 1030, sale.Released: 1031}, reads: 2,
				fault: "write stop 1s", outcome: "conflict", answer: 1031}, next)
			e.order(2, 2)
		}, verdict.Refused, []string{"#1 on shop 1 was stopped at the point write", "the row had changed"}},
		{"a row that its transaction kept locked", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 1030, 1032), reads: 2, wrote: 1, fault: "write stop 1s"},
				customer{id: 2, shop: 2, sent: 300, points: whole(520, 1031, 1040, 1041), reads: 1})
			e.Events[2].Time = at(15)
			e.order(1, 2)
			e.order(2, 1)
		}, verdict.KeptOut, []string{"#2 on shop 2 got the lock before #1 on shop 1 was done", "only after the COMMIT"}},
		{"a write that subtracts from what the next one has left", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 1030, 1032), reads: 2, wrote: 0, fault: "write stop 1s"},
				customer{id: 2, shop: 2, sent: 300, points: whole(520, 521, 539, 540), reads: 2, wrote: 1})
			e.Events[2].Time = at(15)
			e.order(2, 2)
			e.order(1, 1)
		}, verdict.Subtracted, []string{"#2 on shop 2 came in before it was done", "it found 1"}},
		{"a failover that the fence noticed", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Acquired: 10, sale.Read: 12, sale.Write: 15, sale.Releasing: 361, sale.Released: 362}, reads: 2,
				fault: "write sleep 350ms", outcome: "fenced", answer: 362}, customer{id: 2, shop: 2, sent: 100, points: whole(120, 121, 139, 140), reads: 2, wrote: 1})
			e.redis(9.0, "set", 9.1, "expire", 100.0, "gone")
			e.order(2, 2)
		}, verdict.Refused, []string{"Its Redis died", "had never heard of its lock", "#2 on shop 2 got the lock"}},
		{"a restart that the fence noticed", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Acquired: 10, sale.Read: 12, sale.Write: 15, sale.Releasing: 361, sale.Released: 362}, reads: 2,
				fault: "write sleep 350ms", outcome: "fenced", answer: 362}, customer{id: 2, shop: 2, sent: 100, points: whole(120, 121, 139, 140), reads: 2, wrote: 1})
			e.redis(9.0, "set", 9.1, "expire", 100.0, "gone")
			e.Interventions = []Intervention{{From: at(99), Until: at(110), What: "redis-emptied"}}
			e.order(2, 2)
		}, verdict.Refused, []string{"Its Redis restarted without its data, and #2 on shop 2 got the lock"}},
		{"a lease that was renewed", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 1199, 1200), reads: 2, wrote: 1, fault: "read sleep 1180ms"},
				customer{id: 2, shop: 2, sent: 300, points: whole(1202, 1203, 1220, 1221), reads: 1})
			e.redis(9.0, "hset", 9.1, "expire", 175.0, "expire", 341.0, "expire", 1200.0, "del")
			e.order(1, 2)
			e.order(2, 1)
		}, verdict.Outlived, []string{"renewed 2 times"}},
		{"a lock without an expiry", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 1199, 1200), reads: 2, wrote: 1, fault: "read sleep 1180ms"})
			e.redis(9.0, "set", 1200.0, "del")
			e.order(1, 2)
		}, verdict.Outlived, []string{"has no expiry"}},
		{"a lease that nobody was there to take over", func(e *Evidence) {
			e.Recovers = true
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 1199, 1200), reads: 2, wrote: 1, fault: "read sleep 1180ms"})
			e.redis(9.0, "set", 1200.0, "del")
			e.order(1, 2)
		}, verdict.Outlived, []string{"lease was over meanwhile", "nobody else got in"}},
		{"a lease that was not over", func(e *Evidence) {
			e.Recovers = true
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 1199, 1200), reads: 2, wrote: 1, fault: "read sleep 1180ms", lease: 10_000})
			e.redis(9.0, "set", 1200.0, "del")
			e.order(1, 2)
		}, verdict.KeptOut, []string{"kept everybody else out"}},
		{"a lock of which nothing was seen", func(e *Evidence) {
			e.Recovers = true
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 1199, 1200), reads: 2, wrote: 1, fault: "read sleep 1180ms"})
			e.order(1, 2)
		}, verdict.KeptOut, []string{"kept everybody else out"}},
		{"a holder that learned of the loss", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Acquired: 10, sale.Read: 12, sale.Releasing: 1012, sale.Released: 1013}, reads: 2,
				fault: "read sleep 1s", outcome: "lost", answer: 1013}, next)
			e.order(2, 2)
		}, verdict.LossNoticed, []string{"reported in time"}},
		{"a lock that freed itself", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Acquired: 10, sale.Read: 12}, reads: 2, fault: "read kill", outcome: "unknown"}, next)
			e.redis(9.0, "set", 9.1, "expire", 509.5, "expired", 519.0, "set")
			e.order(2, 2)
		}, verdict.Expired, []string{"freed itself 500 ms after it was taken", "#2 on shop 2 went on"}},
		{"a COMMIT without an answer", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: unguarded(10, 20), reads: 2, wrote: 1, fault: "write lose"}, customer{id: 2, shop: 2, sent: 30, points: unguarded(40, 50), reads: 1})
			e.order(1, 2)
			e.order(2, 1)
		}, verdict.OneOrder, []string{"#1 on shop 1 was kept from the answer to its COMMIT at the point write", "one order, 100"}},
		{"a lock that freed itself for nobody", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Acquired: 10, sale.Read: 12}, reads: 2, fault: "read kill", outcome: "unknown"})
			e.order(1, 2)
		}, verdict.Expired, []string{"No other sale came after it"}},
		{"a deadline that passed, which Redis does not announce", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Acquired: 10, sale.Read: 12}, reads: 2, fault: "read kill", outcome: "unknown"}, next)
			e.redis(9.0, "set", 519.0, "set")
			e.order(2, 2)
		}, verdict.Expired, []string{"#2 on shop 2 got the lock 510 ms after it"}},
		{"a lock that is its connection's", func(e *Evidence) {
			e.Recovers, e.Declared = true, declared.Strategy{Name: "get-lock"}
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Acquired: 10, sale.Read: 12}, reads: 2, fault: "read kill", outcome: "unknown"}, next)
			e.order(2, 2)
		}, verdict.NoLease, []string{"ended with its process"}},
		{"a process that died after its order", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 20, 21), reads: 2, wrote: 1, fault: "answered kill"}, next)
			e.Events = append(e.Events, labmode.Event{Time: at(22), Shop: "shop 1", Request: "7-1", Point: sale.Answered, Facts: map[string]any{"fault": "answered kill"}})
			e.order(1, 2)
			e.Orders[0].CreatedAt = at(20)
		}, verdict.Durable, []string{"Its order 100 was written by then"}},
		{"a count whose process died", func(e *Evidence) {
			counting(e)
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Read: 12}, reads: 2, fault: "read kill", outcome: "unknown"})
			e.order(1, 2)
			e.Orders[0].CreatedAt = at(300)
		}, verdict.NoLease, []string{"Redis had counted its units out by then, and order 100 was written"}},
		{"a count that the database would not know", func(e *Evidence) {
			counting(e)
			e.add(customer{id: 1, shop: 1, points: unguarded(10, 530), reads: 2, wrote: 1, fault: "read sleep 510ms"})
			e.Events = append(e.Events, labmode.Event{Time: at(525), Shop: "shop 1", Request: "7-1", Point: sale.Read, Facts: map[string]any{"stock": json.Number("2")}})
			e.order(1, 2)
		}, verdict.NoLease, []string{"Redis had counted its units out"}},
		{"a count without a fault", func(e *Evidence) {
			counting(e)
			e.add(customer{id: 1, shop: 1, points: unguarded(10, 20), reads: 2, wrote: 1})
			e.order(1, 2)
		}, verdict.NoLease, []string{"each unit to one sale"}},
		{"a hold whose process died", func(e *Evidence) {
			holding(e)
			e.InitialStock = 1
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Read: 12}, reads: 1, fault: "read kill", outcome: "unknown"},
				customer{id: 2, shop: 2, points: unguarded(621, 630), reads: 1})
			e.order(2, 1)
		}, verdict.Expired, []string{"Its hold of 500 ms in MySQL ended by itself"}},
		{"a hold that was over", func(e *Evidence) {
			holding(e)
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Read: 12, sale.Write: 830}, reads: 2, fault: "read sleep 818ms", outcome: "conflict", answer: 832},
				customer{id: 2, shop: 2, points: unguarded(621, 630), reads: 2})
			e.order(2, 2)
		}, verdict.Refused, []string{"Its hold of 500 ms was over when it confirmed it (+820 ms)"}},
		{"a hold that stood", func(e *Evidence) {
			holding(e)
			e.add(customer{id: 1, shop: 1, points: unguarded(10, 320), reads: 2, wrote: 1, fault: "read sleep 300ms"})
			e.order(1, 2)
		}, verdict.NoLease, []string{"still stood when it confirmed it (+310 ms)"}},
		{"a long hold that stood", func(e *Evidence) {
			holding(e)
			e.add(customer{id: 1, shop: 1, points: unguarded(10, 820), reads: 2, wrote: 1, fault: "read sleep 800ms", lease: 2000})
			e.order(1, 2)
		}, verdict.NoLease, []string{"Its hold of 2000 ms in MySQL still stood when it confirmed it (+810 ms)"}},
		{"a sale that gave up", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Read: 12}, reads: 2, fault: "read sleep 818ms", outcome: "sold_out", answer: 832},
				customer{id: 2, shop: 2, points: unguarded(621, 630), reads: 2})
			e.order(2, 2)
		}, verdict.Refused, []string{"Its answer was sold out, and it wrote nothing"}},
		{"a lock that somebody else got, and no harm", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 1199, 1200), reads: 1, wrote: 0, fault: "read sleep 1180ms", outcome: "busy", answer: 1201}, next)
			e.order(2, 2)
		}, verdict.Unexplained, []string{"the record does not show why"}},
		{"a row lock that ended with its connection", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Read: 12}, reads: 2, fault: "read kill", outcome: "unknown"},
				customer{id: 2, shop: 2, points: unguarded(21, 30), reads: 2})
			e.order(2, 2)
		}, verdict.NoLease, []string{"Its connection to MySQL ended with it"}},
		{"a write that found the row changed", func(e *Evidence) {
			slow := customer{id: 1, shop: 1, points: unguarded(10, 530), reads: 2, fault: "read sleep 510ms"}
			e.add(slow, customer{id: 2, shop: 2, sent: 15, points: unguarded(20, 30), reads: 2, wrote: 1})
			e.Events = append(e.Events, labmode.Event{Time: at(525), Shop: "shop 1", Request: "7-1", Point: sale.Read, Facts: map[string]any{"stock": json.Number("1")}})
			e.order(2, 2)
			e.order(1, 1)
		}, verdict.Refused, []string{"It had read 2", "read again, found 1"}},
		{"a quorum of which one server died", func(e *Evidence) {
			e.Recovers = true
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 399, 400), reads: 2, wrote: 1, fault: "write sleep 380ms"})
			for _, server := range []string{"redis 1 of 3", "redis 2 of 3", "redis 3 of 3"} {
				e.Changes = append(e.Changes, Change{Time: at(9), Server: server, What: "set"})
			}
			e.Changes = append(e.Changes, Change{Time: at(100), Server: "redis 1 of 3", What: Gone})
			e.order(1, 2)
		}, verdict.Majority, []string{"Most of the others still had its lock"}},
		{"a quorum of which one server evicted the lock", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 399, 400), reads: 2, wrote: 1, fault: "write sleep 380ms"})
			for _, server := range []string{"redis 1 of 3", "redis 2 of 3", "redis 3 of 3"} {
				e.Changes = append(e.Changes, Change{Time: at(9), Server: server, What: "set"})
			}
			e.Changes = append(e.Changes, Change{Time: at(100), Server: "redis 1 of 3", What: "evicted"})
			e.order(1, 2)
		}, verdict.Majority, []string{"lost the lock"}},
		{"a release that found another's lock", func(e *Evidence) {
			e.Declared.Has = declared.OwnerChecked
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 14, 535), reads: 3, wrote: 2, fault: "written sleep 520ms"}, next)
			e.redis(9.0, "set", 9.1, "expire", 509.5, "expired", 519.0, "set")
			e.order(1, 3)
			e.order(2, 2)
			e.InitialStock = 3
		}, verdict.NotOwner, []string{"freed nothing"}},
		{"a release whose strategy checks no owner, and no harm", func(e *Evidence) {
			late := customer{id: 1, shop: 1, points: whole(10, 12, 14, 535), reads: 3, wrote: 2, fault: "written sleep 520ms"}
			late.points[sale.Releasing] = 534
			e.add(late, next)
			e.redis(9.0, "set", 9.1, "expire", 509.5, "expired", 519.0, "set")
			e.order(1, 3)
			e.order(2, 2)
			e.InitialStock = 3
		}, verdict.KeptOut, []string{"read the stock only after the COMMIT"}},
		{"one's own lock again", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 25, 26), reads: 2, wrote: 1, nested: true})
			e.order(1, 2)
		}, verdict.Reentered, []string{"second time"}},
		{"a queue", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 25, 26), reads: 2, wrote: 1}, customer{id: 2, shop: 2, sent: 5, points: whole(27, 28, 40, 41), reads: 1})
			e.order(1, 2)
			e.order(2, 1)
		}, verdict.KeptOut, []string{"#2 on shop 2 wanted to read while #1 on shop 1"}},
		{"nobody else", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 25, 26), reads: 2, wrote: 1}, customer{id: 2, shop: 2, sent: 50, points: whole(51, 52, 60, 61), reads: 1})
			e.order(1, 2)
			e.order(2, 1)
		}, verdict.KeptOut, []string{"Nobody else came while #1 on shop 1"}},
		{"a queue behind the last unit", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 25, 26), reads: 1, wrote: 0}, customer{id: 2, shop: 2, sent: 5, points: whole(27, 28, 29, 30), reads: 0, outcome: "sold_out", answer: 31})
			e.order(1, 1)
		}, verdict.KeptOut, []string{"#2 on shop 2 wanted to read while #1 on shop 1"}},
		{"a queue that others are let past", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 25, 26), reads: 2, wrote: 1}, customer{id: 2, shop: 2, sent: 27, points: whole(28, 29, 40, 41), reads: 1, wrote: 0},
				customer{id: 3, shop: 3, sent: 15, points: whole(42, 43, 44, 45), reads: 0, outcome: "sold_out", answer: 46})
			e.order(1, 2)
			e.order(2, 1)
		}, verdict.KeptOut, []string{"#3 on shop 3 wanted to read while #1 on shop 1"}},
		{"a fault after which nothing was noted", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Read: 10, sale.Write: 11, sale.Written: 12}, reads: 2, wrote: 1, fault: "written sleep 500ms", answer: 513})
			e.order(1, 2)
		}, verdict.NoLease, []string{"asleep at the point written for 501 ms"}},
		{"a hold after the answer", func(e *Evidence) {
			counting(e)
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Read: 10, sale.Written: 12}, reads: 2, wrote: 1, fault: "written hold 18s", answer: 11},
				customer{id: 2, shop: 2, sent: 20, points: map[sale.Point]float64{sale.Read: 21, sale.Written: 30}, reads: 1, answer: 22})
			e.order(1, 2)
			e.order(2, 1)
			e.Requests[0].LetGo = at(42)
		}, verdict.NoLease, []string{"held up at the point written for 30 ms"}},
		{"a hold after the answer that nothing ended", func(e *Evidence) {
			counting(e)
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Read: 10, sale.Written: 12}, reads: 2, wrote: 1, fault: "written hold 18s", answer: 11})
			e.order(1, 2)
		}, verdict.NoLease, []string{"held up at the point written for 2988 ms"}},
		{"no protection, and a fault that nobody met", func(e *Evidence) {
			e.Exclusive = false
			slow := customer{id: 1, shop: 1, points: unguarded(10, 530), reads: 2, wrote: 1, fault: "read sleep 510ms"}
			e.add(slow, customer{id: 2, shop: 2, sent: 540, points: unguarded(541, 550), reads: 1})
			e.order(1, 2)
			e.order(2, 1)
		}, verdict.NobodyMet, []string{"asleep at the point read", "nobody wrote between its read and its write"}},
		{"no protection, and no need of it", func(e *Evidence) {
			e.Exclusive = false
			e.add(customer{id: 1, shop: 1, points: unguarded(10, 20), reads: 2, wrote: 1}, customer{id: 2, shop: 2, sent: 30, points: unguarded(31, 40), reads: 1})
			e.order(1, 2)
			e.order(2, 1)
		}, verdict.NobodyMet, []string{"Nothing protects #1 on shop 1"}},
		{"a row lock", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: unguarded(10, 20), reads: 2, wrote: 1}, customer{id: 2, shop: 2, points: unguarded(21, 30), reads: 1})
			e.order(1, 2)
			e.order(2, 1)
		}, verdict.NoLease, []string{"it lets one write to a row at a time"}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			x := told(t, evidence(tt.build))
			check(t, x, tt.want, tt.says)
			for _, text := range x.Why {
				said[text.Key] = true
			}
		})
	}
	saysEveryRule(t, said)
}
