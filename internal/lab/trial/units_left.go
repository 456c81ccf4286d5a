package trial

import (
	"cmp"
	"slices"
	"time"

	"stocklock/internal/lab/load"
)

// endsSoldOut reports whether the last sale was followed by an answer of sold out, to somebody who
// wanted no more than the units that are left.
func endsSoldOut(hits []*Customer, left int64) bool {
	var sold, soldOut time.Time
	for _, h := range hits {
		switch at := h.answeredAt(); {
		case h.Outcome == load.Sold && at.After(sold):
			sold = at
		case h.Outcome == load.SoldOut && at.After(soldOut) && int64(h.wish.quantity) <= left:
			soldOut = at
		}
	}
	return soldOut.After(sold)
}

// unitsLeft is the largest number of units that were left for certain while a request was under way
// that was sent away: answered as sold out, or refused although it was the only one under way. It
// returns that request, too, and 0 where there is none.
//
// Certain are only units that no other request can have had meanwhile. A request that was sent before
// the answer, and has an order or may have one, counts as having had its units all the time. So does a
// request that was under way at the same time, whatever it was answered. Where a strategy keeps units
// for a sale, a request that was refused, or is a repeat, may keep them for longer. It counts like one
// with an order.
func (a *attack) unitsLeft(orders []standing) (most int64, away string) {
	ordered := map[string]int64{} // units, by request
	for _, o := range orders {
		for _, units := range o.Units {
			ordered[o.request] += units
		}
	}
	keeps := a.keepsUnits()
	var ever, begun, over []units // those who had them from then on, and those who had them for a time
	for _, h := range a.customers.hits {
		own := ordered[h.id]
		delete(ordered, h.id)
		n := max(own, int64(h.wish.quantity))
		switch {
		case h.Sent.IsZero():
		case own == 0 && (h.Outcome == load.SoldOut || (h.Outcome.Denies() || h.replayed) && !keeps):
			begun, over = append(begun, units{h.Sent, n}), append(over, units{h.answeredAt(), n})
		default:
			ever = append(ever, units{h.Sent, n})
		}
	}
	supply := a.o.Stock
	for _, n := range ordered { // of nobody's
		supply -= n
	}
	cumulate(ever)
	cumulate(begun)
	cumulate(over)
	for _, h := range a.customers.hits {
		alone := h.alone && h.Outcome.Denies() && h.Outcome != load.Refused && !h.passed
		if h.Outcome != load.SoldOut && !alone {
			continue
		}
		there := supply + until(a.restocks, h.Sent) - until(ever, h.answeredAt())
		others := until(begun, h.answeredAt()) - until(over, h.Sent) - int64(h.wish.quantity)
		if left := there - max(others, 0); left >= int64(h.wish.quantity) && left > most {
			most, away = left, h.id
		}
	}
	return most, away
}

// units are how many came or went at a time.
type units struct {
	at time.Time
	n  int64
}

// cumulate puts them in order, each with all before it.
func cumulate(all []units) {
	slices.SortFunc(all, func(x, y units) int { return x.at.Compare(y.at) })
	for i := 1; i < len(all); i++ {
		all[i].n += all[i-1].n
	}
}

// until is how many there were until a time, of those that are cumulated.
func until(all []units, at time.Time) int64 {
	i, _ := slices.BinarySearchFunc(all, at, func(u units, at time.Time) int { return cmp.Or(u.at.Compare(at), -1) })
	if i == 0 {
		return 0
	}
	return all[i-1].n
}
