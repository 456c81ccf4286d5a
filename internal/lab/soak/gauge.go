package soak

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/seen"
	"stocklock/internal/redislock"
	"stocklock/internal/sale"
	"stocklock/internal/shop"
	"stocklock/internal/testserver"
)

// Gauge is what a shop has in use at rest.
type Gauge struct {
	Shop       string
	Goroutines int   // besides the MySQL driver's, of which there is one for each connection
	MySQL      int   // open connections, kept for later
	Busy       int   // connections to MySQL and Redis in use, and requests under way
	Heap       int64 // bytes in use after a collection
	Resident   int64 // bytes of the process
}

// probeConnections is how many connections to MySQL a shop has besides its pool: the one on which
// its health asks.
const probeConnections = 1

// Gauges is what the whole system has in use at rest.
type Gauges struct {
	Shops          []Gauge
	MySQL          int // connections that MySQL counts beyond those of the shops and the soak
	Locks          int // held in Redis
	Waiters        int // processes that wait for a lock of package redislock, and are alive
	KeysForEver    int // keys in Redis without expiry
	KeysThatExpire int
}

// How much more at the end than at the beginning is no leak yet.
const (
	moreGoroutines = 5
	moreHeap       = 16 << 20
)

// calming bounds how long the system may take to come to rest: longer than a lease, and longer than
// the timeout of a connection to a silent server.
const calming = 40 * time.Second

// gauge waits until the system is at rest, and measures. With an earlier measurement, at rest means
// not above that one. When this is not reached in time, it returns what it found.
func (s *soak) gauge(ctx context.Context, before *Gauges) (*Gauges, error) {
	for giveUp := time.Now().Add(calming); ; _ = seen.Pause(ctx, 250*time.Millisecond) {
		now, err := s.gaugeNow(ctx)
		if err != nil {
			return nil, err
		}
		if before == nil {
			before = now
		}
		if len(leaks(before, now)) == 0 || time.Now().After(giveUp) {
			return now, nil
		}
	}
}

func (s *soak) gaugeNow(ctx context.Context) (*Gauges, error) {
	if err := s.revive(ctx); err != nil {
		return nil, err
	}
	g := &Gauges{}
	known := s.store.Pool().Stats().OpenConnections
	for _, shop := range s.testbed.Shops {
		one, err := gaugeShop(ctx, shop.Shop)
		if err != nil {
			return nil, fmt.Errorf("measure %s: %w", shop.Process.Name, err)
		}
		g.Shops = append(g.Shops, one)
		known += one.MySQL + probeConnections
	}
	if err := s.store.Pool().QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Threads_connected'").Scan(new(string), &g.MySQL); err != nil {
		return nil, err
	}
	g.MySQL = max(g.MySQL-known, 0) // negative where MySQL closed some that were not used since
	locks := map[string]bool{}
	for _, items := range s.items {
		for _, item := range items.sold() {
			locks[sale.Key(item.ItemID)] = true
		}
	}
	return g, gaugeRedis(ctx, s.testbed.Redis(), locks, g)
}

// gaugeRedis counts keys, and the locks of the recipes and of package redislock by these names.
func gaugeRedis(ctx context.Context, server *testserver.Redis, locks map[string]bool, g *Gauges) error {
	client, err := shop.OpenRedis(server.URL(), 2)
	if err != nil {
		return err
	}
	defer client.Close()
	locker := redislock.New(client, redislock.Options{})
	defer locker.Close(ctx)
	for name := range locks {
		lock, err := locker.Inspect(ctx, name)
		if err != nil {
			return err
		}
		if lock.Holder.ID != "" {
			g.Locks++
		}
		for _, waiter := range lock.Waiters {
			if waiter.Alive {
				g.Waiters++
			}
		}
	}
	for keys := client.Scan(ctx, 0, "*", 1000).Iterator(); ; {
		if !keys.Next(ctx) {
			return keys.Err()
		}
		ttl, err := client.PTTL(ctx, keys.Val()).Result()
		switch {
		case err != nil:
			return err
		case ttl == -1:
			g.KeysForEver++
		case ttl >= 0:
			g.KeysThatExpire++
		}
		if locks[keys.Val()] {
			g.Locks++
		}
	}
}

func gaugeShop(ctx context.Context, shop *rig.Shop) (Gauge, error) {
	const collect = "/debug/pprof/heap?gc=1"
	if status, _, _, err := ask(ctx, 10*time.Second, http.MethodGet, shop.Internal+collect, "", nil); err != nil || status != http.StatusOK {
		return Gauge{}, errors.Join(fmt.Errorf("%s: status %d", collect, status), err)
	}
	value, err := rig.Metrics(ctx, shop.Internal)
	if err != nil {
		return Gauge{}, err
	}
	mysql := value("go_sql_open_connections")
	return Gauge{
		Shop:       strings.TrimPrefix(shop.Process.Name, "shop "),
		Goroutines: int(value("go_goroutines") - mysql),
		MySQL:      int(mysql),
		Busy:       int(value("go_sql_in_use_connections") + value("redis_pool_connections", "used") + value("shop_requests_in_flight")),
		Heap:       int64(value("go_memstats_heap_inuse_bytes")),
		Resident:   int64(value("process_resident_memory_bytes")),
	}, nil
}

// leaks names what is in use that should not be.
func leaks(before, after *Gauges) (found []string) {
	say := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for i, b := range before.Shops {
		a := after.Shops[i]
		if a.Goroutines > b.Goroutines+moreGoroutines {
			say("%s: %d goroutines, %d before", a.Shop, a.Goroutines, b.Goroutines)
		}
		if a.Heap > 2*b.Heap+moreHeap {
			say("%s: %d bytes of heap, %d before", a.Shop, a.Heap, b.Heap)
		}
		if a.Busy > 0 {
			say("%s: %d connections or requests are in use at rest", a.Shop, a.Busy)
		}
	}
	for _, of := range []struct {
		n    int
		what string
	}{
		{after.MySQL, "MySQL has %d unknown connections"},
		{after.Locks, "Redis has %d locks at rest"},
		{after.Waiters, "%d processes wait for a lock at rest"},
		{after.KeysForEver, "Redis has %d keys that never expire"},
	} {
		if of.n > 0 {
			say(of.what, of.n)
		}
	}
	return found
}
