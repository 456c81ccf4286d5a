package explain

import (
	"slices"

	"stocklock/internal/sale"
)

// This file explains overwrites by sales that had the lock one after the other: what went wrong was not
// the lock, but where the transaction began or ended.

// keptApart says whether the second sale got its lock after the first one had begun to release its own.
func (c *inquiry) keptApart(first, second *section) bool {
	releasing, committed := first.at[sale.Releasing], first.at[sale.Written]
	return first.guarded() && second.guarded() && !releasing.IsZero() && !committed.IsZero() && !second.took().Before(releasing)
}

// readUnderLock explains why the second sale read what the first one had overwritten.
func (c *inquiry) readUnderLock(first, second *section, rows []Row, orders Facts) *Explanation {
	f := Facts{Holder: first.named(), Other: second.named(), Order: first.order.ID, Stock: second.order.StockRead}
	x := &Explanation{Rows: rows}
	if committed := first.at[sale.Written]; committed.After(first.at[sale.Releasing]) {
		f.LastedMS = milliseconds(committed.Sub(first.at[sale.Releasing]))
		x.Cause, x.Why = LateCommit, []Text{say("committed-late", f)}
	} else {
		f.LastedMS = milliseconds(second.took().Sub(committed))
		x.Cause, x.Why = OldSnapshot, []Text{say("read-old-snapshot", f)}
	}
	if c.handedOver(first, second) {
		x.Why = append(x.Why, say("lock-excluded", f))
	}
	x.Why = append(x.Why, say("both-read", Facts{Stock: f.Stock, Holder: f.Holder, Other: f.Other}))
	d := c.drawing(first.enter())
	d.follow(first, second)
	d.moment(second.wrote(), say("moment-oversold", orders), true)
	d.until(first.wrote())
	d.finish(x)
	return x
}

// handedOver says whether Redis announced that the lock of the first sale ended by its release, and before
// the second one had it.
func (c *inquiry) handedOver(first, second *section) bool {
	releasing := first.at[sale.Releasing]
	return slices.ContainsFunc(c.histories, func(h *history) bool {
		lost := slices.ContainsFunc(h.changes, func(ch Change) bool {
			return ch.What.Frees() && ch.What != eventDel && ch.Time.After(first.took()) && ch.Time.Before(second.took())
		})
		passed := slices.ContainsFunc(h.changes, func(ch Change) bool {
			return (ch.What == eventDel || ch.What == eventSet) && !ch.Time.Before(releasing) && ch.Time.Before(second.took().Add(c.late))
		})
		return passed && !lost
	})
}
