package explain

import (
	"slices"
	"time"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

// This file explains overwrites by sales that had the lock one after the other: what went wrong was not
// the lock, but where the transaction began or ended, or that the second sale went by an old copy.

// keptApart says whether the second sale got its lock after the first one had begun to release its own.
func (c *inquiry) keptApart(first, second *section) bool {
	releasing, committed := first.at[sale.Releasing], first.at[sale.Written]
	return first.guarded() && second.guarded() && !releasing.IsZero() && !committed.IsZero() && !second.took().Before(releasing)
}

// readUnderLock explains why the second sale read what the first one had overwritten.
func (c *inquiry) readUnderLock(first, second *section, rows []Row, orders Facts) *Explanation {
	f := Facts{Holder: first.named(), Other: second.named(), Order: Number(first.order.ID), Stock: second.order.StockRead}
	x := &Explanation{Rows: rows}
	if committed := first.at[sale.Written]; committed.After(first.at[sale.Releasing]) {
		f.LastedMS = words.Rounded(committed.Sub(first.at[sale.Releasing]))
		x.Cause, x.Why = verdict.LateCommit, []words.Text{say("committed-late", f)}
	} else {
		f.LastedMS = words.Rounded(second.took().Sub(committed))
		x.Cause, x.Why = verdict.OldSnapshot, []words.Text{say("read-old-snapshot", f)}
	}
	x.Why = append(x.Why, c.lockExcluded(first, second, f)...)
	x.Why = append(x.Why, say("both-read", Facts{Stock: f.Stock, Holder: f.Holder, Other: f.Other}))
	return c.drawn(x, second.wrote(), say("moment-oversold", orders), first.wrote(), first, second)
}

// lockExcluded says that the holds of two sales do not overlap, where the record shows it.
func (c *inquiry) lockExcluded(first, second *section, f Facts) []words.Text {
	switch {
	case c.handedOver(first, second):
		return []words.Text{say("lock-excluded", f)}
	case first.Shop == second.Shop && c.stayed(first, second):
		return []words.Text{say("lock-passed-on", f)}
	}
	return nil
}

// handedOver says whether Redis announced that the lock of the first sale ended by its release, and before
// the second one had it.
func (c *inquiry) handedOver(first, second *section) bool {
	return c.announced(first.at[sale.Releasing], second, eventDel, eventSet) && c.stayed(first, second)
}

// stayed says whether Redis announced nothing that ended the lock of the first sale other than a release.
func (c *inquiry) stayed(first, second *section) bool {
	return len(c.histories) > 0 && !c.announced(first.took(), second, eventExpired, eventEvicted, Gone)
}

// announced says whether a server announced one of these from a time on, and before a sale had the lock.
func (c *inquiry) announced(from time.Time, before *section, kinds ...RedisEvent) bool {
	return slices.ContainsFunc(c.Changes, func(ch Change) bool {
		return slices.Contains(kinds, ch.What) && !ch.Time.Before(from) && ch.Time.Before(before.took().Add(c.late))
	})
}

// staleCache explains an oversell by a sale that went by a copy of the row which was older than another sale.
// It is nil where the sale has read the row, or where the other had not written yet.
func (c *inquiry) staleCache(other, late *section, found clash) *Explanation {
	from, _ := late.facts[sale.Read][sale.From].(string)
	if read := late.at[sale.Read]; from != sale.FromCache || !other.wrote().Before(read) {
		return nil
	}
	overwritten, lateOrder := c.Orders[found.overwritten], c.Orders[found.late]
	both := Facts{Holder: other.named(), Other: late.named(), Stock: lateOrder.StockRead, OtherOrder: Number(overwritten.ID), Order: Number(lateOrder.ID)}
	x := &Explanation{Cause: verdict.StaleCache, Why: []words.Text{say("read-the-cache", both)}}
	view := c.viewSection(lateOrder.StockRead, other.wrote(), late.at[sale.Read])
	if view != nil {
		f := both
		f.Third = view.named()
		f.AfterMS = words.Rounded(view.at[sale.Stored].Sub(other.enter()))
		x.Why = append(x.Why, say("view-stored-old", f))
	}
	x.Why = append(x.Why, c.lockExcluded(other, late, both)...)
	x.Why = append(x.Why, say("both-read", both))
	x.Rows = []Row{c.row(found.overwritten), c.row(found.late)}
	return c.drawn(x, late.wrote(), say("moment-oversold", both), time.Time{}, other, late, view)
}

// viewSection is the page view that stored a stock between two times, as the drawing shows a request; nil for
// none.
func (c *inquiry) viewSection(stock int64, from, to time.Time) *section {
	s := &section{Request: c.View, at: map[sale.Point]time.Time{}, facts: map[sale.Point]map[string]any{}}
	for _, e := range c.Events {
		if e.Request == c.View.ID && slices.Contains(sale.ViewPoints, e.Point) {
			s.note(e)
		}
	}
	if read, ok := s.number(sale.Stored, "stock"); !ok || read != stock || s.at[sale.Stored].Before(from) || s.at[sale.Stored].After(to) {
		return nil
	}
	s.in = s.at[sale.Viewed]
	s.fault = sectionFault{Fault: labmode.Fault{Point: sale.Viewed, Action: labmode.Hold}, from: s.at[sale.Viewed], until: s.at[sale.Stored]}
	return s
}

// isView reports whether the drawing's request is a page view.
func (s *section) isView() bool { return !s.at[sale.Viewed].IsZero() }
