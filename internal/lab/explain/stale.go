package explain

import (
	"slices"
	"time"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

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
