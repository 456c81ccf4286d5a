package trial

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

// TestAFenceThatRefusesEverybody: nothing is sold any more when the fence has refused as many requests as
// there are customers, and all of them came after the last sale.
func TestAFenceThatRefusesEverybody(t *testing.T) {
	const workers = 3
	begun := time.Now()
	for _, tt := range []struct {
		what     string
		outcomes []load.Outcome // one request after the other
		held     bool           // by the play
		want     bool
	}{
		{what: "all", outcomes: []load.Outcome{load.Sold, load.Fenced, load.Fenced, load.Fenced}, want: true},
		{what: "all, before the first sale", outcomes: []load.Outcome{load.Fenced, load.Fenced, load.Fenced}, want: true},
		{what: "all but one", outcomes: []load.Outcome{load.Sold, load.Fenced, load.Fenced}},
		{what: "a newer one sells", outcomes: []load.Outcome{load.Fenced, load.Fenced, load.Sold, load.Fenced}},
		{what: "all, while one is held", outcomes: []load.Outcome{load.Fenced, load.Fenced, load.Fenced}, held: true},
		{what: "nothing is left", outcomes: []load.Outcome{load.SoldOut, load.Fenced, load.Fenced, load.Fenced}},
	} {
		a := attackOf(Options{Stock: 30, Workers: workers})
		a.play = &play{attack: a, holding: tt.held}
		a.progress.start(begun)
		for _, outcome := range tt.outcomes {
			a.progress.answered(&Customer{wish: wish{quantity: 1}, Answer: load.Answer{Outcome: outcome, Sent: time.Now()}})
		}
		if got := a.standsStill(t.Context()); got != tt.want {
			t.Errorf("%s: it stands still: %t, want %t", tt.what, got, tt.want)
		}
		if got := a.facts(&Result{Remaining: 9}); tt.want && (got.Verdict().Kind != verdict.Stuck || !got.Waiting.Fenced) {
			t.Errorf("%s: %+v", tt.what, got)
		}
	}
}

// TestCustomersWhoStarveGiveUp: where sales may starve each other, an attack is over when as many requests as a fixed load
// has were lost to others since the last sale, and its play is over. What is left is demand.
func TestCustomersWhoStarveGiveUp(t *testing.T) {
	lost := slices.Repeat([]load.Outcome{load.Conflict}, 4)
	for _, tt := range []struct {
		what     string
		outcomes []load.Outcome
		starves  bool
		playing  bool
		want     bool
	}{
		{"all lost", append([]load.Outcome{load.Sold}, lost...), true, false, true},
		{"all lost while a sale is held", append([]load.Outcome{load.Sold}, lost...), true, true, false},
		{"all lost, and nothing is declared", append([]load.Outcome{load.Sold}, lost...), false, false, false},
		{"one sold since", slices.Concat(lost, []load.Outcome{load.Sold}, lost[1:]), true, false, false},
		{"nothing is left", append([]load.Outcome{load.SoldOut}, lost...), true, false, false},
	} {
		a := attackOf(Options{Stock: 30, Requests: len(lost), Workers: 3})
		a.Of.Starves, a.play = tt.starves, newPlay(a)
		a.progress.start(time.Now())
		for _, outcome := range tt.outcomes {
			a.progress.answered(&Customer{wish: wish{quantity: 1}, Answer: load.Answer{Outcome: outcome, Sent: time.Now()}})
		}
		if !tt.playing {
			close(a.play.over)
		}
		if got := a.over(t.Context(), len(tt.outcomes)); got != tt.want {
			t.Errorf("%s: the attack is over: %t, want %t", tt.what, got, tt.want)
		}
		if got := a.facts(&Result{Sold: 1, Remaining: 29}).Verdict(); (got.Kind == verdict.Held) != tt.want {
			t.Errorf("%s: %+v", tt.what, got)
		}
	}
}

// TestARateWaitsForNoAnswer: its requests are more at once than there are customers.
func TestARateWaitsForNoAnswer(t *testing.T) {
	o := Options{Workers: 3}
	if closed := o.atOnce(); closed != 3 {
		t.Errorf("3 customers have %d requests under way", closed)
	}
	o.Shape = load.Steady(100)
	if open := o.atOnce(); open < 100 {
		t.Errorf("100 a second have at most %d under way", open)
	}
}

// TestALockWithoutAnEndInSight: one whose lease outlasts the cell ends as little as one without a lease.
func TestALockWithoutAnEndInSight(t *testing.T) {
	now := time.Now()
	a := attackOf(Options{Lease: time.Second})
	for left, want := range map[time.Duration]bool{0: true, time.Second: false, maxCell: false, 1000 * time.Second: true} {
		k := keyState{now: now}
		if left > 0 {
			k.end = now.Add(left)
		}
		if got := a.endlessIn(t.Context(), lockState{keys: map[string]keyState{"lock": k}}); got != want {
			t.Errorf("a lock with %s left has no end in sight: %t, want %t", left, got, want)
		}
	}
}

// TestASaleThatTakesItsLockAgain waits for itself only while it has it.
func TestASaleThatTakesItsLockAgain(t *testing.T) {
	for _, released := range []bool{false, true} {
		f := newFeed()
		for i, p := range []sale.Point{sale.Acquired, sale.Released, sale.Waiting} {
			if p != sale.Released || released {
				f.add(labmode.Event{Request: "a", Point: p, Time: noon.Add(time.Duration(i) * time.Second)})
			}
		}
		if _, waits := f.waitsForItself(noon); waits == released {
			t.Errorf("it has released its lock: %t, and waits for itself: %t", released, waits)
		}
	}
}

// TestTheHolderOfALockIsAtWork: a lock without an end has one in sight while a sale that has taken it is not answered.
func TestTheHolderOfALockIsAtWork(t *testing.T) {
	a := attackOf(Options{Lease: time.Second})
	a.customers = newCustomers(1, "", wishes{})
	h, late := a.customers.add(), a.customers.add()
	late.late = true
	lock := lockState{keys: map[string]keyState{"lock": {}}}
	a.feed.add(labmode.Event{Request: h.id, Point: sale.Waiting})
	a.feed.add(labmode.Event{Request: late.id, Point: sale.Acquired})
	if !a.endlessIn(t.Context(), lock) {
		t.Error("nobody has taken it who may release it, and an end is in sight")
	}
	if a.feed.add(labmode.Event{Request: h.id, Point: sale.Acquired}); a.endlessIn(t.Context(), lock) {
		t.Error("its holder is at work, and no end is in sight")
	}
	if close(h.done); !a.endlessIn(t.Context(), lock) {
		t.Error("its holder was answered and has left it, and an end is in sight")
	}
}

// TestTheHolderOfALockIsStillToBeRead: a sale has just taken the lock, and its shop's trace is not read up to then.
func TestTheHolderOfALockIsStillToBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := attackOf(Options{Lease: time.Second})
		a.customers, a.traces = newCustomers(1, "", wishes{}), []traceFile{{}}
		h := a.customers.add()
		endless := make(chan bool, 1)
		go func() { endless <- a.endlessIn(t.Context(), lockState{keys: map[string]keyState{"lock": {}}}) }()
		synctest.Wait()
		a.feed.add(labmode.Event{Request: h.id, Point: sale.Acquired})
		time.Sleep(time.Millisecond)
		if a.feed.reads(0, time.Now()); <-endless {
			t.Error("its holder is at work, and no end is in sight")
		}
	})
}

// TestNothingIsAtRestBeforeTheRelease: while a hold is being ended, its sale still keeps others from selling.
func TestNothingIsAtRestBeforeTheRelease(t *testing.T) {
	a := attackOf(Options{})
	var idle []bool
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		idle = append(idle, a.play.idle())
		w.WriteHeader(http.StatusNoContent)
	}))
	defer shop.Close()
	a.ctx, a.Shops, a.customers, a.play = t.Context(), []Shop{{URL: shop.URL}}, newCustomers(1, "", wishes{}), newPlay(a)
	a.play.first, a.play.holding, a.play.second = a.customers.add(), true, a.customers.add().id
	if a.play.finish(t.Context()); !slices.Equal(idle, []bool{false, false}) || !a.play.idle() {
		t.Errorf("nobody is held: %t while the holds are being ended, then %t", idle, a.play.idle())
	}
}

// TestAShopThatRestartsIsSeenByItsReadiness has a shop that breaks a connection and is not ready for
// a while.
func TestAShopThatRestartsIsSeenByItsReadiness(t *testing.T) {
	var ready atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	a := attackOf(Options{})
	a.Shops = []Shop{{URL: server.URL}}
	a.ctx = t.Context()
	died := &Customer{Answer: load.Answer{Err: io.EOF}}
	a.awaitReturn(died)
	a.awaitReturn(died) // of another customer
	time.Sleep(5 * askReady)
	if now := a.progress.now(); now.halted(1) && time.Since(now.last) > 0 {
		t.Error("nothing is sold while the shop is away, and that counts as stuck")
	}
	ready.Store(true)
	a.background.Wait()
	i := a.record.interventions
	if len(i) != 1 || i[0].Shop != "shop 1" || i[0].Until.Sub(i[0].From) < 4*askReady {
		t.Errorf("noted %+v, want that shop 1 was dead until it was ready", i)
	}
	a.awaitReturn(died) // it is ready: only the connection broke
	a.awaitReturn(&Customer{Answer: load.Answer{Outcome: load.Sold}})
	a.background.Wait()
	if len(a.record.interventions) != 1 {
		t.Errorf("noted %+v, want nothing more", a.record.interventions)
	}
	if broken(load.Answer{Err: &timeout{}}) || !broken(load.Answer{Err: errors.New("refused")}) {
		t.Error("a shop that is stopped does not break connections")
	}
}

type timeout struct{}

func (*timeout) Error() string   { return "late" }
func (*timeout) Timeout() bool   { return true }
func (*timeout) Temporary() bool { return false }
