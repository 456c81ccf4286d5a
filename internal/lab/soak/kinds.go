package soak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/seen"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/testserver"
)

type kind struct {
	name              string
	shortest, longest time.Duration
	onShop            bool // it is injected into one shop
	inSale            bool // at a point of a sale
	ends              bool // it ends the process of the shop
	// affects names the parts that do not work meanwhile.
	affects func(shop int) []string
	// do injects the fault, waits, and repairs. It returns the moment at which the fault ended:
	// from then on the shops had all that they need. The error errMissed is no failure.
	do func(ctx context.Context, s *soak, f fault) (ended time.Time, err error)
}

// errMissed says that no sale met a fault which was for one, or that the shop had ended before it was killed.
var errMissed = errors.New("no sale reached the point")

func process(shop int) []string   { return []string{fmt.Sprint("shop", shop)} }
func redisLink(shop int) []string { return []string{fmt.Sprint("redis link", shop)} }
func mysqlLink(shop int) []string { return []string{fmt.Sprint("mysql link", shop)} }
func links(shop int) []string     { return append(redisLink(shop), mysqlLink(shop)...) }
func redis(int) []string          { return []string{"redis"} }
func mysql(int) []string          { return []string{"mysql"} }

var toRedis, toMySQL = (*rig.TestbedShop).ToRedis, (*rig.TestbedShop).ToMySQL

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
	{name: "connection storm on shop", onShop: true, shortest: short, longest: long, affects: process, do: storm(shopAddr, slowSender, reader)},
	{name: "connection storm on MySQL", shortest: short, longest: long, affects: mysql, do: storm(mysqlAddr, "")},
	{name: "connection storm on Redis", shortest: short, longest: long, affects: redis, do: storm(redisAddr, "PING\r\n")},
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
		return k.name + " in a sale"
	}
	return k.name
}

// killShop leaves a shop that has ended by itself to the next episode, which finds that.
func killShop(ctx context.Context, s *soak, f fault) (time.Time, error) {
	if !s.testbed.Shops[f.shop].Alive() {
		return time.Now(), errMissed
	}
	if err := s.testbed.Shops[f.shop].Kill(); err != nil {
		return time.Time{}, err
	}
	return s.startAfter(ctx, f.lasts, s.testbed.Shops[f.shop].Process)
}

// killInSale kills the shop when a sale reaches the point. If the sale never does, it kills the
// shop afterwards.
func killInSale(ctx context.Context, s *soak, f fault) (time.Time, error) {
	var answer load.Answer
	select {
	case answer = <-s.customers.place(f.shop, labmode.Fault{Point: f.point, Action: labmode.Kill}):
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	}
	if answer.Outcome == load.Unknown { // a connection breaks before its process has ended
		select {
		case <-s.testbed.Shops[f.shop].Exited():
			return s.startAfter(ctx, f.lasts, s.testbed.Shops[f.shop].Process)
		case <-time.After(patience):
		case <-ctx.Done():
		}
	}
	ended, err := killShop(ctx, s, f)
	return ended, cmp.Or(err, errMissed)
}

func stopShop(ctx context.Context, s *soak, f fault) (time.Time, error) {
	shop := s.testbed.Shops[f.shop]
	if err := shop.Pause(); err != nil {
		return time.Time{}, err
	}
	_ = seen.Pause(ctx, f.lasts)
	return time.Now(), shop.Resume()
}

// stopInSale tries again when the sale did not reach the point: it may have been rejected as busy,
// or have found no stock. Only the process shows that: a sale can be slow by another fault.
func stopInSale(ctx context.Context, s *soak, f fault) (time.Time, error) {
	shop := s.testbed.Shops[f.shop]
	for range 5 {
		answered := s.customers.place(f.shop, labmode.Fault{Point: f.point, Action: labmode.Stop, For: f.lasts})
		met := false
		for over, stopped := false, false; !over || stopped; {
			select {
			case <-answered:
				over = true
			case <-ctx.Done():
				return time.Time{}, context.Cause(ctx)
			case <-time.After(50 * time.Millisecond): // a stop is many times as long
			}
			stopped = shop.Stopped()
			met = met || stopped
		}
		if met {
			return time.Now(), nil
		}
	}
	return time.Now(), errMissed
}

// startAfter starts a process that has ended. The start of a shop is part of its recovery.
func (s *soak) startAfter(ctx context.Context, after time.Duration, p *testserver.Process) (time.Time, error) {
	_ = seen.Pause(ctx, after)
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

func cut(which ...func(*rig.TestbedShop) *rig.Proxy) func(context.Context, *soak, fault) (time.Time, error) {
	return func(ctx context.Context, s *soak, f fault) (time.Time, error) {
		var errs []error
		for _, link := range which {
			errs = append(errs, link(s.testbed.Shops[f.shop]).Cut())
		}
		_ = seen.Pause(ctx, f.lasts)
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
	_ = seen.Pause(ctx, f.lasts)
	if err := s.testbed.FailOver(ctx); err != nil {
		return time.Time{}, err
	}
	ended := time.Now()
	return ended, s.testbed.RestoreReplica(ctx)
}

func killMySQL(ctx context.Context, s *soak, f fault) (time.Time, error) {
	if err := s.servers.MySQL.Kill(); err != nil {
		return time.Time{}, err
	}
	_, err := s.startAfter(ctx, f.lasts, s.servers.MySQL.Process)
	return time.Now(), err
}

// stormConnections is more than the shop lets in (300 requests) and MySQL has (1000 connections).
const stormConnections = 1200

// A connection of a storm sends one of these before it waits.
const (
	slowSender = "POST /api/v1/items/1/orders HTTP/1.1\r\nHost: shop\r\nContent-Length: 1\r\n" // and never the rest
	reader     = "GET /api/v1/items HTTP/1.1\r\nHost: shop\r\n\r\n"
)

func shopAddr(s *soak, f fault) string {
	return strings.TrimPrefix(s.testbed.Shops[f.shop].URL, "http://")
}

// mysqlAddr is where a storm takes all connections that the server has: the shops can open no new
// ones.
func mysqlAddr(s *soak, _ fault) string { return s.servers.MySQL.Addr }

func redisAddr(s *soak, _ fault) string { return s.testbed.Redis().Addr }

// storm opens all connections at once, sends one of the words through each, and keeps them open.
// The server may refuse some.
func storm(addr func(*soak, fault) string, words ...string) func(context.Context, *soak, fault) (time.Time, error) {
	return func(ctx context.Context, s *soak, f fault) (ended time.Time, _ error) {
		ctx, cancel := context.WithTimeout(ctx, f.lasts)
		defer cancel()
		var opened sync.WaitGroup
		for i := range stormConnections {
			opened.Go(func() {
				var dialer net.Dialer
				if conn, err := dialer.DialContext(ctx, "tcp", addr(s, f)); err == nil {
					_, _ = conn.Write([]byte(words[i%len(words)]))
					<-ctx.Done()
					_ = conn.Close()
				}
			})
		}
		opened.Wait()
		<-ctx.Done()
		return time.Now(), nil
	}
}
