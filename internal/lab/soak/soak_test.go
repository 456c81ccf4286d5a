package soak

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/catalog/catalogtest"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/redislock"
	"stocklock/internal/shop"
	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/ladder"
	"stocklock/internal/testserver"
)

func run(t *testing.T, o Options, strategies ...string) Report {
	t.Helper()
	return whole(t, &soak{Options: o}, strategies...)
}

func whole(t *testing.T, s *soak, strategies ...string) Report {
	t.Helper()
	o := &s.Options
	o.Shop = catalogtest.Shop(t).Program
	// A busy machine may be slow to recover: that is for a soak that somebody watches.
	o.Shops, o.RecoverWithin, o.Log = 3, time.Minute, t.Output()
	for _, name := range strategies {
		by, err := ladder.ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		o.Strategies = append(o.Strategies, by.Describe())
	}
	r, err := s.whole(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var tables bytes.Buffer
	r.Print(&tables)
	t.Log("\n" + tables.String())
	return r
}

func TestWhatShouldSurviveASoakDoes(t *testing.T) {
	t.Parallel()
	const least = 3
	r := whole(t, &soak{Options: Options{Seed: 1, Duration: 12 * time.Second, Rate: 60}, least: least}, "fenced", "fenced-relative", "for-update", "optimistic", "conditional", "batched")
	if !r.Survived() {
		t.Errorf("found:\n%s", strings.Join(r.Findings, "\n"))
	}
	injected := 0
	for _, f := range r.Recoveries {
		injected += f.Times
	}
	if injected < least || r.Repeats == 0 {
		t.Errorf("%d faults, %d repeats: that was no soak", injected, r.Repeats)
	}
	for _, a := range r.Accounts {
		if a.Answers < 20 || a.Answers != a.Orders || a.Items < 2 {
			t.Errorf("%s: %d answers with 201, %d orders, of %d items", a.Strategy, a.Answers, a.Orders, a.Items)
		}
	}
}

// TestASoakCanFail: if nobody oversold here, a soak that finds nothing would mean nothing.
func TestASoakCanFail(t *testing.T) {
	t.Parallel()
	r := run(t, Options{Seed: 2, Duration: 5 * time.Second, Rate: 60}, "none")
	a := r.Accounts[0]
	if r.Survived() || a.Oversold+a.LostUpdates == 0 {
		t.Errorf("shops without a lock survived: %+v", a)
	}
	if a.AnswersWithoutOrder > 0 || a.Duplicates > 0 {
		t.Errorf("even without a lock an answer has its order: %+v", a)
	}
}

// TestKillsInTurn sells out by a way that answers after the COMMIT, and by one that answers before.
func TestKillsInTurn(t *testing.T) {
	t.Parallel()
	const sales = 2000
	for strategy, held := range map[string]bool{"batched": true, "redis-async": false} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			r := run(t, Options{Sales: sales, Workers: 48, Every: 100 * time.Millisecond}, strategy)
			a := r.Accounts[0]
			if r.Recoveries[&kinds[0]].Times == 0 || a.Doubtful == 0 {
				t.Errorf("%+v, %d customers in doubt: nothing was tested", r.Recoveries, a.Doubtful)
			}
			if r.Survived() != held || a.AnswersWithoutOrder == 0 != held {
				t.Errorf("%d answers without an order, found %q", a.AnswersWithoutOrder, r.Findings)
			}
			if held && (a.Answers != sales || a.Sold != sales || a.Left != 0) {
				t.Errorf("%d answers with 201 for %d units sold, %d left: want %d and none", a.Answers, a.Sold, a.Left, sales)
			}
		})
	}
}

// TestLocksInUseAreCounted: plain ones, those of package redislock, and who waits for one.
func TestLocksInUseAreCounted(t *testing.T) {
	server, err := testserver.Start(t).Redis(t.Context(), testserver.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := shop.OpenRedis(server.URL(), shop.RedisPoolSize)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	holder, waiter := redislock.New(client, redislock.Options{}), redislock.New(client, redislock.Options{})
	defer holder.Close(context.Background())
	defer waiter.Close(context.Background())
	client.Set(t.Context(), "plain", "somebody", time.Minute)
	_, lease, err := holder.Acquire(t.Context(), "reference")
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release()
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan struct{})
	go func() {
		waiter.Acquire(ctx, "reference")
		close(waits)
	}()
	defer func() { cancel(); <-waits }()
	names := map[string]bool{"plain": true, "reference": true, "unused": true}
	for giveUp := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var g Gauges
		if err := gaugeRedis(t.Context(), server, names, &g); err != nil {
			t.Fatal(err)
		}
		if g.Locks == 2 && g.Waiters == 1 && g.KeysForEver == 0 && g.KeysThatExpire == 5 {
			return
		}
		if time.Now().After(giveUp) {
			t.Fatalf("counted %+v, want two locks, one waiter, and the five keys of both", g)
		}
	}
}

// logged is a log that calls this with each line.
type logged func(line string)

func (l logged) Write(line []byte) (int, error) {
	l(string(line))
	return len(line), nil
}

// TestAShopThatEndsByItself has a shop end while an episode of other faults begins, and once more before the end.
func TestAShopThatEndsByItself(t *testing.T) {
	t.Parallel()
	by, err := ladder.ByName("conditional")
	if err != nil {
		t.Fatal(err)
	}
	s := &soak{Options: Options{
		Shop: catalogtest.Shop(t).Program, Strategies: []declared.Strategy{by.Describe()}, Shops: 1,
		Seed: 1, Duration: 6 * time.Second, Rate: 60, RecoverWithin: 100 * time.Millisecond, Faults: []string{"SIGSTOP of shop"},
	}}
	ends := 0
	s.Log = logged(func(line string) {
		t.Log(line)
		if strings.Contains(line, "s  2: +") && !s.testbed.Shops[0].Alive() {
			t.Error("an episode of a shop that has ended")
		}
		if strings.Contains(line, "s  1: +") || strings.Contains(line, "waiting for the requests under way") {
			ends++
			if err := s.testbed.Shops[0].Kill(); err != nil {
				t.Error(err)
			}
		}
	})
	r, err := s.whole(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, finding := range r.Findings {
		found += one(strings.HasPrefix(finding, "shop 1 ended by itself"))
	}
	if found != 2 || ends != 2 || r.After == nil {
		t.Errorf("a shop ended %d times, found %d times: %q", ends, found, r.Findings)
	}
}

// TestAShopThatHasEndedIsNotKilled, nor started again: the next episode finds that it ended by itself.
func TestAShopThatHasEndedIsNotKilled(t *testing.T) {
	process := &testserver.Process{Program: testserver.Program{
		Name: "sleep", Args: []string{"sleep", "600"}, Dir: t.TempDir(), Ready: func(context.Context) error { return nil }}}
	if err := testserver.Start(t).Launch(t.Context(), process); err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	s := &soak{testbed: &rig.Testbed{Shops: []*rig.TestbedShop{{Shop: &rig.Shop{Process: process}}}}}
	e := episode{faults: []fault{{kind: &kinds[0]}}}
	if _, err := s.inject(t.Context(), e); err != nil || !e.faults[0].missed || process.Alive() {
		t.Errorf("missed %t, %v, and the shop runs again: %t", e.faults[0].missed, err, process.Alive())
	}
}

// TestItemsAreMadeTogether: a soak of a day has a hundred thousand.
func TestItemsAreMadeTogether(t *testing.T) {
	const number = 1100
	store := stocktest.Open(t)
	s, of := &soak{store: store}, &items{strategies: []declared.Strategy{{Name: "any"}}}
	before, err := audit.Statements(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.create(t.Context(), of, number, 5); err != nil {
		t.Fatal(err)
	}
	after, err := audit.Statements(t.Context(), store)
	if err != nil || after-before > number/10 {
		t.Errorf("%d statements for %d items, %v", after-before, number, err)
	}
	for n, item := range of.all {
		if n%100 > 0 {
			continue
		}
		var name string
		err := store.Pool().QueryRowContext(t.Context(), "SELECT name FROM items WHERE id = ? AND stock = 5", item.ItemID).Scan(&name)
		if counted, countErr := audit.Count(t.Context(), store, item); err != nil || countErr != nil || name != item.ID || counted.Remaining != 5 {
			t.Errorf("item %d of the run %s is %q: %+v, %v, %v", item.ItemID, item.ID, name, counted, err, countErr)
		}
	}
}

// TestTheStaffGoesWithTheRun: whoever of the staff waits for a clear answer waits no longer when the run has ended.
func TestTheStaffGoesWithTheRun(t *testing.T) {
	asked := make(chan bool)
	first := sync.OnceFunc(func() { close(asked) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		if r.Method != http.MethodGet {
			first()
		}
	}))
	defer server.Close()
	shop := &rig.TestbedShop{Shop: &rig.Shop{URL: server.URL, Staff: server.URL}}
	sold := &items{strategies: []declared.Strategy{{Mixable: true}}, all: []audit.Run{{ItemID: 7}}, inTurn: true}
	s := &staff{soak: &soak{testbed: &rig.Testbed{Shops: []*rig.TestbedShop{shop}}, customers: newCustomers(1, nil, []*items{sold})}, items: sold}
	selling, stop := context.WithCancel(t.Context())
	running, end := context.WithCancel(t.Context())
	over := make(chan error)
	go func() { over <- s.work(selling, running) }()
	<-asked
	stop()
	end()
	select {
	case err := <-over:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the run has ended, and the staff still waits")
	}
}

// TestItemsAreDrawnByTheirLaw: no basket has an item twice, and the first item has the share of its law.
func TestItemsAreDrawnByTheirLaw(t *testing.T) {
	const items, customers = 64, 100_000
	all, harmonic := make([]audit.Run, items), 0.0
	for i := range all {
		all[i].ItemID = uint64(i + 1)
		harmonic += 1 / float64(i+1)
	}
	for name, law := range map[string]struct {
		Popularity
		first float64 // its share of the orders of one line
	}{"uniform": {Uniform, 1.0 / items}, "zipf": {Zipf, 1 / harmonic}} {
		first := 0
		for n := range customers {
			for _, size := range []int{1, 20, items} {
				basket := law.draw(n, size, all)
				if len(basket) != size {
					t.Fatalf("%s: %d items, want %d", name, len(basket), size)
				}
				if size == 1 && basket[0].ItemID == 1 {
					first++
				}
				if n > 100 {
					break // sizes are looked at of the first customers
				}
				ids := make([]uint64, size)
				for i, item := range basket {
					ids[i] = item.ItemID
				}
				slices.Sort(ids)
				if len(slices.Compact(ids)) != size {
					t.Fatalf("%s: customer %d has an item twice", name, n)
				}
			}
		}
		if share := float64(first) / customers; math.Abs(share-law.first) > 4*math.Sqrt(law.first/customers) {
			t.Errorf("%s: the first item has %.4f of the orders, want %.4f", name, share, law.first)
		}
	}
}

// TestAnswersAreKeptForRecoveriesAlone: a measurement has thousands a second, and nobody reads them.
func TestAnswersAreKeptForRecoveriesAlone(t *testing.T) {
	for _, endless := range []bool{true, false} {
		sold := &items{strategies: []declared.Strategy{{}}, all: []audit.Run{{ItemID: 7}}, inTurn: true}
		c := newCustomers(1, []*rig.TestbedShop{{Shop: &rig.Shop{}}}, []*items{sold})
		c.endless = endless
		order, _ := c.next()
		if c.answered(load.Answer{Order: order, Outcome: load.Busy}); len(c.answers) > 0 != endless {
			t.Errorf("customers of a soak of faults: %t, %d answers are kept", endless, len(c.answers))
		}
	}
}

// TestAReplayIsNoSale: a shop finds what was sold to a key before it takes a lock.
func TestAReplayIsNoSale(t *testing.T) {
	sold := &items{strategies: []declared.Strategy{{}}, all: []audit.Run{{ItemID: 7}}, inTurn: true}
	c := newCustomers(1, []*rig.TestbedShop{{Shop: &rig.Shop{}}}, []*items{sold})
	c.endless = true
	began := time.Now()
	for _, replayed := range []string{"true", ""} {
		order, _ := c.next()
		c.answered(load.Answer{Order: order, Outcome: load.Sold, Status: http.StatusCreated, Header: http.Header{shop.ReplayedHeader: {replayed}}})
		if _, missing := c.firstSales(began); len(missing) == 0 != (replayed == "") {
			t.Errorf("after an answer that was replayed %q: missing %q", replayed, missing)
		}
	}
}

// TestTheLimitSparesEachShopAndStrategy, however many there are: some of its orders are within the limit.
func TestTheLimitSparesEachShopAndStrategy(t *testing.T) {
	for shops := 1; shops <= 16; shops++ {
		for strategies := 1; strategies <= 15; strategies++ {
			sold := &items{strategies: make([]declared.Strategy, strategies), all: []audit.Run{{ItemID: 7}}, inTurn: true}
			c := newCustomers(1, slices.Repeat([]*rig.TestbedShop{{Shop: &rig.Shop{}}}, shops), []*items{sold})
			c.endless = true
			pairs := shops * strategies
			bought, refused, spared := map[string]int{}, 0, map[int]bool{}
			for n := range 10 * pairs {
				order, _ := c.next()
				if bought[order.Subject]++; bought[order.Subject] <= limit {
					spared[n%pairs] = true
				} else {
					refused++
				}
			}
			if len(spared) < pairs || refused == 0 {
				t.Errorf("%d shops, %d strategies: %d of %d pairs can sell, %d orders are refused", shops, strategies, len(spared), pairs, refused)
			}
		}
	}
}

// TestChangesThatNobodyAskedForAreNotMissed in a short soak. That many were refused is found.
func TestChangesThatNobodyAskedForAreNotMissed(t *testing.T) {
	s := &staff{soak: &soak{store: stocktest.Open(t)}}
	for _, asked := range []int{0, fewChanges, 1} {
		for range asked {
			s.wishes = append(s.wishes, &wish{action: stock.Renamed, key: fmt.Sprint(len(s.wishes)), refused: "no"})
		}
		var r Report
		if err := s.audit(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
		if found := len(s.wishes) > fewChanges; r.Survived() == found {
			t.Errorf("%d changes were refused: found %q", len(s.wishes), r.Findings)
		}
	}
}
