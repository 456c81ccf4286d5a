package labmode

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/shop"
	"stocklock/internal/stock"
)

// SweepPath is where a shop in the lab ends overdue reservations: POST SweepPath. It never does so by itself, so that
// a sweep is a request like others. The answer says how many ended: {"ended":1}.
const SweepPath = "/lab/sweep"

// Swept is the answer to a sweep.
type Swept struct {
	Ended int `json:"ended"`
}

func (l *Lab) sweep(w http.ResponseWriter, r *http.Request) {
	swept, err := within(r.Context(), l, r.Header.Get(shop.RequestIDHeader), func(ctx context.Context, _ reserving) (s Swept, err error) {
		s.Ended, _, _, err = l.deps.Store.EndHolds(ctx, l.name, 64) // more than a play has
		return s, err
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(swept)
}

// Holds returns what makes and ends reservations as each request asks.
func (l *Lab) Holds(usual stock.Holder) stock.Holder { return holder{l, usual} }

type holder struct {
	lab   *Lab
	usual stock.Holder
}

// reserving is what a request about a reservation asks for.
type reserving struct {
	Experiment
	strategy string
	holds    stock.Holder // nil for the usual one
}

// within does what a request about a reservation asks for. It passes the point write before that, and written after
// it.
func within[T any](ctx context.Context, l *Lab, request string, do func(context.Context, reserving) (T, error)) (done T, err error) {
	_, asked, of, err := l.asked(ctx)
	if err != nil {
		return done, err
	}
	to := reserving{Experiment: asked, strategy: of.Name}
	if of.Holds != nil {
		to.holds = of.Holds(l.deps)
	}
	hook := l.hook(asked, of, stock.Sale{RequestID: request, Run: asked.Run})
	if l.Stepper != nil {
		ctx, hook = l.Stepper.Sale(ctx, request, hook)
	}
	ctx = sale.WithHook(ctx, hook)
	sale.At(ctx, sale.Write)
	if done, err = do(ctx, to); err == nil {
		sale.At(ctx, sale.Written)
	}
	return done, err
}

// by has a request change a reservation, by the way that it asks for.
func (h holder) by(ctx context.Context, request string, change func(context.Context, reserving) (stock.Hold, error)) (stock.Hold, error) {
	return within(ctx, h.lab, request, func(ctx context.Context, to reserving) (stock.Hold, error) {
		if to.holds == nil {
			to.holds = h.usual
		}
		return change(ctx, to)
	})
}

// Hold holds units for the whole seconds of a lease that is asked for: for 0 s, they are overdue at once.
func (h holder) Hold(ctx context.Context, wanted stock.Sale, seconds int64, terms stock.Terms) (stock.Hold, error) {
	return h.by(ctx, wanted.RequestID, func(ctx context.Context, to reserving) (stock.Hold, error) {
		if to.Lease > 0 {
			seconds = int64(to.Lease / time.Second)
		}
		return to.holds.Hold(ctx, wanted, seconds, terms)
	})
}

// EndOverdue does nothing while requests are held one by one.
func (h holder) EndOverdue(ctx context.Context, shop string, wanted stock.Sale) (int, error) {
	if h.lab.Stepper != nil {
		return 0, nil
	}
	return h.usual.EndOverdue(ctx, shop, wanted)
}

func (h holder) Move(ctx context.Context, by stock.Author, id string, as stock.Transition) (stock.Hold, error) {
	return h.by(ctx, by.RequestID, func(ctx context.Context, to reserving) (stock.Hold, error) {
		return to.holds.Move(ctx, by, id, as)
	})
}

func (h holder) Confirm(ctx context.Context, by stock.Author, id, reference string, paid stock.Sale, terms stock.Terms) (stock.Hold, error) {
	return h.by(ctx, by.RequestID, func(ctx context.Context, to reserving) (stock.Hold, error) {
		paid.Run, paid.Strategy = to.Run, to.strategy
		return to.holds.Confirm(ctx, by, id, reference, paid, terms)
	})
}
