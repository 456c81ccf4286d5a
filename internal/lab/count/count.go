// Package count compares the orders that stand with what their customers were answered. It is the one
// place that does: cells of one item, of several and of topologies, schedules, soaks, exercises and services are
// compared by the same rules, from their own orders and answers.
//
// It knows no order of events but the times of requests and answers. What else shows that units were
// left, such as who came before whom, is its callers' to say.
package count

import (
	"iter"
	"maps"
	"slices"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/verdict"
)

// Units are how many there are of each item, by its id.
type Units map[uint64]int64

// Purchase is what one customer wanted to have once, with each answer to it and all its orders that stand.
type Purchase struct {
	Wants   Units // nil where that is not known: every order will do
	Answers []Answer
	Orders  []Order
	// Paid is how many payments its customer has made that are not to be returned, nil where nobody pays.
	Paid *int64
}

// Answer is how one request was answered.
type Answer struct {
	Outcome  load.Outcome
	Order    string    // the id of the order that it names, empty for none
	Sent, At time.Time // when it was asked, and answered: needed where there are several
}

// Order is one that stands.
type Order struct {
	ID    string // as its customer is told it, empty where that is not known
	Units Units
}

// Facts sums up those of purchases.
func Facts(all iter.Seq[Purchase]) (sum verdict.Facts) {
	for p := range all {
		f := p.Facts()
		sum.Sold += f.Sold
		sum.Twice += f.Twice
		sum.HalfSold += f.HalfSold
		sum.Unpaid += f.Unpaid
		sum.Unserved += f.Unserved
		sum.Unordered += f.Unordered
		sum.Unanswered += f.Unanswered
		sum.Denied += f.Denied
		sum.Decided += f.Decided
	}
	return sum
}

// Facts are where the orders differ from what the customer was answered, and how many units they have. A
// request without an answer, or with one that says nothing, may have an order or none.
func (p Purchase) Facts() (f verdict.Facts) {
	f.Twice = max(int64(len(p.Orders))-1, 0)
	for _, o := range p.Orders {
		for _, n := range o.Units {
			f.Sold += n
		}
		if p.half(o) {
			f.HalfSold++
		}
	}
	if p.Paid != nil {
		f.Unpaid = max(int64(len(p.Orders))-*p.Paid, 0)
		f.Unserved = max(*p.Paid-int64(len(p.Orders)), 0)
	}
	if len(p.Orders) > 0 || slices.ContainsFunc(p.Answers, func(a Answer) bool { return a.Outcome.Decides() }) {
		f.Decided = 1
	}
	var sold *Answer // the first that said so
	silent := false
	for i, a := range p.Answers {
		switch {
		case a.Outcome == load.Sold:
			if !slices.ContainsFunc(p.Orders, func(o Order) bool { return p.is(o, a) }) {
				f.Unordered++
			}
			if sold == nil || a.At.Before(sold.At) {
				sold = &p.Answers[i]
			}
		case !a.Outcome.Denies():
			silent = true
		}
	}
	switch {
	case len(p.Orders) == 0:
	case sold == nil:
		f.Unanswered = int64(len(p.Orders))
		if !silent {
			f.Denied = 1
		}
	case slices.ContainsFunc(p.Answers, func(a Answer) bool { return a.Outcome == load.SoldOut && a.Sent.After(sold.At) }):
		f.Denied = 1
	}
	return f
}

// half reports whether an order of several items has not all that was wanted.
func (p Purchase) half(o Order) bool { return len(p.Wants) > 1 && !maps.Equal(o.Units, p.Wants) }

// is reports whether an order is the one of an answer. One that is half sold is, and counts as that.
func (p Purchase) is(o Order, a Answer) bool {
	return (a.Order == "" || o.ID == a.Order) && (p.Wants == nil || maps.Equal(o.Units, p.Wants) || p.half(o))
}
