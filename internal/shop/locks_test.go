package shop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"stocklock/internal/redislock"
	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/testserver"
)

// redisURL is the Redis of the tests.
func redisURL(t testing.TB) string { return "redis://" + testserver.RedisAddr(t) }

// openLocks connects to a Redis. The caller closes the connections.
func openLocks(t testing.TB, url string) (strategy.Locks, io.Closer) {
	t.Helper()
	RedisLog(slog.New(slog.DiscardHandler))
	client, err := OpenRedis(url, RedisPoolSize)
	if err != nil {
		t.Fatal(err)
	}
	return strategy.Locks{Redis: client}, client
}

// holdLock takes the lock of an item as another process would, until the function that it returns.
func (r *running) holdLock(item stock.Item) (release func()) {
	r.t.Helper()
	locker := redislock.New(r.locks.Redis, redislock.Options{})
	_, lease, err := locker.Acquire(r.t.Context(), sale.Key(item.ID))
	if err != nil {
		r.t.Fatal(err)
	}
	return sync.OnceFunc(func() { _, _ = lease.Release(), locker.Close(context.Background()) })
}

// locked reports whether somebody holds the lock of an item.
func (r *running) locked(item stock.Item) bool {
	return r.locks.Redis.Exists(r.t.Context(), redislock.Keys("", sale.Key(item.ID)).Lock).Val() == 1
}

// TestAShopHasAClientOfRedis, also where its strategy uses none.
func TestAShopHasAClientOfRedis(t *testing.T) {
	store, err := stock.Open("shop@tcp(127.0.0.1:1)/shop")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := New(Config{Name: "shop", Strategy: byName(t, "conditional"), Log: slog.New(slog.DiscardHandler), Deps: strategy.Deps{Store: store}}); err == nil || !strings.Contains(err.Error(), "SHOP_REDIS") {
		t.Errorf("a shop without one: %v", err)
	}
}

// TestHalfSentRequestsMakeRoom has half a body, or half of the headers, on each connection that there may
// be. A buyer is served, and one whose request has come keeps its place.
func TestHalfSentRequestsMakeRoom(t *testing.T) {
	const bound = 4
	s := open(t, func(c *Config) { c.MaxConnections, c.Deps.Wait = bound, time.Minute })
	browser.CloseIdleConnections()
	item, held := s.item(bound), s.item(1)
	release := s.holdLock(held)
	defer release()
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if got := s.buy(held); got.status != http.StatusCreated {
			t.Errorf("a sale whose request had come: %d %s", got.status, got.body)
		}
	})
	testserver.Await(t, "a sale to wait", func() bool { return s.inFlight.Load() == 1 })
	for n := range bound - 1 {
		request := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{", ordersPath(item))
		_, _ = io.WriteString(s.dial(), request[:len(request)-n])
	}
	testserver.Await(t, "the slow senders to be there", func() bool {
		return strings.Count(goroutines(), "shop.readBody") == 2 // of the third, the headers have not come
	})
	for range 2 {
		if got := s.buy(item); got.status != http.StatusCreated {
			t.Errorf("a sale beside half requests: %d %s", got.status, got.body)
		}
		browser.CloseIdleConnections()
	}
	release()
	waiting.Wait()
}

// TestPlacesAreKeptForProbes has a request on each connection that there may be. Probes are still answered
// on both listeners, and another sale is not.
func TestPlacesAreKeptForProbes(t *testing.T) {
	const bound = 5
	s := open(t, func(c *Config) { c.MaxConnections, c.Deps.Wait = bound, time.Minute })
	browser.CloseIdleConnections()
	item := s.item(bound)
	release := s.holdLock(item)
	var crowd sync.WaitGroup
	for range bound {
		crowd.Go(func() {
			if got := s.buy(item); got.status != http.StatusCreated {
				t.Errorf("a sale that had a place: %d %s", got.status, got.body)
			}
		})
	}
	testserver.Await(t, "sales on all places", func() bool { return s.inFlight.Load() == bound })
	for _, listener := range []string{s.url, s.internal} {
		for _, probe := range []string{"/livez", "/readyz"} {
			if got, err := send(t.Context(), "GET", listener+probe, "", nil); err != nil || got.status != 200 {
				t.Errorf("%s%s: %d, %v", listener, probe, got.status, err)
			}
		}
	}
	if got := s.buy(item); got.problem() != "busy" || !got.last {
		t.Errorf("a sale beyond the bound: %d %s, closed %t", got.status, got.body, got.last)
	}
	for range 2 * keptForProbes { // silent, where probes belong
		s.dial()
	}
	if got := s.get("/livez"); got.status != http.StatusOK {
		t.Errorf("a probe among silent connections: %d %s", got.status, got.body)
	}
	release()
	crowd.Wait()
}

func TestABusyItemIsAnsweredWithinTheWait(t *testing.T) {
	s := open(t, func(c *Config) { c.Deps.Wait = time.Second })
	item := s.item(1)
	defer s.holdLock(item)()
	if got := s.buy(item); got.problem() != "busy" || got.status != 503 || got.header.Get("Retry-After") != "1" {
		t.Errorf("answered %d %s, Retry-After %q", got.status, got.body, got.header.Get("Retry-After"))
	}
}

// TestAClientThatGoesAway leaves no lock behind, whenever it goes.
func TestAClientThatGoesAway(t *testing.T) {
	s := open(t, nil)
	item := s.item(100)
	for _, point := range sale.Points[1 : len(sale.Points)-1] { // from acquiring to released
		ctx, leave := context.WithCancel(t.Context())
		pauses.Store(t.Name(), func(request context.Context) { leave(); <-request.Done() })
		if _, err := s.try(ctx, http.MethodPost, ordersPath(item), `{"quantity":1}`, http.Header{
			"Content-Type": {"application/json"}, sleepHeader: {string(point) + " " + t.Name()}}); !errors.Is(err, context.Canceled) {
			t.Fatalf("the client did not leave at %s: %v", point, err)
		}
		testserver.Await(t, "the sale of a client that left at "+string(point), func() bool { return s.inFlight.Load() == 0 })
		testserver.Await(t, "the lock of a client that left at "+string(point), func() bool { return !s.locked(item) })
	}
}

func TestARefusalIsNotRemembered(t *testing.T) {
	s := open(t, func(c *Config) { c.Deps.Wait = time.Second })
	item := s.item(1)
	release := s.holdLock(item)
	defer release()
	if got := s.buy(item, "Idempotency-Key", "key-of-some-customer-1"); got.problem() != "busy" {
		t.Fatalf("first answer %d %s, want busy", got.status, got.body)
	}
	if got := s.get("/api/v1/orders?idempotency_key=key-of-some-customer-1"); got.problem() != "not-found" {
		t.Errorf("an order that was not made was found: %d %s", got.status, got.body)
	}
	release()
	if got := s.buy(item, "Idempotency-Key", "key-of-some-customer-1"); got.status != 201 || got.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("the repeat: %d %s", got.status, got.body)
	}
}

func TestClientsThatLeaveAreNoWarning(t *testing.T) {
	s := open(t, nil)
	item := s.item(2)
	var holder sync.WaitGroup
	atRead, finish := gate(t)
	holder.Go(func() { s.buy(item, sleepHeader, atRead) })
	testserver.Await(t, "the sale to hold the lock", func() bool { return s.scrape()["shop_lock_wait_seconds_count"] == 1 })
	ctx, leave := context.WithCancel(t.Context())
	var crowd sync.WaitGroup
	for range 5 {
		crowd.Go(func() {
			_, err := s.try(ctx, http.MethodPost, ordersPath(item), `{"quantity": 1}`, http.Header{"Content-Type": {"application/json"}})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("a client that left: %v", err)
			}
		})
	}
	testserver.Await(t, "the crowd", func() bool { return s.inFlight.Load() == 6 })
	leave()
	crowd.Wait()
	finish()
	holder.Wait()
	const gone = `shop_request_duration_seconds_count{method="POST",outcome="client-gone",route="/api/v1/items/:item/orders",status="503"}`
	testserver.Await(t, "all to have left", func() bool { return s.scrape()[gone] == 5 })
	if log := s.log.String(); strings.Contains(log, `"level":"WARN"`) || strings.Contains(log, `"level":"ERROR"`) {
		t.Errorf("a warning: %s", log)
	}
	if left := s.left(item); left != 1 {
		t.Errorf("%d units left, want 1", left)
	}
}
