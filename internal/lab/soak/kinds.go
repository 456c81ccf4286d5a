package soak

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/testserver"
)

// kind is one kind of fault.
type kind struct {
	name              string
	shortest, longest time.Duration
	onShop            bool // it is injected into one shop
	inSale            bool // at a point of a sale
	ends              bool // it ends the process of the shop
	// affects names the parts that do not work meanwhile.
	affects func(shop int) []string
	// do injects the fault, waits, and repairs. It returns the moment at which the fault ended:
	// from then on the shops had all that they need.
	do func(ctx context.Context, s *soak, f fault) (ended time.Time, err error)
}

func process(shop int) []string   { return []string{fmt.Sprint("shop", shop)} }
func redisLink(shop int) []string { return []string{fmt.Sprint("redis link", shop)} }
func mysqlLink(shop int) []string { return []string{fmt.Sprint("mysql link", shop)} }
func links(shop int) []string     { return append(redisLink(shop), mysqlLink(shop)...) }
func redis(int) []string          { return []string{"redis"} }
func mysql(int) []string          { return []string{"mysql"} }

const (
	short = 300 * time.Millisecond
	long  = 2 * lease
)

var kinds = []kind{
	{name: "kill -9 of shop", onShop: true, ends: true, shortest: short, longest: lease, affects: process, do: killShop},
	{name: "kill -9 of shop", onShop: true, inSale: true, ends: true, shortest: short, longest: lease, affects: process, do: killInSale},
	{name: "SIGSTOP of shop", onShop: true, shortest: short, longest: long, affects: process, do: stopShop},
	{name: "SIGSTOP of shop", onShop: true, inSale: true, shortest: lease, longest: long, affects: process, do: stopInSale},
	{name: "Redis silent for shop", onShop: true, shortest: short, longest: long, affects: redisLink, do: cut(toRedis)},
	{name: "MySQL silent for shop", onShop: true, shortest: short, longest: long, affects: mysqlLink, do: cut(toMySQL)},
	{name: "both silent for shop", onShop: true, shortest: short, longest: long, affects: links, do: cut(toRedis, toMySQL)},
	{name: "connections to Redis closed for shop", onShop: true, affects: redisLink, do: sever(toRedis)},
	{name: "connections to MySQL closed for shop", onShop: true, affects: mysqlLink, do: sever(toMySQL)},
	{name: "restart of Redis with its data", shortest: short, longest: lease, affects: redis, do: restartRedis(true)},
	{name: "restart of Redis without data", shortest: short, longest: lease, affects: redis, do: restartRedis(false)},
	{name: "failover of Redis to a late replica", shortest: short, longest: lease, affects: redis, do: failOver},
	{name: "kill -9 of MySQL", shortest: short, longest: lease, affects: mysql, do: killMySQL},
	{name: "connection storm on shop", onShop: true, shortest: short, longest: long, affects: process, do: stormShop},
	{name: "connection storm on MySQL", shortest: short, longest: long, affects: mysql, do: stormMySQL},
	{name: "connection storm on Redis", shortest: short, longest: long, affects: redis, do: stormRedis},
}

// Faults returns the titles of all kinds of faults with one of the words in them. Without words it
// returns all titles.
func Faults(words ...string) []string {
	var titles []string
	for _, k := range chosen(words) {
		titles = append(titles, k.title())
	}
	return titles
}

func chosen(words []string) []*kind {
	var all []*kind
	for i := range kinds {
		k := &kinds[i]
		if len(words) == 0 || slices.ContainsFunc(words, func(word string) bool { return strings.Contains(k.title(), word) }) {
			all = append(all, k)
		}
	}
	return all
}

// title names the kind in the table.
func (k *kind) title() string {
	if k.inSale {
		return k.name + ", in a sale"
	}
	return k.name
}

func killShop(ctx context.Context, s *soak, f fault) (time.Time, error) {
	if err := s.testbed.Shops[f.shop].Kill(); err != nil {
		return time.Time{}, err
	}
	return s.startAfter(ctx, f.lasts, s.testbed.Shops[f.shop].Process)
}

// killInSale kills the shop when a sale reaches the point. If the sale never does, it kills the
// shop afterwards.
func killInSale(ctx context.Context, s *soak, f fault) (time.Time, error) {
	if err := s.placeAndWait(ctx, f, labmode.Fault{Point: f.point, Action: labmode.Kill}); err != nil {
		return time.Time{}, err
	}
	return killShop(ctx, s, f)
}

func stopShop(ctx context.Context, s *soak, f fault) (time.Time, error) {
	shop := s.testbed.Shops[f.shop]
	if err := shop.Pause(); err != nil {
		return time.Time{}, err
	}
	pause(ctx, f.lasts)
	return time.Now(), shop.Resume()
}

// stopInSale tries again when the sale did not reach the point: it may have been rejected as busy,
// or have found no stock.
func stopInSale(ctx context.Context, s *soak, f fault) (time.Time, error) {
	for range 5 {
		began := time.Now()
		if err := s.placeAndWait(ctx, f, labmode.Fault{Point: f.point, Action: labmode.Stop, For: f.lasts}); err != nil {
			return time.Time{}, err
		}
		if time.Since(began) >= f.lasts {
			break
		}
	}
	return time.Now(), nil
}

func (s *soak) placeAndWait(ctx context.Context, f fault, placed labmode.Fault) error {
	select {
	case <-s.customers.place(f.shop, placed):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// startAfter starts a process that has ended. The start of a shop is part of its recovery.
func (s *soak) startAfter(ctx context.Context, after time.Duration, p *testserver.Process) (time.Time, error) {
	pause(ctx, after)
	began := time.Now()
	var errs []error
	for range 5 { // an outgoing connection may have its port for a moment
		err := p.Restart(ctx)
		if err == nil || ctx.Err() != nil {
			return began, err
		}
		errs = append(errs, err)
	}
	return began, errors.Join(errs...)
}

func toRedis(shop *rig.TestbedShop) *rig.Proxy { return shop.ToRedis() }
func toMySQL(shop *rig.TestbedShop) *rig.Proxy { return shop.ToMySQL() }

func cut(which ...func(*rig.TestbedShop) *rig.Proxy) func(context.Context, *soak, fault) (time.Time, error) {
	return func(ctx context.Context, s *soak, f fault) (time.Time, error) {
		var errs []error
		for _, link := range which {
			errs = append(errs, link(s.testbed.Shops[f.shop]).Cut())
		}
		pause(ctx, f.lasts)
		for _, link := range which {
			link(s.testbed.Shops[f.shop]).Heal()
		}
		return time.Now(), errors.Join(errs...)
	}
}

func sever(link func(*rig.TestbedShop) *rig.Proxy) func(context.Context, *soak, fault) (time.Time, error) {
	return func(_ context.Context, s *soak, f fault) (time.Time, error) {
		err := link(s.testbed.Shops[f.shop]).Sever()
		return time.Now(), err
	}
}

func restartRedis(withData bool) func(context.Context, *soak, fault) (time.Time, error) {
	return func(ctx context.Context, s *soak, f fault) (time.Time, error) {
		server := s.testbed.Redis()
		if withData {
			if err := server.Save(ctx); err != nil {
				return time.Time{}, err
			}
		}
		if err := server.Kill(); err != nil {
			return time.Time{}, err
		}
		if !withData {
			if err := server.Forget(); err != nil {
				return time.Time{}, err
			}
		}
		_, err := s.startAfter(ctx, f.lasts, server.Process)
		return time.Now(), err
	}
}

// failOver loses the writes of a while, such as locks and tokens.
func failOver(ctx context.Context, s *soak, f fault) (time.Time, error) {
	if err := s.testbed.HoldBackReplication(); err != nil {
		return time.Time{}, err
	}
	pause(ctx, f.lasts)
	if err := s.testbed.FailOver(ctx); err != nil {
		return time.Time{}, err
	}
	ended := time.Now()
	return ended, s.testbed.RestoreReplica(ctx)
}

func killMySQL(ctx context.Context, s *soak, f fault) (time.Time, error) {
	if err := s.mysql.Kill(); err != nil {
		return time.Time{}, err
	}
	_, err := s.startAfter(ctx, f.lasts, s.mysql.Process)
	return time.Now(), err
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
