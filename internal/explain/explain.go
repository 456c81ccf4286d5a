package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"stocklock/internal/stock"
	"stocklock/internal/trace"
)

// Explain finds what there is to say of a cell: its first violation, or why nothing moves,
// or what came nearest to breaking it. It returns nil where nothing was sold or nothing is known.
func Explain(e Evidence) *Explanation {
	c := &inquiry{Evidence: e, sections: e.sections()}
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
	sections []*section
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
	breach := c.breach(older, intruder)
	x := &Explanation{Cause: breach.cause, Rows: rows}
	x.Sentence = breach.sentence + fmt.Sprintf(" Both read a stock of %d: %s wrote over the order of %s.", read, late.name(), other.name())
	d := c.drawing(older.enter())
	d.follow(older, intruder)
	if breach.culprit != nil {
		d.follow(breach.culprit)
	}
	d.moment(late.at[trace.Written], fmt.Sprintf("oversold: order %d wrote over order %d", c.Orders[found.late].ID, c.Orders[found.overwritten].ID), true)
	d.both(intruder.enter(), earlier(older.leave(), intruder.leave()))
	d.finish(x)
	return x
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

func (c *inquiry) of(o stock.Order) *section {
	for _, s := range c.sections {
		if s.ID == o.RequestID {
			return s
		}
	}
	return nil
}

func (e Evidence) row(i int) Row {
	o := e.Orders[i]
	return Row{ID: o.ID, Request: o.RequestID, Shop: o.Shop, Read: o.StockRead, Written: o.StockWritten, Token: o.Token, Nth: i + 1}
}

// breach is how a second holder came in.
type breach struct {
	cause    Cause
	sentence string
	culprit  *section // a third request that opened the door, if one did
}

// breach says what let the intruder in while the older holder was inside.
func (c *inquiry) breach(older, intruder *section) breach {
	if !c.Exclusive {
		if !older.guarded() {
			return breach{NoLock, fmt.Sprintf("Nothing kept %s out while %s was between its read and its write.", intruder.name(), older.name()), nil}
		}
		return breach{OneProcess, fmt.Sprintf("%s holds a mutex of its own process, which %s does not know: each of them was alone in its process, and not in the section.",
			older.name(), intruder.name()), nil}
	}
	if gone := c.ending(older, intruder, func(ch trace.Change) bool { return ch.What == trace.Gone }); gone != nil {
		return breach{Failover, fmt.Sprintf("%s had the lock when its Redis died (%s); the replica that took over had never heard of it, and gave the lock to %s while %s was inside.",
			older.name(), c.since(older, gone.Time), intruder.name(), older.name()), nil}
	}
	if late := c.foreignRelease(older, intruder); late != nil {
		return c.blame(late, older, intruder)
	}
	expired := c.ending(older, intruder, func(ch trace.Change) bool {
		return ch.What == "expired" && ch.Time.Sub(older.enter()) > c.Lease*4/5
	})
	if expired != nil {
		return c.leaseEnded(older, intruder, fmt.Sprintf("lease of %s ended in Redis (%s)", ms(c.Lease), c.since(older, expired.Time)))
	}
	taken := c.ending(older, intruder, func(ch trace.Change) bool { return ch.What == "set" })
	if taken != nil {
		if intruder.enter().Sub(older.enter()) < c.Lease*4/5 {
			if d := c.deedAt(intruder.Shop, intruder.enter()); d != nil {
				return breach{ClockSkew, fmt.Sprintf("%s took the lock over from %s, whose lease of %s had begun only %s before: %s has its %s, and judges other holders' deadlines by it.",
					intruder.name(), older.name(), ms(c.Lease), ms(intruder.enter().Sub(older.enter())), intruder.Shop, d.What), nil}
			}
		}
		return c.leaseEnded(older, intruder, fmt.Sprintf("deadline of %s passed, and %s took the lock over (%s)", ms(c.Lease), intruder.name(), c.since(older, taken.Time)))
	}
	return breach{Unexplained, fmt.Sprintf("%s came in while %s was inside, and the trace does not show why.", intruder.name(), older.name()), nil}
}

// leaseEnded says why the older holder was still inside when its lease was over.
func (c *inquiry) leaseEnded(older, intruder *section, how string) breach {
	went := fmt.Sprintf("%s then got the lock while %s was still inside.", intruder.name(), older.name())
	if d := c.deedAt(older.Shop, older.enter().Add(c.Lease/2)); d != nil && d.What != Dead {
		return breach{CutOff, fmt.Sprintf("%s was %s, so that it could not renew, and did not notice: its %s. %s", older.name(), d.What, how, went), nil}
	}
	switch {
	case strings.HasPrefix(older.fault.what, "stop"):
		return breach{Paused, fmt.Sprintf("%s stood still for %s (SIGSTOP) after its last look at the lock: its %s. %s",
			older.name(), ms(older.fault.until.Sub(older.fault.from)), how, went), nil}
	case older.fault.what != "":
		return breach{Overrun, fmt.Sprintf("%s worked for %s, longer than its lease: its %s. %s",
			older.name(), ms(older.fault.until.Sub(older.fault.from)), how, went), nil}
	default:
		return breach{Overrun, fmt.Sprintf("%s was inside for longer than its lease: its %s. %s", older.name(), how, went), nil}
	}
}

// foreignRelease finds the third request whose late release freed the older holder's lock.
func (c *inquiry) foreignRelease(older, intruder *section) *section {
	for _, ch := range c.between(older, intruder) {
		if ch.What != "del" {
			continue
		}
		for _, s := range c.sections {
			from, to := s.at[trace.Releasing], s.at[trace.Released]
			if s == older || s == intruder || from.IsZero() || s.enter().After(older.enter()) {
				continue
			}
			late := s.fault.at == trace.Releasing || from.Sub(s.enter()) > c.Lease*4/5
			if late && !ch.Time.Before(from) && (to.IsZero() || ch.Time.Before(to.Add(clockTolerance))) {
				return s
			}
		}
	}
	return nil
}

func (c *inquiry) blame(late, older, intruder *section) breach {
	held := ms(late.fault.until.Sub(late.enter()))
	if late.fault.at == trace.Releasing {
		return breach{SplitRelease, fmt.Sprintf("%s came back to its release %s after it got the lock, past its lease of %s, and deleted the lock that was %s's by then; %s got in while %s was inside.",
			late.name(), held, ms(c.Lease), older.name(), intruder.name(), older.name()), late}
	}
	return breach{LateRelease, fmt.Sprintf("%s released %s after it got the lock, when its lease of %s was over, and freed the lock that was %s's by then; %s got in while %s was inside.",
		late.name(), held, ms(c.Lease), older.name(), intruder.name(), older.name()), late}
}

// between are the changes of the lock between the two entries, give or take what it
// takes to note one.
func (c *inquiry) between(older, intruder *section) []trace.Change {
	var found []trace.Change
	for _, ch := range c.Changes {
		if ch.Time.After(older.enter()) && ch.Time.Before(intruder.enter().Add(clockTolerance)) {
			found = append(found, ch)
		}
	}
	return found
}

// ending is the last of them of a kind.
func (c *inquiry) ending(older, intruder *section, kind func(trace.Change) bool) *trace.Change {
	for _, ch := range slices.Backward(c.between(older, intruder)) {
		if kind(ch) {
			return &ch
		}
	}
	return nil
}

// deedAt is what the lab was doing to a shop at a time.
func (e Evidence) deedAt(shop string, at time.Time) *trace.Deed {
	for _, d := range e.Deeds {
		if d.Shop == shop && !at.Before(d.From) && (d.Until.IsZero() || at.Before(d.Until)) {
			return &d
		}
	}
	return nil
}

func (c *inquiry) since(s *section, t time.Time) string { return "+" + ms(t.Sub(s.enter())) }

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
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
