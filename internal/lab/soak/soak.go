// Package soak sells for a long time while many faults overlap.
//
// Customers order at a steady rate. They repeat a request without an answer under the same
// idempotency key. If the strategies allow it, staff restocks, corrects and renames the items, and
// cancels orders, in the same way. Meanwhile a schedule made from a seed kills, stops, cuts off,
// restarts and floods shops, Redis and MySQL, several at a time. After each of these episodes,
// every shop must sell again by every strategy within a stated time. At the end, SQL shows whether
// the orders and the answers agree. The shops' own metrics show whether anything leaked.
//
//   - soak.go: the order of events
//   - customers.go, staff.go, shelf.go: the load
//   - schedule.go: the times of the faults
//   - kinds.go, storm.go: the faults
//   - inject.go: their injection, and the recoveries
//   - audit.go, gauge.go: the checks
//   - report.go: the output
package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/testserver"
)

// Options are the settings of a soak.
type Options struct {
	Shop          string                 // the program that is started as the shops, empty for the one of the checkout
	Strategies    []strategy.Description // all at once; the mixable ones sell the same items
	Faults        []string               // words that choose among the faults, as in [Faults]; none for all
	Shops         int
	Duration      time.Duration // how long faults are injected; warming up and checking take more
	Seed          uint64        // the same seed, the same schedule
	Rate          int           // orders a second, over all strategies
	RecoverWithin time.Duration // after each episode of faults
	Log           io.Writer     // what is injected, as it happens
}

// How the shops are set up. The lease is shorter than in production, and shorter than some of the
// faults, so that leases end while their holders work.
const (
	lease = 2 * time.Second
	wait  = time.Second
	work  = 10 * time.Millisecond
)

const (
	patience = 5 * time.Second // of a customer, with one request
	warmUp   = 3 * time.Second // before anything is measured or injected
	settling = 3 * time.Minute // for outcomes that are still unknown at the end

	// underWay is longer than a shop goes on with a request that its customer has given up, also
	// where the shop is stopped meanwhile. A repeat that finds the item sold out says nothing
	// before: units can come back, and the first request can take one.
	underWay = 20 * time.Second
)

// soak is one run.
type soak struct {
	Options
	began     time.Time
	rig       *rig.Rig
	mysql     *testserver.MySQL
	testbed   *rig.Testbed
	store     *stock.Store
	shelves   []*shelf
	customers *customers
	staff     *staff // nil where no shelf takes changes
}

// Run soaks private servers and shops, which end with it. An error means that the harness failed or
// that ctx ended. The report has the shops' failures.
func Run(ctx context.Context, o Options) (_ Report, err error) {
	s := &soak{Options: o}
	if s.rig, err = rig.New(); err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, s.rig.Close()) }()
	if err := s.rig.UseShopBinary(o.Shop); err != nil {
		return Report{}, err
	}
	if err := s.open(ctx); err != nil {
		return Report{}, err
	}
	defer s.store.Close()
	report, err := s.run(ctx)
	if ctx.Err() != nil {
		return report, context.Cause(ctx)
	}
	return report, err
}

// open starts the servers and the shops, and makes the items.
func (s *soak) open(ctx context.Context) (err error) {
	s.say("starting MySQL, Redis and %d shops", s.Shops)
	if s.mysql, err = s.rig.MySQL(ctx); err != nil {
		return err
	}
	if s.store, err = audit.Open(s.mysql.DSN()); err != nil {
		return err
	}
	if err := s.store.Migrate(ctx, slog.New(slog.DiscardHandler)); err != nil {
		return errors.Join(err, s.store.Close())
	}
	s.testbed, err = s.rig.Testbed(ctx, rig.TestbedOptions{
		Name: "shop", Shops: s.Shops, DSN: s.mysql.DSN(), Faults: true, ProxyMySQL: true,
		Env: map[string]string{
			"SHOP_LAB": "true", "SHOP_LOG_LEVEL": "error", "SHOP_MAX_IN_FLIGHT": "300",
			"SHOP_LEASE": lease.String(), "SHOP_WAIT": wait.String(), "SHOP_LAB_WORK": work.String(),
			"SHOP_STAFF": "true", "SHOP_SUBJECT_HEADER": subjectHeader,
		},
	})
	if err != nil {
		return errors.Join(err, s.store.Close())
	}
	s.shelves = arrange(s.Strategies)
	s.customers = newCustomers(s.Seed, s.testbed.Shops, s.shelves)
	for _, shelf := range s.shelves {
		if err := s.stockUp(ctx, shelf); err != nil {
			return errors.Join(err, s.store.Close())
		}
		if shelf.takesChanges() {
			s.staff = &staff{soak: s, shelf: shelf}
		}
	}
	return nil
}

func (s *soak) run(ctx context.Context) (Report, error) {
	s.say("warming up")
	orders := load.Load{Shape: load.Steady(s.Rate), Workers: 10 * s.Rate, Timeout: patience}
	warming, cancel := context.WithTimeout(ctx, warmUp)
	err := orders.Run(warming, s.customers.next, s.customers.answered)
	cancel()
	if err != nil {
		return Report{}, err
	}
	before, err := s.gauge(ctx, nil)
	if err != nil {
		return Report{}, err
	}

	s.began = time.Now()
	loading, stop := context.WithCancel(ctx)
	loaded := make(chan error, 2)
	go func() { loaded <- orders.Run(loading, s.customers.next, s.customers.answered) }()
	go func() { loaded <- s.staff.work(loading) }()
	recovered, err := s.injectAll(ctx)
	stop()
	if err := errors.Join(err, <-loaded, <-loaded); err != nil {
		return Report{}, err
	}

	r := Report{Options: s.Options, Lasted: time.Since(s.began), Recoveries: recovered, Before: before}
	s.say("repeating the requests whose outcome is unknown, then counting")
	if err := s.customers.settle(ctx, settling); err != nil {
		r.find("%v", err)
	}
	if err := errors.Join(s.audit(ctx, &r), s.staff.audit(ctx, &r)); err != nil {
		return r, err
	}
	if r.After, err = s.gauge(ctx, before); err != nil {
		return r, err
	}
	if r.Versions, err = s.versions(ctx); err != nil {
		return r, err
	}
	r.close()
	return r, nil
}

// say tells what is going on, with the time since faults began.
func (s *soak) say(format string, args ...any) {
	var at time.Duration
	if !s.began.IsZero() {
		at = time.Since(s.began)
	}
	fmt.Fprintf(s.Log, "%6.1fs  %s\n", at.Seconds(), fmt.Sprintf(format, args...))
}

func (s *soak) versions(ctx context.Context) (string, error) {
	mysql, err := s.store.Version(ctx)
	if err != nil {
		return "", err
	}
	client := s.testbed.Redis().Client()
	defer client.Close()
	info, err := client.InfoMap(ctx, "server").Result()
	if err != nil {
		return "", err
	}
	return mysql + ", Redis " + info["Server"]["redis_version"], nil
}
