package trial

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

// TestTheFirstOfThePlayIsAlone: it is sent when no other request is under way, and no other is sent
// before it has reached its point. Then others go to other shops.
func TestTheFirstOfThePlayIsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCustomers(2, "item", wishes{plain: true})
		c.firstAt, c.apart = 1, true
		before := c.next(t.Context())
		made := make(chan *Customer, 2)
		send := func() { made <- c.next(t.Context()) }
		go send()
		synctest.Wait()
		go send()
		synctest.Wait()
		if len(made) > 0 {
			t.Fatal("a request was sent beside another one and the first of the play")
		}
		c.answered(before, load.Answer{Outcome: load.Sold})
		synctest.Wait()
		first := <-made
		if !first.first || len(made) > 0 {
			t.Fatalf("after the only answer, %+v was sent, and %d more", first, len(made))
		}
		c.goOn(false)
		synctest.Wait()
		if other := <-made; other.first || other.shop == first.shop {
			t.Errorf("beside the first of the play, which has a shop for itself: %+v", other)
		}
	})
}

// TestNoPurchaseMeetsItself: nothing is sent beside itself before the first of the play is at its point, nor while two
// other sales are to meet after that.
func TestNoPurchaseMeetsItself(t *testing.T) {
	for _, third := range []bool{false, true} {
		beside := func(c *customers) (pairs int) {
			for range 60 {
				if c.next(t.Context()); c.wishes.beside.key != "" {
					pairs++
				}
			}
			return pairs
		}
		s := attackOf(Options{}).Show
		s.Scenario.Crowd = Play{At: sale.Written, Third: third}
		c := newCustomers(1, "item", newWishes(s.Scenario, s.Of, 2, s.Items[0]))
		s.customers = c
		before := beside(c)
		p := newPlay(newAttack(s))
		p.attack.customers.goOn(p.Third)
		during := beside(c)
		p.finish(t.Context())
		if after := beside(c); before > 0 || (during > 0) == third || after == 0 {
			t.Errorf("a third sale is waited for: %t. Sent beside themselves: %d purchases before the first, %d during the play, %d after it", third, before, during, after)
		}
	}
}

// TestWhoIsToReadBeforeACommitWaits for the lock as long as its shop lets it. Where a stall outlasted the usual wait, all
// were rejected as busy.
func TestWhoIsToReadBeforeACommitWaits(t *testing.T) {
	a := attackOf(Options{Workers: 1})
	a.Shops, a.traces, a.Of = make([]Shop, 1), make([]traceFile, 1), declared.Strategy{ReleasesFirst: true}
	a.customers, a.play, a.ended = newCustomers(1, "item", wishes{plain: true}), newPlay(a), time.Now()
	for n := range beforeCommits + 1 {
		want := playPatience
		if n == beforeCommits {
			want = 0
		}
		if got, _ := a.next(t.Context()); got.Wait != want {
			t.Errorf("request %d waits for %s, want %s", n, got.Wait, want)
		}
	}
}

// TestAnotherIsTheFirst: a first that was rejected before its point is made again.
func TestAnotherIsTheFirst(t *testing.T) {
	c := newCustomers(2, "item", wishes{plain: true})
	c.firstAt = 0
	c.answered(c.next(t.Context()), load.Answer{Outcome: load.Busy})
	if again := c.next(t.Context()); !again.first {
		t.Error("the first was rejected as busy, and no other is the first")
	}
}

// TestAPointThatWasMissed: a first that was sold is past its point when the trace of its shop was read after its answer.
func TestAPointThatWasMissed(t *testing.T) {
	a := attackOf(Options{Workers: 1})
	a.customers, a.play = newCustomers(2, "item", wishes{plain: true}), newPlay(a)
	a.customers.firstAt = 0
	const latency = time.Minute
	const soon = latency + playPatience/2
	a.customers.answered(a.customers.next(t.Context()), load.Answer{Outcome: load.Sold, Sent: time.Now(), Latency: latency})
	for _, tt := range []struct {
		shop int
		read time.Duration
		of   declared.Strategy
		at   sale.Point
		want bool
	}{
		{0, -time.Hour, declared.Strategy{}, sale.Read, false}, {1, time.Hour, declared.Strategy{}, sale.Read, false},
		{0, time.Hour, declared.Strategy{AnswersFirst: true}, sale.Read, true}, {0, time.Hour, declared.Strategy{}, sale.Answered, true},
		{0, soon, declared.Strategy{AnswersFirst: true}, sale.Read, false}, {0, soon, declared.Strategy{}, sale.Answered, false},
		{0, soon, declared.Strategy{}, sale.Read, true},
	} {
		a.Of, a.play.At = tt.of, tt.at
		a.feed.reads(tt.shop, time.Now().Add(tt.read))
		if got := a.play.missed(); got != tt.want {
			t.Errorf("the trace of shop %d was read %s after: missed is %t", tt.shop, tt.read, got)
		}
	}
	a.play.At = sale.Answered
	if a.customers.missed.Outcome = load.Unknown; !a.play.missed() { // one that was not sold has nothing behind its answer
		t.Error("a sale that was not answered as sold is waited for behind its answer")
	}
}

// TestAPointIsReadBehindTheLook: what is read between the look and the question whether the point was missed is seen.
func TestAPointIsReadBehindTheLook(t *testing.T) {
	a := attackOf(Options{Workers: 1})
	a.customers, a.play = newCustomers(1, "item", wishes{plain: true}), newPlay(a)
	a.customers.firstAt = 0
	a.customers.answered(a.customers.next(t.Context()), load.Answer{Outcome: load.Sold, Sent: time.Now()})
	looks := 0
	if !a.play.await(t.Context(), ReachedPoint, func() (Seen, bool) {
		a.feed.reads(0, time.Now().Add(time.Hour))
		looks++
		return Seen{}, looks > 1
	}) {
		t.Error("the point was read, and counts as missed")
	}
}

// TestTheLateSaleComesWhenFewUnitsAreLeft: a shop holds none for as long as a load can take.
func TestTheLateSaleComesWhenFewUnitsAreLeft(t *testing.T) {
	a := attackOf(Options{Stock: 100, Workers: 3})
	a.Shops, a.customers = make([]Shop, 2), newCustomers(2, "", wishes{plain: true})
	a.ctx, a.traces, a.play = t.Context(), []traceFile{{}}, newPlay(a)
	a.Of.State.Sum = true
	last := newLastUnit(a)
	for _, sold := range []int64{0, 80, 88} {
		a.progress.sold = sold
		last.wait(t.Context())
		if got := a.customers.next(t.Context()).late; got != (sold == 88) {
			t.Errorf("%d of 100 are sold: late is %t", sold, got)
		}
	}
}

// TestTheFirstSaleIsLetGoWhileOthersAreMade is for the race detector.
func TestTheFirstSaleIsLetGoWhileOthersAreMade(t *testing.T) {
	var let atomic.Int64
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		let.Add(1)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer shop.Close()
	a := attackOf(Options{})
	a.Shops, a.customers = []Shop{{URL: shop.URL}}, newCustomers(1, "", wishes{plain: true})
	a.ctx, a.traces, a.play = t.Context(), []traceFile{{}}, newPlay(a)
	a.Of.State.Sum = true
	last := newLastUnit(a)
	last.wait(t.Context())
	a.customers.next(t.Context())
	last.answered(&Customer{Answer: load.Answer{Outcome: load.SoldOut}})
	if a.background.Wait(); let.Load() > 0 {
		t.Error("it was let go before it was held")
	}
	last.here()
	last.answered(&Customer{Answer: load.Answer{Outcome: load.SoldOut}})
	for range 100 {
		a.customers.next(t.Context())
	}
	a.background.Wait()
	if let.Load() != 1 {
		t.Errorf("the first sale was let go %d times, want once", let.Load())
	}
}
