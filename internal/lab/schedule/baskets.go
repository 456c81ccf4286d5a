package schedule

import (
	"strings"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/verdict"
)

// decideBaskets is [Outcome.decide] where each customer buys one unit of each item, and there are enough for
// all. In the end ordinary customers have bought until one was refused.
func (o *Outcome) decideBaskets(events []Event) {
	f := verdict.Facts{Stock: o.Stock, DemandLeft: true}
	sold, rows := make([]int64, o.Items+1), map[string]int{}
	for _, order := range o.Orders {
		sold[order.Item]++
		rows[order.Customer]++
	}
	refused := int64(0)
	for customer, answer := range o.Answers {
		had := rows[customer]
		f.Twice += int64(max(0, had-1) / o.Items)
		if had%o.Items != 0 {
			f.HalfSold++
		}
		switch {
		case answer == string(load.Sold) && had == 0:
			f.Unordered++
		case load.Outcome(answer).Denies() && had > 0:
			f.Denied++
		case answer == string(load.SoldOut), len(events) == 0 && load.Outcome(answer).Denies():
			refused++
		}
	}
	ended := o.Ordinary == string(load.SoldOut)
	for _, units := range sold[1:] {
		f.Oversold += max(0, units-o.Stock)
		if ended {
			f.Nobodys += max(0, o.Stock-units)
		}
	}
	f.Left = min(refused, o.Afterwards)
	f.Stuck = !ended
	o.Verdict = f.Verdict().Kind
	o.N = verdict.Of(o.Verdict).Count(f)
}

// causeOfRefusal is why customers were refused baskets that could be had.
func (r *Record) causeOfRefusal() Cause {
	for _, answer := range r.Outcome.Answers {
		if answer != string(load.Sold) && answer != string(load.Busy) {
			return Unreturned
		}
	}
	return CrossedLocks
}

// Deadlocks counts the transactions of a run that MySQL has ended because they waited for each other.
func (r Record) Deadlocks() (n int) {
	for _, e := range r.Entries {
		if strings.Contains(e.Answer, "Error 1213") {
			n++
		}
	}
	return n
}
