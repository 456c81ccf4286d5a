package labmode_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
	"stocklock/internal/shop"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/declared/declaredtest"
	"stocklock/internal/strategy/ladder"
	"stocklock/internal/testserver"
)

// lab is a shop in the lab, on real servers.
type lab struct {
	t     *testing.T
	url   string
	ops   string // the URL of its metrics
	store *stock.Store
	redis redis.UniversalClient
}

// usual is the strategy of a request that asks for none.
const usual = "owner-checked"

func open(t *testing.T, cfg labmode.Config, options strategy.Options) *lab {
	t.Helper()
	store := stocktest.Open(t)
	client, err := shop.OpenRedis("redis://"+testserver.RedisAddr(t), shop.RedisPoolSize)
	if err != nil {
		t.Fatal(err)
	}
	by, err := ladder.ByName(usual)
	if err != nil {
		t.Fatal(err)
	}
	s, err := shop.New(shop.Config{
		Name: "test-shop", Strategy: by.Strategy, Log: slog.New(slog.DiscardHandler),
		Deps:        strategy.Deps{Store: store, Locks: strategy.Locks{Redis: client, Quorum: []redis.UniversalClient{client}}, Options: options},
		MaxInFlight: 100, MaxConnections: 400, StartupTimeout: time.Minute, DrainTimeout: 20 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Strategies = ladder.All()
	labmode.Attach(s, cfg)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	internal, err2 := net.Listen("tcp", "127.0.0.1:0")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- s.Serve(ctx, listener, nil, internal) }()
	t.Cleanup(func() {
		end()
		if err := <-served; err != nil {
			t.Error(err)
		}
		_ = client.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	l := &lab{t, "http://" + listener.Addr().String(), "http://" + internal.Addr().String(), store, client}
	testserver.Await(t, "the shop to be ready", func() bool {
		answer, err := http.Get(l.url + "/readyz")
		return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	})
	return l
}

var usualOptions = strategy.Options{Lease: 10 * time.Second, Wait: 5 * time.Second, Retry: 5 * time.Millisecond}

func (l *lab) item(units int64) stock.Item {
	l.t.Helper()
	return stocktest.Item(l.t, l.store, units)
}

func (l *lab) left(item stock.Item) int64 {
	l.t.Helper()
	return stocktest.Left(l.t, l.store, item.ID)
}

// answer is what a client saw.
type answer struct {
	status int
	header http.Header
	body   string
}

func (l *lab) buy(item stock.Item, asked labmode.Experiment, headers ...string) answer {
	l.t.Helper()
	header := http.Header{}
	asked.Set(header)
	for i := 0; i < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
	}
	a, err := l.try(l.t.Context(), item, header)
	if err != nil {
		l.t.Error(err)
	}
	return a
}

func (l *lab) try(ctx context.Context, item stock.Item, header http.Header) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		fmt.Sprintf("%s/api/v1/items/%d/orders", l.url, item.ID), strings.NewReader(`{"quantity":1}`))
	if err != nil {
		return answer{}, err
	}
	request.Header = header
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(body)}, err
}

func sleep(p sale.Point, d time.Duration) labmode.Fault {
	return labmode.Fault{Point: p, Action: labmode.Sleep, For: d}
}

// plain lists the strategies whose stock is in the item's row alone, and whose sales write their own
// orders before they answer. The others are tested by the lab, which prepares their items. It leaves out what
// the Redis cannot run.
func (l *lab) plain() (names []string) {
	l.t.Helper()
	for _, s := range ladder.All() {
		if len(s.Declared.State.Setup) > 0 || s.Declared.AnswersFirst || s.Declared.Background {
			continue
		}
		if needs := s.Declared.NeedsCommand; len(needs) > 0 && declaredtest.KnownCommand(l.t, l.redis, needs) == "" {
			l.t.Logf("%s is not tested: the Redis knows neither of %q", s.Name, needs)
			continue
		}
		names = append(names, s.Name)
	}
	return names
}

func TestARequestChoosesStrategyRunAndFault(t *testing.T) {
	l := open(t, labmode.Config{}, usualOptions)
	for _, name := range append(l.plain(), "") {
		item := l.item(1)
		got := l.buy(item, labmode.Experiment{Strategy: name, Run: "run-1"})
		if got.status != 201 {
			t.Fatalf("%s: %d %s", name, got.status, got.body)
		}
		orders, err := l.store.ItemOrders(t.Context(), item.ID)
		if name == "" {
			name = usual
		}
		if err != nil || len(orders) != 1 || orders[0].Strategy != name || orders[0].Run != "run-1" {
			t.Errorf("asked for %s in run-1, got the orders %+v, %v", name, orders, err)
		}
	}
	const pause = 300 * time.Millisecond
	began := time.Now()
	if got := l.buy(l.item(1), labmode.Experiment{Fault: sleep(sale.Written, pause)}); got.status != 201 || time.Since(began) < pause {
		t.Errorf("the sale that sleeps answered %d after %s", got.status, time.Since(began))
	}
}

// TestNested wants a sale that takes its own lock again to succeed exactly where the strategy is
// reentrant.
func TestNested(t *testing.T) {
	options := usualOptions
	options.Wait = 100 * time.Millisecond // shorter than the lease: no lock frees itself meanwhile
	l := open(t, labmode.Config{}, options)
	for _, name := range l.plain() {
		s, err := ladder.ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		want := 503
		if s.Declared.Meets(declared.Reentrant) {
			want = 201
		}
		if got := l.buy(l.item(1), labmode.Experiment{Nested: true, Strategy: s.Name}); got.status != want {
			t.Errorf("%s: %d %s, want %d", s.Name, got.status, got.body, want)
		}
	}
}

func TestWrongHeadersAreRefused(t *testing.T) {
	l := open(t, labmode.Config{}, usualOptions)
	item := l.item(1)
	for _, header := range []http.Header{
		{labmode.StrategyHeader: {"no such"}}, {labmode.RunHeader: {"a b"}}, {labmode.FaultHeader: {"read"}},
		{labmode.FaultHeader: {"read sleep 1h"}}, {labmode.NestedHeader: {"yes"}},
		{labmode.LeaseHeader: {"1ms"}}, {labmode.WaitHeader: {"1h"}},
	} {
		if got, err := l.try(t.Context(), item, header); err != nil || got.status != 400 || !strings.Contains(got.body, "/problems/malformed") {
			t.Errorf("%s: %d %s, %v, want malformed", header, got.status, got.body, err)
		}
	}
	if left := l.left(item); left != 1 {
		t.Errorf("%d units left, want 1", left)
	}
}

// TestASaleWaitsAsLongAsItAsks: a holder is there for longer than a sale usually waits.
func TestASaleWaitsAsLongAsItAsks(t *testing.T) {
	options := usualOptions
	options.Wait = 20 * time.Millisecond
	l := open(t, labmode.Config{}, options)
	item := l.item(2)
	held := labmode.Fault{Point: sale.Acquired, Action: labmode.Hold, For: time.Minute}
	answers := make(chan answer, 2)
	go func() { answers <- l.buy(item, labmode.Experiment{Fault: held}, "X-Request-Id", "holder") }()
	testserver.Await(t, "the lock to be held", func() bool { return l.redis.Exists(t.Context(), sale.Key(item.ID)).Val() == 1 })
	go func() { answers <- l.buy(item, labmode.Experiment{Wait: time.Minute}) }()
	for range 3 {
		if got := l.buy(item, labmode.Experiment{}); got.status != 503 {
			t.Errorf("a sale that waits as usual: %d %s", got.status, got.body)
		}
	}
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, l.url+labmode.HoldsPath+"holder", nil)
	testserver.Await(t, "the hold to end", func() bool {
		answer, err := http.DefaultClient.Do(request)
		return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusNoContent
	})
	for range 2 {
		if got := <-answers; got.status != 201 {
			t.Errorf("the holder and a sale that waits for a minute: %d %s", got.status, got.body)
		}
	}
}

// TestASaleIsHeldEachTime has another sale come in between twice, so the first one is about to write three times.
func TestASaleIsHeldEachTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	recorder, err := labmode.OpenRecorder(path, "test-shop")
	if err != nil {
		t.Fatal(err)
	}
	defer recorder.Close()
	l := open(t, labmode.Config{Recorder: recorder}, usualOptions)
	item := l.item(5)
	each := labmode.Fault{Point: sale.Write, Action: labmode.HoldEach, For: time.Minute}
	sold := make(chan answer)
	go func() {
		sold <- l.buy(item, labmode.Experiment{Strategy: "optimistic", Fault: each}, "X-Request-Id", "held")
	}()
	const times = 3
	for n := range times {
		testserver.Await(t, "the sale to be about to write", func() bool {
			content, err := os.ReadFile(path)
			return err == nil && bytes.Count(content, []byte(each.String())) == n+1
		})
		if n < times-1 {
			if got := l.buy(item, labmode.Experiment{Strategy: "conditional"}); got.status != 201 {
				t.Fatalf("the sale in between: %d %s", got.status, got.body)
			}
		}
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, l.url+labmode.HoldsPath+"held", nil)
		if answer, err := http.DefaultClient.Do(request); err != nil || answer.Body.Close() != nil || answer.StatusCode != http.StatusNoContent {
			t.Fatalf("hold %d is not ended: %v, %v", n+1, answer, err)
		}
	}
	if got := <-sold; got.status != 201 || l.left(item) != 5-times {
		t.Errorf("%d %s, with %d units left, want %d", got.status, got.body, l.left(item), 5-times)
	}
}

func TestTheLabRecordsEverySale(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	recorder, err := labmode.OpenRecorder(path, "test-shop")
	if err != nil {
		t.Fatal(err)
	}
	defer recorder.Close()
	l := open(t, labmode.Config{Work: 30 * time.Millisecond, Recorder: recorder}, usualOptions)
	item := l.item(5)
	l.buy(item, labmode.Experiment{Run: "run-1", Fault: sleep(sale.Read, time.Millisecond)}, "X-Request-Id", "r-1")

	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	events, err := labmode.ReadEvents(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	at := map[sale.Point]labmode.Event{}
	var points []sale.Point
	for _, e := range events {
		points = append(points, e.Point)
		at[e.Point] = e
		if e.Shop != "test-shop" || e.Request != "r-1" || e.Item != item.ID || e.Run != "run-1" || e.Strategy != usual {
			t.Errorf("event %+v is of another sale", e)
		}
	}
	// It was not refused. Only a request with a fault at answered comes to that point.
	if want := sale.Points[1:slices.Index(sale.Points, sale.Answered)]; !slices.Equal(points, want) {
		t.Errorf("passed %v, want %v", points, want)
	}
	if worked := at[sale.Write].Time.Sub(at[sale.Read].Time); worked < 30*time.Millisecond {
		t.Errorf("the work after the read took %s, want 30ms", worked)
	}
	if f := at[sale.Read].Facts["fault"]; f != "read sleep 1ms" {
		t.Errorf("the fault recorded is %v", f)
	}
}

// TestRepeatsSellOnce repeats a request under every strategy, at the same moment and afterwards.
func TestRepeatsSellOnce(t *testing.T) {
	l := open(t, labmode.Config{Work: 20 * time.Millisecond}, usualOptions)
	for _, name := range l.plain() {
		item := l.item(1) // a repeat may find it sold out
		var mu sync.Mutex
		var bodies []string
		var sending sync.WaitGroup
		for range 8 {
			sending.Go(func() {
				got := l.buy(item, labmode.Experiment{Strategy: name}, "Idempotency-Key", "key-of-some-customer-"+name)
				mu.Lock()
				defer mu.Unlock()
				bodies = append(bodies, got.body)
			})
		}
		sending.Wait()
		slices.Sort(bodies)
		if different := slices.Compact(bodies); len(different) != 1 || l.left(item) != 0 {
			t.Errorf("%s: %d units left, the repeats got %v", name, l.left(item), different)
		}
	}
}

// TestAClientThatGoesAway leaves no lock behind, whenever it goes: here while the lock is taken and
// in the middle of the work.
func TestAClientThatGoesAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	recorder, err := labmode.OpenRecorder(path, "test-shop")
	if err != nil {
		t.Fatal(err)
	}
	defer recorder.Close()
	l := open(t, labmode.Config{Recorder: recorder}, usualOptions)
	item, held := l.item(100), 0
	for _, by := range []string{"owner-checked", "owner-watch", "setnx-expire", "reentrant-timer"} {
		for _, point := range sale.Points[1 : len(sale.Points)-1] { // from acquiring to released
			id := fmt.Sprintf("%s.%s", by, point)
			hold := labmode.Fault{Point: point, Action: labmode.Hold, For: time.Minute}
			header := http.Header{"X-Request-Id": {id}}
			labmode.Experiment{Strategy: by, Fault: hold}.Set(header)
			held++
			ctx, leave := context.WithCancel(t.Context())
			gone := make(chan error)
			go func() {
				_, err := l.try(ctx, item, header)
				gone <- err
			}()
			testserver.Await(t, id, func() bool {
				content, err := os.ReadFile(path)
				return err == nil && bytes.Count(content, []byte("hold 1m0s")) == held
			})
			leave()
			if err := <-gone; !errors.Is(err, context.Canceled) {
				t.Fatalf("%s: the client did not leave there: %v", id, err)
			}
			request, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, l.url+labmode.HoldsPath+id, nil)
			if answer, err := http.DefaultClient.Do(request); err != nil || answer.Body.Close() != nil || answer.StatusCode != http.StatusNoContent {
				t.Fatalf("%s: the hold is not ended: %v, %v", id, answer, err)
			}
			testserver.Await(t, "the end of a sale whose client left: "+id, func() bool {
				answer, err := http.Get(l.ops + "/metrics")
				if err != nil {
					return false
				}
				defer answer.Body.Close()
				body, err := io.ReadAll(answer.Body)
				return err == nil && bytes.Contains(body, []byte("\nshop_requests_in_flight 0\n"))
			})
			if l.redis.Exists(t.Context(), sale.Key(item.ID)).Val() != 0 {
				t.Errorf("the client of %s has left its lock behind", id)
			}
		}
	}
}

// FuzzExperiment: whatever the headers are, what is taken from them fits the database and leads
// back to itself.
func FuzzExperiment(f *testing.F) {
	f.Add("run", "none", "read sleep 1s", "1")
	f.Add(strings.Repeat("r", 65), "no", "read kill", "")
	f.Add("", "", "written stop 61s", "2")
	f.Fuzz(func(t *testing.T, run, by, spec, nested string) {
		header := http.Header{}
		for name, value := range map[string]string{labmode.StrategyHeader: by, labmode.RunHeader: run, labmode.FaultHeader: spec, labmode.NestedHeader: nested} {
			header.Set(name, value)
		}
		asked, err := labmode.ParseExperiment(header)
		if err != nil {
			return
		}
		if len(asked.Run) > 64 || asked.Fault.For > labmode.MaxDuration {
			t.Errorf("accepted the experiment %+v", asked)
		}
		again := http.Header{}
		asked.Set(again)
		if got, err := labmode.ParseExperiment(again); err != nil || !reflect.DeepEqual(got, asked) {
			is, _ := json.Marshal(again)
			t.Errorf("%+v became %+v through %s: %v", asked, got, is, err)
		}
	})
}

// TestAPageViewGoesByTheStrategy holds a page view where it has read the row, and wants what it stores to be what it
// had read. A strategy without a view shows the row.
func TestAPageViewGoesByTheStrategy(t *testing.T) {
	l := open(t, labmode.Config{}, usualOptions)
	item := l.item(5)
	view := func(of string, fault labmode.Fault) (shown stock.Item, status int) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.url+shop.ItemPath(item.ID), nil)
		if err != nil {
			t.Error(err)
			return
		}
		labmode.Experiment{Strategy: of, Fault: fault}.Set(request.Header)
		request.Header.Set(shop.RequestIDHeader, "the-view")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Error(err)
			return
		}
		defer answer.Body.Close()
		if err := json.NewDecoder(answer.Body).Decode(&shown); err != nil {
			t.Error(err)
		}
		return shown, answer.StatusCode
	}
	held := make(chan stock.Item)
	go func() {
		shown, _ := view("cached-read", labmode.Fault{Point: sale.Viewed, Action: labmode.Hold, For: time.Minute})
		held <- shown
	}()
	released := func() bool {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, l.url+labmode.HoldsPath+"the-view", nil)
		answer, err := http.DefaultClient.Do(request)
		return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusNoContent
	}
	copied := func() string { return l.redis.Get(t.Context(), sale.Key(item.ID)+":page").Val() }
	if got := copied(); got != "" {
		t.Errorf("there is a copy before anybody stores one: %s", got)
	}
	testserver.Await(t, "the page view to be held", released)
	if shown := <-held; shown.Stock != 5 || copied() != "5" {
		t.Errorf("it shows %d, and the copy is %q, want 5 and 5", shown.Stock, copied())
	}
	l.redis.Set(t.Context(), sale.Key(item.ID)+":page", 3, 0)
	for of, want := range map[string]int64{"cached-read": 3, "cached-page": 3, "fenced": 5, "": 5} {
		if shown, status := view(of, labmode.Fault{}); status != http.StatusOK || shown.Stock != want {
			t.Errorf("%q shows %d with %d, want %d", of, shown.Stock, status, want)
		}
	}
	if _, status := view("cached-raed", labmode.Fault{}); status != http.StatusBadRequest {
		t.Errorf("a strategy that there is not: %d", status)
	}
}
