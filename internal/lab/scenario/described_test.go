package scenario

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"stocklock/internal/lab/count"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/declared"
)

// described sells so many units of a stock of 20 to the crowd, and answers those who come afterwards one after another.
type described struct {
	toCrowd int
	answers []load.Outcome // one without an answer has its order when all is settled
	status  int            // of each

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
	return load.Answer{Order: o, Outcome: outcome, Status: d.status}
}

func (d *described) Count(context.Context, uint64) (int64, map[string][]count.Order, error) {
	return 20 - int64(len(d.orders)), d.orders, nil
}

func (d *described) Settle(context.Context, uint64, int64) error {
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

// playedWith plays with a service that gives these answers, one after another, and then no more.
func playedWith(t *testing.T, service *described, play func(context.Context, *trial.Show)) verdict.Kind {
	t.Helper()
	sc := Described
	sc.Few = func(ctx context.Context, g *trial.Group) error {
		play(ctx, g.Shows[0])
		return nil
	}
	service.asked, service.orders = DescribedCustomers, map[string][]count.Order{}
	r, err := trial.Run(t.Context(), &trial.Bench{Service: service, Shops: []trial.Shop{{}}}, sc, []declared.Strategy{{Name: "mine"}}, 1, trial.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r[0].Verdict
}

// TestAReservationIsDecided, or its cell says nothing. That others hold the units decides.
func TestAReservationIsDecided(t *testing.T) {
	for _, tt := range []struct {
		outcome load.Outcome
		status  int
		decides bool
	}{
		{load.Sold, 201, true}, {load.SoldOut, 409, true}, {load.MustReturn, 409, true}, {load.Busy, 409, true},
		{load.Busy, 503, false}, {load.Unknown, 503, false}, {load.Unknown, 0, false}, {load.Refused, 0, false}, {load.Conflict, 503, false},
	} {
		playedWith(t, &described{answers: []load.Outcome{tt.outcome}, status: tt.status}, func(ctx context.Context, s *trial.Show) {
			c := &checkout{script: &script{Show: s, ctx: ctx}}
			if c.request(trial.Wish{Name: "A"}, words.Of("story.sweep")); errors.Is(c.err, trial.ErrNotSeen) == tt.decides {
				t.Errorf("%s, %d: %v", tt.outcome, tt.status, c.err)
			}
		})
	}
}

// TestASaleThatAPlayNeeds makes its cell invalid where it was answered otherwise.
func TestASaleThatAPlayNeeds(t *testing.T) {
	for outcome, want := range map[load.Outcome]verdict.Kind{load.Sold: verdict.Held, load.Unknown: verdict.Invalid} {
		got := playedWith(t, &described{answers: []load.Outcome{outcome}}, func(ctx context.Context, s *trial.Show) {
			c := s.Ask(ctx, trial.Wish{})
			<-c.Done()
			p := &servers{Group: s.Group, ctx: ctx}
			p.answered([]*trial.Customer{c}, "it sells", func(_ declared.Strategy, got load.Outcome) bool { return got == load.Sold })
		})
		if got != want {
			t.Errorf("%s: %s, want %s", outcome, got, want)
		}
	}
}

// TestRefusalsForAMoment end no play, however many they are: a server is away for longer than forty take.
func TestRefusalsForAMoment(t *testing.T) {
	sold := append(slices.Repeat([]load.Outcome{load.Sold}, 20), load.SoldOut, load.SoldOut)
	refused := slices.Repeat([]load.Outcome{load.Conflict}, 60)
	for _, tt := range []struct {
		answers []load.Outcome
		want    verdict.Kind
	}{{slices.Concat(refused, sold), verdict.Held}, {slices.Repeat(refused, 5), verdict.Stuck}} {
		synctest.Test(t, func(t *testing.T) {
			got := playedWith(t, &described{answers: tt.answers}, func(ctx context.Context, s *trial.Show) { s.Fail(sellOut(ctx, s)) })
			if got != tt.want {
				t.Errorf("%d answers, from %s to %s: %s, want %s", len(tt.answers), tt.answers[0], tt.answers[len(tt.answers)-1], got, tt.want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		playedWith(t, &described{answers: append(refused, load.Sold)}, func(ctx context.Context, s *trial.Show) {
			if err := buyInTheEnd(ctx, s, 0); err != nil {
				t.Error(err)
			}
		})
	})
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
