package scenario

import (
	"context"
	"sync"
	"testing"

	"stocklock/internal/lab/count"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/declared"
)

// described sells so many units of a stock of 20 to the crowd, and answers those who come afterwards one after another.
type described struct {
	toCrowd int
	answers []load.Outcome // one without an answer has its order when all is settled

	mu      sync.Mutex
	asked   int
	orders  map[string][]count.Order
	unknown []string
}

func (d *described) Offer(context.Context, int64) (uint64, error) { return 1, nil }

func (d *described) Send(_ context.Context, o load.Order) load.Answer {
	d.mu.Lock()
	defer d.mu.Unlock()
	outcome := load.Busy
	if d.asked++; d.asked > DescribedCustomers {
		outcome = d.answers[d.asked-DescribedCustomers-1]
	} else if d.asked <= d.toCrowd {
		outcome = load.Sold
	}
	switch outcome {
	case load.Sold:
		d.orders[o.RequestID] = []count.Order{{Units: count.Units{1: 1}}}
	case load.Unknown:
		d.unknown = append(d.unknown, o.RequestID)
	}
	return load.Answer{Order: o, Outcome: outcome}
}

func (d *described) Count(context.Context, uint64) (int64, map[string][]count.Order, error) {
	return 20 - int64(len(d.orders)), d.orders, nil
}

func (d *described) Settle(context.Context, uint64) error {
	for _, request := range d.unknown {
		d.orders[request] = []count.Order{{Units: count.Units{1: 1}}}
	}
	return nil
}

// TestOneOddAnswerIsNotStuck: a described service is stuck where none of those who come afterwards is sold a unit that is there.
func TestOneOddAnswerIsNotStuck(t *testing.T) {
	for _, tt := range []struct {
		toCrowd int
		answers []load.Outcome
		want    verdict.Kind
	}{
		{10, []load.Outcome{load.Busy, load.Busy, load.Busy}, verdict.Stuck},
		{10, []load.Outcome{load.Busy, load.Sold, load.Sold}, verdict.Held},
		{10, []load.Outcome{load.Sold, load.Sold, load.Busy}, verdict.Held},
		{19, []load.Outcome{load.Unknown, load.Busy, load.Busy}, verdict.Held},
		{10, []load.Outcome{load.SoldOut, load.SoldOut, load.SoldOut}, verdict.Left},
	} {
		service := &described{toCrowd: tt.toCrowd, answers: tt.answers, orders: map[string][]count.Order{}}
		bench := &trial.Bench{Service: service, Shops: []trial.Shop{{}}}
		r, err := trial.Run(t.Context(), bench, Described, []declared.Strategy{{Name: "mine"}}, 1, trial.Options{})
		if err != nil || r[0].Verdict != tt.want {
			t.Errorf("%d sold to the crowd, and then %v: %s, %v, want %s", tt.toCrowd, tt.answers, r[0].Verdict, err, tt.want)
		}
	}
}

// TestACellThatServesNobody is invalid where units are for sale, and nobody had an answer that decides.
func TestACellThatServesNobody(t *testing.T) {
	sc := Described
	for _, tt := range []struct {
		answers []load.Outcome
		want    verdict.Kind
	}{
		{[]load.Outcome{load.Unknown, load.Unknown}, verdict.Invalid},
		{[]load.Outcome{load.Refused, load.Busy}, verdict.Invalid},
		{[]load.Outcome{load.Unknown, load.Sold}, verdict.Held},
		{[]load.Outcome{load.Unknown, load.Limited}, verdict.Held},
		{[]load.Outcome{load.Busy, load.SoldOut}, verdict.Left},
	} {
		service := &described{asked: DescribedCustomers, answers: tt.answers, orders: map[string][]count.Order{}}
		sc.Few = func(ctx context.Context, g *trial.Group) error {
			for range tt.answers {
				g.Shows[0].Buy(ctx, 0, 1)
			}
			return nil
		}
		bench := &trial.Bench{Service: service, Shops: []trial.Shop{{}}}
		r, err := trial.Run(t.Context(), bench, sc, []declared.Strategy{{Name: "mine"}}, 1, trial.Options{})
		if err != nil || r[0].Verdict != tt.want {
			t.Errorf("%v: %s, %v, want %s", tt.answers, r[0].Verdict, err, tt.want)
		}
	}
}
