package schedule

import (
	"maps"

	"stocklock/internal/lab/count"
	"stocklock/internal/lab/verdict"
)

// Reserved is what customers have paid who reserve.
type Reserved struct {
	Each    int64            `json:"each"` // units of an order
	Paid    map[string]int64 `json:"paid"` // by customer: payments that were kept
	Revived int64            `json:"revived,omitempty"`
}

func (r *Record) decideReservations() {
	o := &r.Outcome
	purchases := o.purchases()
	for customer, p := range purchases {
		paid := o.Reserved.Paid[customer]
		p.Wants, p.Paid = nil, &paid
		purchases[customer] = p
	}
	f := count.Facts(maps.Values(purchases))
	f.Stock, f.Sold = o.Stock, int64(len(o.Orders))*o.Reserved.Each
	f.Oversold, f.Remaining = max(f.Sold-f.Stock, 0), max(f.Stock-f.Sold, 0)
	r.rule(f)
}

func (o *Outcome) causeOfReservation() verdict.Cause {
	switch {
	case o.Verdict == verdict.Oversold && o.Reserved.Revived > 0:
		return verdict.Revived
	case o.Verdict == verdict.Oversold:
		return verdict.Uncounted
	case o.Verdict == verdict.Unserved:
		return verdict.Overwritten
	}
	return verdict.Unexplained
}
