package trial

import (
	"fmt"
	"math/rand/v2"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/load"
	"stocklock/internal/strategy/declared"
)

// wish is what one request asks for.
type wish struct {
	quantity int
	key      string // the idempotency key of its purchase; empty for none
}

// wishes are what the customers of a cell buy, request by request. Under contention, where numbers
// are compared, each wants one unit. Elsewhere some want several units, and some purchases have an
// idempotency key. Such a purchase is sent again: beside the first request, after its answer, or
// because that said nothing of an order. The customers' mutex guards it.
type wishes struct {
	seed  uint64
	item  uint64
	plain bool // single units, without a key
	keys  bool
	lose  bool // a request with a fault has no key, by which its order would be found
	apart bool // nothing is sent beside itself: see [customers.goOn]

	beside wish            // repeated by the next request
	again  []wish          // to be sent again, in their order
	after  map[string]bool // purchases to be repeated once they are answered as sold
	sent   map[string]int  // requests, by key
}

const (
	maxSent   = 3 // requests of one purchase
	mostUnits = 3 // that one of a crowd buys
)

// newWishes plans what customers buy. A strategy that answers before it writes cannot find the order
// of a repeat, so nothing is repeated.
func newWishes(sc Scenario, of declared.Strategy, seed uint64, item audit.Run) wishes {
	return wishes{
		seed: seed, item: item.ItemID, plain: sc.Comparable, keys: !of.AnswersFirst, lose: sc.Crowd.Lose, apart: !sc.Crowd.IsZero(),
		after: map[string]bool{}, sent: map[string]int{},
	}
}

// next plans the n-th request, counted from 0. The seed says what each request does: only what is
// sent again depends on the answers. A request with a fault is a purchase of its own, of one unit. No
// other is sent beside it, which would buy what the fault is to delay.
func (w *wishes) next(n int, faulted bool) wish {
	rng := rand.New(rand.NewPCG(w.seed, uint64(n)+1))
	beside := w.beside
	w.beside = wish{}
	switch kind := rng.IntN(12); {
	case w.plain:
	case faulted && kind%2 == 0 && !w.lose:
		return w.keyed(n)
	case faulted:
	case beside.key != "":
		w.sent[beside.key]++
		return beside
	case kind < 2:
		return wish{quantity: 2 + rng.IntN(mostUnits-1)}
	case kind == 2:
		own := w.keyed(n)
		if !w.apart {
			w.beside = own
		}
		return own
	case kind == 3:
		own := w.keyed(n)
		w.after[own.key] = true
		return own
	case kind < 6 && len(w.again) > 0:
		return w.repeated()
	}
	return wish{quantity: 1}
}

// keyed is a purchase of one unit under a key of its own, where the strategy can do with keys.
func (w *wishes) keyed(n int) wish {
	if !w.keys {
		return wish{quantity: 1}
	}
	own := wish{quantity: 1, key: fmt.Sprintf("purchase-%08d-%08d", w.item, n)}
	w.sent[own.key]++
	return own
}

// repeated is the next purchase that is to be sent again.
func (w *wishes) repeated() (again wish) {
	again, w.again = w.again[0], w.again[1:]
	w.sent[again.key]++
	return again
}

// answered has a purchase sent again where its customer would do so.
func (w *wishes) answered(h *Customer) {
	key := h.wish.key
	if key == "" || w.sent[key] >= maxSent || h.Outcome == load.Sold && !w.after[key] || h.Outcome == load.SoldOut {
		return
	}
	delete(w.after, key)
	w.again = append(w.again, h.wish)
}
