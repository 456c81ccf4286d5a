package explain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
)

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
	check(t, x, verdict.NoLock, nil)
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
	check(t, x, verdict.NoLock, nil)
	if last := x.Steps[len(x.Steps)-1]; words.English.Say(last.Text) != "wrote 1, order 100" {
		t.Errorf("the last step is %q, want the order that was noted last", words.English.Say(last.Text))
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
	if x.Moment.AtMS != 1189 || !x.Moment.Alarm || !strings.Contains(words.English.Say(x.Moment.What), "order 101 overwrote the stock of order 100") {
		t.Errorf("moment %+v, want the write of #1, 1189 ms after it had the lock", x.Moment)
	}
	if x.Both == nil || x.Both.FromMS != 510 || x.Both.ToMS != 530 {
		t.Errorf("both inside: %+v, want 510 to 530", x.Both)
	}
	var locked []string
	for _, l := range x.Columns {
		for _, s := range l.Spans {
			if s.Kind == Locked {
				locked = append(locked, fmt.Sprintf("%s %.1f-%.1f", words.English.Say(s.Text), s.FromMS, s.ToMS))
			}
		}
	}
	if got := strings.Join(locked, ", "); got != "#1 -1.0-499.5, #2 509.0-530.0" {
		t.Errorf("the lock in Redis: %s", got)
	}
}

// TestManyValuesOfTheRow: what is left out of the middle is a gap, and no value lasts longer for that.
func TestManyValuesOfTheRow(t *testing.T) {
	e := evidence(func(e *Evidence) {
		e.InitialStock = 61
		e.add(customer{id: 1, shop: 1, points: whole(10, 12, 1199, 1200), reads: 61, wrote: 60, fault: "read sleep 1180ms"}, customer{id: 2, shop: 2, sent: 300, points: whole(520, 521, 539, 540), reads: 61, wrote: 60})
		e.order(2, 61)
		for n := range int64(60) {
			e.order(int(3+n), 60-n)
			e.Orders[n+1].CreatedAt = at(600 + float64(n))
		}
		e.order(1, 61)
	})
	spans := 0
	for _, l := range explained(e).Columns {
		for _, s := range l.Spans {
			if l.Kind != RowColumn {
				continue
			}
			spans++
			for n := range 60 {
				if written := 590 + float64(n); s.FromMS < written && written < s.ToMS {
					t.Fatalf("%s from %v to %v, and an order was written at %v", words.English.Say(s.Text), s.FromMS, s.ToMS, written)
				}
			}
		}
	}
	if spans != maxSpans {
		t.Errorf("%d values are drawn, want %d", spans, maxSpans)
	}
}

// TestOneWhoWasInsideBefore the frame is among the others.
func TestOneWhoWasInsideBefore(t *testing.T) {
	e := evidence(overlap("read sleep 1180ms"))
	e.add(customer{id: 4, shop: 1, sent: -2001, points: whole(-2000, -1999, 1250, 1251), reads: 3, wrote: 2}, customer{id: 5, shop: 1, sent: -2501, points: whole(-2500, -2499, -2401, -2400), reads: 3, wrote: 2})
	var others []string
	for _, l := range explained(e).Columns {
		for _, s := range l.Spans {
			if l.Kind == OthersColumn {
				others = append(others, words.English.Say(s.Text))
			}
		}
	}
	if got := strings.Join(others, " "); got != "#4" {
		t.Errorf("the others are %q, want #4", got)
	}
}

// TestALockIsDrawnWithItsOwnLease, and with no number where nobody is known to have had it.
func TestALockIsDrawnWithItsOwnLease(t *testing.T) {
	e := evidence(overlap("read sleep 1180ms"))
	e.Requests[1].Lease = 10 * time.Second
	e.redis(9.0, "set", 9.1, "expire", 509.5, "expired", 519.0, "set", 519.1, "expire", 540.0, "del", 541.0, "set", 541.1, "expire")
	var set []string
	for _, s := range explained(e).Steps {
		if strings.HasPrefix(s.Text.Key, "step-set") {
			set = append(set, words.English.Say(s.Text))
		}
	}
	if got := strings.Join(set, "; "); got != "set for 500 ms; set for 10000 ms; set, with an expiry" {
		t.Errorf("the steps of the lock: %s", got)
	}
}

// TestALockIsOfTheNearestEntry: another customer bought with the lock in the few milliseconds before, within the
// tolerance of clocks.
func TestALockIsOfTheNearestEntry(t *testing.T) {
	e := evidence(overlap("read sleep 1180ms"))
	e.add(customer{id: 3, shop: 1, points: whole(6, 6.5, 7.5, 8), reads: 2, wrote: 1})
	e.redis(5.9, "set", 5.9, "expire", 8.0, "del", 9.0, "set", 9.1, "expire", 509.5, "expired", 519.0, "set", 519.1, "expire", 540.0, "del")
	for _, l := range explained(e).Columns {
		for _, s := range l.Spans {
			if s.Kind == Locked && s.FromMS == -1 && words.English.Say(s.Text) != "#1" {
				t.Errorf("the lock from 9 ms on is drawn as that of %s, want #1", words.English.Say(s.Text))
			}
		}
	}
}
