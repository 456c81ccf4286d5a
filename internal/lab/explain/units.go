package explain

import (
	"time"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
)

// This file explains strategies that keep units elsewhere than in the item's row: a counter in Redis,
// or holds in MySQL that expire.

// countedTwice explains an oversell of a counter: it gave the same unit to two sales, because Redis had
// lost what it had counted.
func (c *inquiry) countedTwice() *Explanation {
	older, other, unit := c.sameUnit()
	if older == nil {
		return &Explanation{Cause: verdict.Unexplained, Why: []words.Text{c.beyond()}}
	}
	f := Facts{Holder: older.named(), Other: other.named(), Stock: unit}
	x := &Explanation{Cause: verdict.Unexplained, Why: []words.Text{say("counted-twice", f)}, Rows: c.rowsOf(older, other)}
	if lost := c.counterLost(older.enter(), other.enter()); lost != nil {
		f.AfterMS = words.Rounded(lost.Time.Sub(older.enter()))
		x.Cause = verdict.Evicted
		phrase := "counter-evicted"
		if lost.What == Gone {
			x.Cause, phrase = verdict.Forgotten, c.whenGone("counter-died", "counter-emptied")
		}
		x.Why = append(x.Why, say(phrase, f))
		if anew := c.setAfter(*lost); anew != nil {
			f.Count = c.unwritten(lost.Time, anew.Time)
			x.Why = append(x.Why, say("counter-set-anew", f))
		} else if phrase != "counter-emptied" {
			x.Why = append(x.Why, say("counter-older", f))
		}
	}
	x.Why = append(x.Why, c.beyond())
	return c.drawn(x, other.enter(), say("moment-counted-twice", f), other.leave(), older, other)
}

// sameUnit finds the first sale that was given a unit of an earlier one, by the counts in their orders.
func (c *inquiry) sameUnit() (older, other *section, unit int64) {
	for i, s := range c.sections {
		if !s.entered() || s.order == nil {
			continue
		}
		for _, before := range c.sections[:i] {
			o, b := s.order, before.order
			if b != nil && o.StockWritten < b.StockRead && b.StockWritten < o.StockRead {
				return before, s, min(o.StockRead, b.StockRead)
			}
		}
	}
	return nil, nil, 0
}

// counterLost is the last event between two times with which a counter was lost.
func (c *inquiry) counterLost(from, to time.Time) *Change {
	var last *Change
	for i, ch := range c.Changes {
		if ch.What.Frees() && ch.Server != Replica && ch.Time.After(from) && ch.Time.Before(to.Add(clockTolerance)) {
			last = &c.Changes[i]
		}
	}
	return last
}

// setAfter is the change that set the counter after it was lost, nil if the server that took over had a
// counter.
func (c *inquiry) setAfter(lost Change) *Change {
	for i, ch := range c.Changes {
		if ch.What == eventSet && ch.Time.After(lost.Time) {
			return &c.Changes[i]
		}
	}
	return nil
}

// unwritten counts the sales that had their units before a time, and whose orders were written after
// another one.
func (c *inquiry) unwritten(before, after time.Time) int {
	n := 0
	for _, s := range c.sections {
		if s.entered() && s.enter().Before(before) && s.order != nil && s.order.CreatedAt.After(after) {
			n++
		}
	}
	return n
}

// holdGone explains an oversell by a sale that confirmed a hold which was no longer there.
func (c *inquiry) holdGone() *Explanation {
	older := c.firstWithoutHold()
	if older == nil {
		return &Explanation{Cause: verdict.Unexplained, Why: []words.Text{c.beyond()}}
	}
	f := Facts{Holder: older.named(), LastedMS: words.Rounded(older.fault.lasted()), LeaseMS: words.Rounded(older.Lease),
		AfterMS: words.Rounded(older.wrote().Sub(older.enter())), Order: Number(older.order.ID)}
	cause, why := c.tookLonger(older, "stopped-with-hold", f)
	x := &Explanation{Cause: cause, Why: []words.Text{why, say("hold-gone", f)}}
	other := c.heldAfter(older)
	if other != nil {
		f.Other = other.named()
		x.Why = append(x.Why, say("held-next", f))
	}
	x.Why, x.Rows = append(x.Why, c.beyond()), c.rowsOf(older, other)
	return c.drawn(x, older.wrote(), say("moment-hold-gone", f), time.Time{}, older, other)
}

// firstWithoutHold is the first sale, by its order, whose hold was gone when it confirmed it.
func (c *inquiry) firstWithoutHold() *section {
	for _, o := range c.Orders {
		s := c.of(o)
		if s == nil || !s.entered() {
			continue
		}
		if stood, noted := s.number(sale.Written, "held"); noted && stood == 0 {
			return s
		}
	}
	return nil
}

// heldAfter is the first sale with an order that held units after the hold of another one had ended.
func (c *inquiry) heldAfter(older *section) *section {
	for _, s := range c.sections {
		if s.entered() && s.order != nil && s.enter().After(older.enter().Add(older.Lease)) && s.enter().Before(older.wrote()) {
			return s
		}
	}
	return nil
}

// rowsOf are the orders of sales that are known.
func (c *inquiry) rowsOf(sections ...*section) []Row {
	var rows []Row
	for _, s := range sections {
		if s != nil && s.order != nil {
			rows = append(rows, c.rowOf(*s.order))
		}
	}
	return rows
}
