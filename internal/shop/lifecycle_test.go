package shop

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stocklock/internal/stock/stocktest"
	"stocklock/internal/testserver"
)

func TestAShopWaitsForWhatIsMissing(t *testing.T) {
	redis := ownRedis(t)
	redis.Kill()
	s := openUnready(t, stocktest.Database(t), redis.URL(), nil)
	testserver.Await(t, "MySQL to be there", func() bool { return len(s.health.missing()) == 1 })
	if got := s.get("/livez"); got.status != 200 {
		t.Errorf("/livez of a starting shop: %d", got.status)
	}
	if got := s.get("/readyz"); got.problem() != "unavailable" || !strings.Contains(got.body, `"missing: redis"`) {
		t.Errorf("/readyz without Redis: %d %s", got.status, got.body)
	}
	if got := s.get("/api/v1/items"); got.problem() != "unavailable" || got.header.Get("Retry-After") == "" {
		t.Errorf("the API of a starting shop: %d %s", got.status, got.body)
	}
	testserver.Await(t, "a line that says what is missing", func() bool {
		return strings.Contains(s.log.String(), `"msg":"waiting for redis"`) && strings.Contains(s.log.String(), "connection refused")
	})

	restart(t, redis)
	testserver.Await(t, "the shop to be ready", func() bool { return s.get("/readyz").status == 200 })
	if got := s.buy(s.item(1)); got.status != 201 {
		t.Errorf("a sale after the late start: %d %s", got.status, got.body)
	}
}

func TestAShopSurvivesTheLossOfRedis(t *testing.T) {
	redis := ownRedis(t)
	s := openUnready(t, stocktest.Database(t), redis.URL(), nil)
	testserver.Await(t, "the shop to be ready", func() bool { return s.get("/readyz").status == 200 })
	redis.Kill()
	testserver.Await(t, "the shop to notice that Redis is gone", func() bool { return s.get("/readyz").status == 503 })
	if got := s.buy(s.item(1)); got.problem() != "unavailable" {
		t.Errorf("a sale without Redis: %d %s", got.status, got.body)
	}
	if got := s.get("/api/v1/items"); got.status != 200 {
		t.Errorf("looking needs no Redis, but answered %d %s", got.status, got.body)
	}
	restart(t, redis)
	testserver.Await(t, "the shop to be ready again", func() bool { return s.get("/readyz").status == 200 })
	if got := s.buy(s.item(1)); got.status != 201 {
		t.Errorf("a sale with Redis again: %d %s", got.status, got.body)
	}
}

// TestAShopThatNeedsNoRedisSellsWithoutIt, from its start on.
func TestAShopThatNeedsNoRedisSellsWithoutIt(t *testing.T) {
	for _, name := range []string{"batched", "conditional", "for-update", "optimistic"} {
		by := byName(t, name)
		s := openUnready(t, stocktest.Database(t), "redis://"+nowhere, func(c *Config) { c.Strategy = by })
		testserver.Await(t, "a shop with "+by.Name+" to be ready", func() bool { return s.get("/readyz").status == 200 })
		if got := s.buy(s.item(1)); got.status != 201 {
			t.Errorf("%s: a sale without Redis: %d %s", by.Name, got.status, got.body)
		}
	}
}

func TestARedisThatShutsTheShopOutIsNoDefectOfTheShop(t *testing.T) {
	for name, shutOut := range map[string][]any{
		"a password":   {"config", "set", "requirepass", "geheim"},
		"fewer rights": {"acl", "setuser", "default", "resetkeys"},
	} {
		redis := ownRedis(t)
		// No lock can be released, so the shop's end waits for the end of the lease.
		s := openUnready(t, stocktest.Database(t), redis.URL(), func(c *Config) { c.Deps.Lease = time.Second })
		testserver.Await(t, "the shop to be ready", func() bool { return s.get("/readyz").status == 200 })
		item := s.item(1)
		if err := s.locks.Redis.Do(t.Context(), shutOut...).Err(); err != nil {
			t.Fatal(err)
		}
		_ = s.locks.Redis.Do(t.Context(), "client", "kill", "type", "normal", "skipme", "no").Err() // those who are inside would stay
		testserver.Await(t, "the shop to notice", func() bool { return s.get("/readyz").status == 503 })
		if got := s.buy(item); got.problem() != "unavailable" || got.header.Get("Retry-After") == "" {
			t.Errorf("%s: a sale answered %d %s, want unavailable", name, got.status, got.body)
		}
	}
}

// TestAShopSurvivesTheLossOfMySQL kills MySQL under load: no acknowledged sale is
// lost, and sales go on soon after it is back.
func TestAShopSurvivesTheLossOfMySQL(t *testing.T) {
	mysql, err := testserver.Start(t).MySQL(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := openUnready(t, mysql.DSN(), redisURL(t), nil)
	testserver.Await(t, "the shop to be ready", func() bool { return s.get("/readyz").status == 200 })
	item := s.item(1 << 40)

	var sold atomic.Int64
	var problems sync.Map
	ctx, stop := context.WithCancel(t.Context())
	var crowd sync.WaitGroup
	for range 8 {
		crowd.Go(func() {
			for ctx.Err() == nil {
				switch got := s.buy(item); {
				case got.status == 201:
					sold.Add(1)
				default:
					problems.Store(got.problem(), got.body)
				}
			}
		})
	}
	more := func(n int64) func() bool {
		before := sold.Load()
		return func() bool { return sold.Load() >= before+n }
	}
	testserver.Await(t, "some sales", more(20))
	if err := mysql.Kill(); err != nil {
		t.Fatal(err)
	}
	testserver.Await(t, "the shop to notice", func() bool { return s.get("/readyz").status == 503 })
	if got := s.buy(item); got.problem() != "unavailable" || !strings.Contains(got.body, "this request did nothing") {
		t.Errorf("a sale without MySQL: %d %s, want it to say that it did nothing", got.status, got.body)
	}
	if got := s.get("/api/v1/items"); got.problem() != "unavailable" || strings.Contains(got.body, "outcome") {
		t.Errorf("a look without MySQL: %d %s, want no word of an outcome", got.status, got.body)
	}
	if err := mysql.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	testserver.Await(t, "sales to go on", more(20))
	stop()
	crowd.Wait()
	// An answer that was lost may stand for an order; a 201 always does.
	if gone := 1<<40 - s.left(item); gone < sold.Load() || gone > sold.Load()+8 {
		t.Errorf("%d units are gone for %d answers with 201", gone, sold.Load())
	}
	problems.Range(func(problem, body any) bool {
		if problem != "unavailable" {
			t.Errorf("a request was answered with the problem %q: %s", problem, body)
		}
		return true
	})
}

// TestNobodyWaitsLongForMySQL stops MySQL for as long as it takes: every request is answered with
// 503, those that wait for a connection at their deadline.
func TestNobodyWaitsLongForMySQL(t *testing.T) {
	mysql, err := testserver.Start(t).MySQL(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := openUnready(t, mysql.DSN()+"?readTimeout=1s", redisURL(t), func(c *Config) {
		c.Deps.Wait, c.RequestMargin = 100*time.Millisecond, 500*time.Millisecond
	})
	testserver.Await(t, "the shop to be ready", func() bool { return s.get("/readyz").status == 200 })
	item := s.item(1000)
	if err := mysql.Pause(); err != nil {
		t.Fatal(err)
	}
	defer mysql.Resume()
	testserver.Await(t, "MySQL to be paused", func() bool { return s.get("/api/v1/items").status == http.StatusServiceUnavailable })
	var crowd sync.WaitGroup
	var overdue atomic.Int64
	for n := range 200 {
		crowd.Go(func() {
			var got answer
			if n%4 == 0 {
				got = s.buy(item)
			} else {
				got = s.get("/api/v1/items")
			}
			if got.problem() != "unavailable" && got.problem() != "busy" || got.header.Get("Retry-After") == "" {
				t.Errorf("answered %d %s", got.status, got.body)
			}
			if strings.Contains(got.body, errOverdue.detail) {
				overdue.Add(1)
			}
		})
	}
	crowd.Wait()
	if overdue.Load() == 0 {
		t.Error("no answer says that the request took too long")
	}
	testserver.Await(t, "the shop to notice", func() bool { return s.get("/readyz").status == 503 })
}

// TestServeEndsBesideASilentRedis: a sale has its lock, whose lease is longer than the shop may take.
func TestServeEndsBesideASilentRedis(t *testing.T) {
	redis := ownRedis(t)
	s := openUnready(t, stocktest.Database(t), redis.URL(), func(c *Config) {
		c.Deps.Lease, c.DrainTimeout = time.Minute, time.Second
	})
	testserver.Await(t, "the shop to be ready", func() bool { return s.get("/readyz").status == 200 })
	item := s.item(1)
	var selling sync.WaitGroup
	atRead, goOn := gate(t)
	selling.Go(func() {
		_, _ = s.try(t.Context(), http.MethodPost, ordersPath(item), `{"quantity":1}`, http.Header{"Content-Type": {"application/json"}, sleepHeader: {atRead}})
	})
	testserver.Await(t, "the sale to have its lock", func() bool { return s.locked(item) })
	if err := redis.Pause(); err != nil {
		t.Fatal(err)
	}
	defer redis.Resume()
	goOn()
	began := time.Now()
	s.end()
	<-s.ended
	if took, bound := time.Since(began), s.Deps.Lease/4; took > bound {
		t.Errorf("Serve returned after %s, want before a lease of %s ends", took, s.Deps.Lease)
	}
	selling.Wait()
}

// TestNobodyWaitsLongForRedis stops Redis: every sale is answered with 503, and that at its deadline.
func TestNobodyWaitsLongForRedis(t *testing.T) {
	redis := ownRedis(t)
	s := openUnready(t, stocktest.Database(t), redis.URL(), func(c *Config) {
		c.Deps.Wait, c.RequestMargin, c.PingTimeout = 100*time.Millisecond, 500*time.Millisecond, 100*time.Millisecond
	})
	testserver.Await(t, "the shop to be ready", func() bool { return s.get("/readyz").status == 200 })
	item := s.item(1000)
	if err := redis.Pause(); err != nil {
		t.Fatal(err)
	}
	defer redis.Resume()
	var crowd sync.WaitGroup
	for range 100 {
		crowd.Go(func() {
			got := s.buy(item)
			if got.problem() != "unavailable" && got.problem() != "busy" || got.header.Get("Retry-After") == "" {
				t.Errorf("answered %d %s", got.status, got.body)
			}
		})
	}
	crowd.Wait()
	if left := s.left(item); left != 1000 {
		t.Errorf("%d units are left of 1000", left)
	}
	testserver.Await(t, "the shop to notice", func() bool { return s.get("/readyz").status == 503 })
	if err := redis.Resume(); err != nil {
		t.Fatal(err)
	}
	testserver.Await(t, "the shop to be ready again", func() bool { return s.get("/readyz").status == 200 })
	if got := s.buy(item); got.status != 201 {
		t.Errorf("a sale with Redis again: %d %s", got.status, got.body)
	}
}

// ownRedis is one that the test may kill.
func ownRedis(t *testing.T) *testserver.Redis {
	t.Helper()
	server, err := testserver.Start(t).Redis(t.Context(), testserver.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return server
}

func restart(t *testing.T, server *testserver.Redis) {
	t.Helper()
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAShopGivesUpWaiting(t *testing.T) {
	s := openUnready(t, "shop:geheim@tcp("+nowhere+")/stocklock", "redis://:geheim@"+nowhere, func(c *Config) {
		c.StartupTimeout = time.Second
	})
	err := <-s.ended
	if err == nil || !strings.Contains(err.Error(), "mysql at 127.0.0.1") || !strings.Contains(err.Error(), "redis at 127.0.0.1") {
		t.Errorf("gave up with %v, want both servers named", err)
	}
	if strings.Contains(err.Error()+s.log.String(), "geheim") {
		t.Error("a password was printed")
	}
	if _, err := s.try(t.Context(), http.MethodGet, "/livez", "", nil); err == nil {
		t.Error("it still listens")
	}
}

func TestAShopThatIsEndedWhileItWaitsEndsAtOnce(t *testing.T) {
	s := openUnready(t, stocktest.Database(t), "redis://"+nowhere, nil)
	s.end()
	if err := <-s.ended; err != nil {
		t.Errorf("ended with %v, want nil", err)
	}
}

func TestDrainingFinishesSalesUnderWay(t *testing.T) {
	s := open(t, func(c *Config) { c.DrainDelay = 2 * time.Second })
	item, other := s.item(10), s.item(1)
	slow := make(chan answer, 1)
	atRead, finish := gate(t)
	go func() { slow <- s.buy(item, sleepHeader, atRead) }()
	testserver.Await(t, "the slow sale to hold the lock", func() bool { return s.locked(item) })

	s.end()
	testserver.Await(t, "readiness to end", func() bool { return s.get("/readyz").problem() == "shutting-down" })
	if got := s.buy(other); got.status != 201 || !got.last {
		t.Errorf("a sale within the delay: %d %s, last %t, want 201 and the connection closed", got.status, got.body, got.last)
	}
	testserver.Await(t, "the listener to be closed", func() bool {
		conn, err := net.DialTimeout("tcp", strings.TrimPrefix(s.url, "http://"), time.Second)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	finish()
	if err := <-s.ended; err != nil {
		t.Errorf("Serve returned %v", err)
	}
	if got := <-slow; got.status != 201 || s.left(item) != 9 {
		t.Errorf("the slow sale: %d %s, %d units left, want 201 and 9", got.status, got.body, s.left(item))
	}
}

// TestAListenerThatFailsEndsNoSale on the other one.
func TestAListenerThatFailsEndsNoSale(t *testing.T) {
	s := open(t, staffed)
	item := s.item(1)
	slow := make(chan answer, 1)
	atRead, finish := gate(t)
	go func() { slow <- s.buy(item, "X-Subject", "ann", sleepHeader, atRead) }()
	testserver.Await(t, "the sale to hold the lock", func() bool { return s.locked(item) })
	if err := s.ofStaff.Close(); err != nil {
		t.Fatal(err)
	}
	testserver.Await(t, "the drain, or the end of the sale", func() bool { return len(slow) > 0 || strings.Contains(s.log.String(), `"msg":"draining"`) })
	finish()
	if got := <-slow; got.status != 201 {
		t.Errorf("the sale: %d %s", got.status, got.body)
	}
	if err := <-s.ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve returned %v, want the error of the listener", err)
	}
}

func TestSalesThatDoNotFinishInTimeAreCancelled(t *testing.T) {
	s := open(t, func(c *Config) { c.DrainTimeout, c.Deps.Wait = 100*time.Millisecond, time.Minute })
	item := s.item(1)
	defer s.holdLock(item)()
	waiting := make(chan answer, 1)
	go func() { waiting <- s.buy(item) }()
	testserver.Await(t, "the sale to wait", func() bool { return s.inFlight.Load() == 1 })
	s.end()
	if err := <-s.ended; err == nil || !strings.Contains(err.Error(), "cancelled after 100ms") {
		t.Errorf("Serve returned %v, want it to say that sales were cancelled", err)
	}
	if got := <-waiting; got.problem() != "shutting-down" {
		t.Errorf("the cancelled sale was answered %d %s", got.status, got.body)
	}
}
