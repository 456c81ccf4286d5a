package explain

import (
	"testing"
	"time"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
)

func TestStuck(t *testing.T) {
	for _, tt := range []struct {
		what  string
		build func(e *Evidence)
		want  verdict.Cause
		says  []string
	}{
		{"a dead holder", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Acquiring: 10, sale.Acquired: 10, sale.Read: 12}, reads: 2, fault: "read kill", outcome: "unknown"})
			e.add(customer{id: 5, shop: 2, sent: 2600, outcome: "sold", answer: 2650})
			e.order(5, 2)
			e.redis(9.0, "set")
			e.Locks = []Lock{{Key: "stock:7", TTL: -1}}
		}, verdict.NoExpiry, []string{"killed at the point read", "still has stock:7, with no expiry", "1 request had asked in vain"}},
		{"a holder that died taking it", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Acquiring: 10}, fault: "acquiring kill", outcome: "unknown"})
			e.redis(9.0, "set")
			e.Locks = []Lock{{Key: "stock:7", TTL: -1}}
		}, verdict.DiedTaking, []string{"before anything gave the lock an expiry"}},
		{"a sale that waits for itself", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Acquiring: 10, sale.Acquired: 10, sale.Releasing: 385, sale.Released: 386}, nested: true, outcome: "busy", answer: 386})
			e.Locks = []Lock{{Key: "stock:7", TTL: 114 * time.Millisecond}}
		}, verdict.SelfDeadlock, []string{"waits for itself until its wait of 375 ms is over", "for another 114 ms"}},
		{"a release that was lost", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 1015, 3000), reads: 2, wrote: 1, fault: "read sleep 1s"})
			e.Interventions = []Intervention{{From: at(14), Until: at(1250), Shop: "shop 1", What: "redis-cut"}}
			e.redis(9.0, "set")
			e.Locks = []Lock{{Key: "stock:7", TTL: -1}}
			e.order(1, 2)
		}, verdict.LostRelease, []string{"Its release never reached Redis", "does not expire"}},
		{"a dead holder whose lease is too long", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Acquiring: 10, sale.Acquired: 10, sale.Read: 12}, reads: 2, fault: "read kill", outcome: "unknown"})
			e.redis(9.0, "set")
			e.Locks = []Lock{{Key: "stock:7", TTL: 5 * time.Minute}}
		}, verdict.Prolonged, []string{"its lock outlasts the cell", "for another 300000 ms"}},
		{"a fence that refuses everybody", func(e *Evidence) {
			e.Fenced = true
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 15, 16), reads: 2, wrote: 1})
			e.order(1, 2)
			e.add(customer{id: 2, shop: 2, points: map[sale.Point]float64{sale.Acquiring: 20, sale.Acquired: 20, sale.Releasing: 22, sale.Released: 23}, sent: 18, outcome: "fenced", answer: 24})
			e.add(customer{id: 3, shop: 2, sent: 2995, outcome: "fenced", answer: 2999})
		}, verdict.FencedOut, []string{"refused 2 requests", "lower than the fence"}},
		{"work that outlasts its lease", func(e *Evidence) {
			e.Outlasted = true
			e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Acquiring: 10, sale.Acquired: 10, sale.Read: 12, sale.Releasing: 1015, sale.Released: 1016}, reads: 2, fault: "read sleep 1s", outcome: "lost", answer: 1020})
			e.add(customer{id: 2, shop: 2, points: whole(1030, 1032, 1035, 1036), sent: 600, reads: 2, wrote: 1})
			e.order(2, 2)
		}, verdict.Overrun, []string{"at the point read", "it wrote nothing"}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			e := evidence(tt.build)
			e.Verdict = verdict.Stuck
			e.add(customer{id: 9, shop: 2, sent: 2700, outcome: "busy", answer: 2990})
			check(t, told(t, e), tt.want, tt.says)
		})
	}
}
