package explain

import (
	"fmt"
	"slices"
	"time"

	"stocklock/internal/stock"
)

// Explain finds what there is to say of a cell: its first violation, or why nothing moves,
// or what came nearest to breaking it. It returns nil where nothing was sold or nothing is known.
func Explain(e Evidence) *Explanation {
	c := &inquiry{Evidence: e, sections: e.sections(), byID: map[string]*section{}}
	for _, s := range c.sections {
		c.byID[s.ID] = s
	}
	switch {
	case e.oversold():
		return c.violation()
	case e.Stuck:
		return c.stuck()
	case len(e.Orders) == 0 || !e.Traced:
		return nil
	default:
		return c.held()
	}
}

// inquiry is evidence put in order.
type inquiry struct {
	Evidence
	sections []*section // by when they entered
	byID     map[string]*section
}

func (e Evidence) oversold() bool {
	var sold int64
	for _, o := range e.Orders {
		sold += o.Quantity
	}
	return sold > e.InitialStock
}

// clash is the first order that overwrote one it did not know of.
type clash struct {
	late        int // index of the order that overwrote
	overwritten int // of the first one that it overwrote: both read the same stock
}

func (e Evidence) clash() (clash, bool) {
	current := e.InitialStock
	for i, o := range e.Orders {
		if o.StockRead != current {
			same := slices.IndexFunc(e.Orders[:i], func(earlier stock.Order) bool { return earlier.StockRead == o.StockRead })
			if same < 0 {
				same = max(i-1, 0)
			}
			return clash{late: i, overwritten: same}, i > 0
		}
		current = o.StockWritten
	}
	return clash{}, false
}

// violation explains an oversell.
func (c *inquiry) violation() *Explanation {
	found, ok := c.clash()
	if !ok {
		return &Explanation{Cause: Unexplained, Sentence: fmt.Sprintf("%d orders for a stock of %d, and each of them wrote on what it had read.", len(c.Orders), c.InitialStock)}
	}
	late, other := c.of(c.Orders[found.late]), c.of(c.Orders[found.overwritten])
	rows := []Row{c.row(found.overwritten), c.row(found.late)}
	if past, ok := c.pastTheStock(); ok && past != found.late {
		rows = append(rows, c.row(past))
	}
	read := c.Orders[found.late].StockRead
	if !c.Traced || late == nil || other == nil || !late.entered() || !other.entered() {
		return &Explanation{Cause: Untraced, Rows: rows, Sentence: fmt.Sprintf(
			"Orders %d and %d both read a stock of %d, so two sales were at work at once; there is no trace that says why.",
			c.Orders[found.overwritten].ID, c.Orders[found.late].ID, read)}
	}
	older, intruder := late, other
	if intruder.enter().Before(older.enter()) {
		older, intruder = intruder, older
	}
	older, intruder, breach := c.explainOverlap(older, intruder)
	x := &Explanation{Cause: breach.cause, Rows: rows}
	x.Sentence = breach.sentence + fmt.Sprintf(" Both read a stock of %d: %s wrote over the order of %s.", read, late.name(), other.name())
	d := c.drawing(earlier(older.enter(), intruder.enter()))
	d.follow(older, intruder)
	if breach.culprit != nil {
		d.follow(breach.culprit)
	}
	d.moment(late.wrote(), fmt.Sprintf("oversold: order %d wrote over order %d", c.Orders[found.late].ID, c.Orders[found.overwritten].ID), true)
	d.until(other.wrote()) // which may have been noted later, though it was committed before
	d.both(later(older.enter(), intruder.enter()), earlier(older.leave(), intruder.leave()))
	d.finish(x)
	return x
}

// explainOverlap says how the intruder came in. Entries that are close together may have been
// noted the other way round; and a third request may have come in first, and let the intruder in.
func (c *inquiry) explainOverlap(older, intruder *section) (first, second *section, b breach) {
	if b = c.breach(older, intruder); b.cause != Unexplained {
		return older, intruder, b
	}
	if intruder.enter().Sub(older.enter()) < clockTolerance {
		if swapped := c.breach(intruder, older); swapped.cause != Unexplained {
			return intruder, older, swapped
		}
	}
	for _, third := range c.sections {
		if !third.entered() || third == older || third == intruder ||
			third.enter().Before(older.enter()) || third.enter().After(intruder.enter()) {
			continue
		}
		if through := c.breach(older, third); through.cause != Unexplained {
			through.sentence += fmt.Sprintf(" %s came in behind %s.", intruder.name(), third.name())
			through.culprit = third
			return older, intruder, through
		}
	}
	return older, intruder, b
}

// pastTheStock is the first order beyond the initial stock.
func (e Evidence) pastTheStock() (int, bool) {
	var sold int64
	for i, o := range e.Orders {
		if sold += o.Quantity; sold > e.InitialStock {
			return i, true
		}
	}
	return 0, false
}

// of is the request that made an order, nil where it is not known.
func (c *inquiry) of(o stock.Order) *section { return c.byID[o.RequestID] }

func (e Evidence) row(i int) Row {
	o := e.Orders[i]
	return Row{ID: o.ID, Request: o.RequestID, Shop: o.Shop, Read: o.StockRead, Written: o.StockWritten, Token: o.Token, Nth: i + 1}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// ms is a duration in whole milliseconds, or in tenths where it is short.
func ms(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
}
