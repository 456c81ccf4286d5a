// Package soak sells for a long time while many faults overlap.
//
// Customers order at a steady rate, one item or several, up to a limit for each. They repeat a request without an answer under the same
// idempotency key. If the strategies allow it, staff restocks, corrects and renames the items, and
// cancels orders and lines of them, in the same way. Meanwhile a schedule made from a seed kills, stops, cuts off,
// restarts and floods shops, Redis and MySQL, several at a time. After each of these episodes,
// every shop must sell again by every strategy within a stated time. At the end, SQL shows whether
// the orders and the answers agree. The shops' own metrics show whether anything leaked.
//
// Two forms have the same customers and the same audit. With [Options.Sales], one item is sold out as
// fast as orders are answered, and the only fault is the kill of one shop after the other.
// [Measure] has no faults, and measures what a demand gets.
package soak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"stocklock/internal/lab/bench"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/stock"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/testserver"
)

// Options are the settings of a soak.
type Options struct {
	Shop       string              // the program that is started as the shops, empty for the one of the checkout
	Redis      string              // the program that is started as Redis, empty for the one of the machine
	MySQLSet   []string            // settings of MySQL, as [testserver.Settings] takes them
	Strategies []declared.Strategy // all at once; the mixable ones sell the same items
	Shops      int
	Log        io.Writer // what is injected, as it happens

	Faults        []string      // words that choose among the faults, as in [Faults]; none for all
	Duration      time.Duration // how long faults are injected; warming up and checking take more
	Seed          uint64        // the same seed, the same schedule
	Rate          int           // orders a second, over all strategies
	RecoverWithin time.Duration // after each episode of faults

	// Sales makes it a soak of kills, without the five settings above: one item with so many units is
	// sold out. 0 for faults of all kinds.
	Sales   int64
	Every   time.Duration // between two kills
	Workers int           // customers who buy at once
}

// ofKills says whether the only faults are kills in turn, until the item is sold out.
func (o *Options) ofKills() bool { return o.Sales > 0 }

// How the shops are set up. The lease is shorter than in production, and shorter than some of the
// faults, so that leases end while their holders work.
const (
	lease = 2 * time.Second
	wait  = time.Second
	work  = 10 * time.Millisecond
)

const (
	patience = 5 * time.Second  // of a customer, with one request
	longWait = 20 * time.Second // the same where a shop waits for the locks of killed ones
	warmUp   = 3 * time.Second  // before anything is measured or injected
	settling = 3 * time.Minute  // for outcomes that are still unknown at the end

	// underWay is longer than a shop goes on with a request that its customer has given up, also
	// where the shop is stopped meanwhile. A repeat that finds the item sold out says nothing
	// before: units can come back, and the first request can take one. At the end of a soak nobody
	// waits so long: see [customers.rest].
	underWay = 20 * time.Second
)

// soak is one run.
type soak struct {
	Options
	least     int // faults that are met, however long that takes
	began     time.Time
	servers   *bench.Bench
	testbed   *rig.Testbed
	store     *stock.Store
	items     []*items
	customers *customers
	staff     *staff   // nil where no items take changes
	ended     []string // the shops that ended without a fault, and why
}

// Run soaks private servers and shops, which end with it. An error means that the harness failed or
// that ctx ended. The report has the shops' failures.
func Run(ctx context.Context, o Options) (Report, error) { return (&soak{Options: o}).whole(ctx) }

func (s *soak) whole(ctx context.Context) (r Report, err error) {
	testbed := rig.TestbedOptions{Faults: true, ProxyMySQL: true, Env: map[string]string{
		"SHOP_LAB": "true", "SHOP_LOG_LEVEL": "error", "SHOP_MAX_IN_FLIGHT": "300",
		"SHOP_LEASE": lease.String(), "SHOP_WAIT": wait.String(), "SHOP_LAB_WORK": work.String(),
		"SHOP_STAFF_SUBJECT_HEADER": staffHeader, "SHOP_SUBJECT_HEADER": load.SubjectHeader, "SHOP_LIMIT": fmt.Sprint(limit),
	}}
	if s.ofKills() {
		testbed = rig.TestbedOptions{Env: map[string]string{"SHOP_LAB": "true", "SHOP_LOG_LEVEL": "error", "SHOP_LAB_WORK": "0s"}}
	}
	s.say("starting MySQL and Redis, shops: %d", s.Shops)
	if s.servers, err = bench.Open(ctx, bench.Options{Shop: s.Shop, Redis: s.Redis, MySQL: testserver.Settings(s.MySQLSet)}); err != nil {
		return r, err
	}
	defer func() {
		err = errors.Join(err, s.servers.Close())
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	s.store, testbed.Name, testbed.Shops = s.servers.Store, "shop", s.Shops
	if s.testbed, err = s.servers.Testbed(ctx, testbed); err != nil {
		return r, err
	}
	skipped, err := s.leaveOut(ctx)
	if err == nil {
		err = s.stockUp(ctx)
	}
	var versions string
	if err == nil {
		versions, err = s.versions(ctx)
	}
	if err == nil {
		r, err = s.run(ctx)
	}
	r.Skipped, r.Versions, r.Findings = skipped, versions, append(s.ended, r.Findings...) // whatever went wrong then
	return r, err
}

// ErrUnfit is in the chain of an error about strategies none of which the Redis can run.
var ErrUnfit = errors.New("no strategy is left")

// leaveOut takes away the strategies that the Redis cannot run, and returns the reason of each.
func (s *soak) leaveOut(ctx context.Context) (skipped []string, err error) {
	var fit []declared.Strategy
	for _, of := range s.Strategies {
		why, err := rig.Lacks(ctx, s.testbed.Redis().Client, of.NeedsCommand)
		switch {
		case err != nil:
			return nil, err
		case why.IsZero():
			fit = append(fit, of)
		default:
			skipped = append(skipped, of.Name+": "+why.String())
			s.say("skipped %s: %s", of.Name, why)
		}
	}
	if s.Strategies = fit; len(fit) == 0 {
		return skipped, fmt.Errorf("%w: %s", ErrUnfit, strings.Join(skipped, "; "))
	}
	return skipped, nil
}

func (s *soak) run(ctx context.Context) (Report, error) {
	orders := load.Load{Shape: load.Steady(s.Rate), Workers: 10 * s.Rate, Timeout: patience}
	var before *Gauges
	if s.ofKills() {
		orders = load.Load{Workers: s.Workers, Timeout: longWait}
	} else {
		s.say("warming up")
		warming, cancel := context.WithTimeout(ctx, warmUp)
		err := orders.Run(warming, s.customers.next, s.customers.answered)
		cancel()
		if err != nil {
			return Report{}, err
		}
		if before, err = s.gauge(ctx, nil); err != nil {
			return Report{}, err
		}
	}

	s.began = time.Now()
	running, end := context.WithCancel(ctx)
	defer end()
	selling, stop := context.WithCancel(running)
	loaded, lasted := make(chan error, 2), time.Duration(0)
	go func() {
		defer stop() // the item of a soak of kills is sold out
		err := orders.Run(selling, s.customers.next, s.customers.answered)
		lasted = time.Since(s.began) // a shop may still be started again
		loaded <- err
	}()
	go func() { loaded <- s.staff.work(selling, running) }()
	recovered, err := s.injectAll(ctx, selling)
	if err == nil {
		err = s.revive(ctx) // the staff waits for its answers
	}
	if stop(); err != nil {
		end() // nobody waits for what the staff is answered
	}
	if err := errors.Join(err, <-loaded, <-loaded, context.Cause(ctx)); err != nil {
		return Report{}, err
	}

	r := Report{Options: s.Options, Lasted: lasted, Recoveries: recovered, Before: before}
	if before != nil {
		s.say("waiting for the requests under way")
		if _, err := s.gauge(ctx, before); err != nil {
			return r, err
		}
		s.customers.rest()
	}
	s.say("repeating the requests whose outcome is unknown, then counting")
	open, err := s.customers.settle(ctx, orders.Timeout)
	if err != nil {
		return r, err
	}
	if open > 0 {
		r.find("%d customers repeated their requests for %s more and still do not know whether they bought", open, settling)
	}
	if err := errors.Join(s.audit(ctx, &r), s.staff.audit(ctx, &r)); err != nil {
		return r, err
	}
	if before != nil {
		if r.After, err = s.gauge(ctx, before); err != nil {
			return r, err
		}
	}
	for n, shop := range s.testbed.Shops { // also where a kill came before the end was noticed
		if panicked := shop.Panic(); !strings.Contains(strings.Join(s.ended, "\n"), panicked) {
			s.ended = append(s.ended, fmt.Sprintf("shop %d logged %s", n+1, panicked))
		}
	}
	r.close()
	return r, nil
}

// revive starts the shops again that have ended without a fault, and keeps why they did. No fault may be under way.
func (s *soak) revive(ctx context.Context) error {
	if ctx.Err() != nil { // who was killed last may not have been started again
		return context.Cause(ctx)
	}
	for n, shop := range s.testbed.Shops {
		if shop.Alive() {
			continue
		}
		ended := fmt.Sprintf("shop %d ended by itself: %s", n+1, cmp.Or(shop.Panic(), shop.LogTail(), "it printed nothing"))
		s.say("%s", ended)
		s.ended = append(s.ended, ended)
		if _, err := s.startAfter(ctx, 0, shop.Process); err != nil {
			return fmt.Errorf("%s; start it again: %w", ended, err)
		}
	}
	return nil
}

// say prints what is going on, with the time since faults began.
func (s *soak) say(format string, args ...any) {
	var at time.Duration
	if !s.began.IsZero() {
		at = time.Since(s.began)
	}
	fmt.Fprintf(s.Log, "%6.1fs  %s\n", at.Seconds(), fmt.Sprintf(format, args...))
}

func (s *soak) versions(ctx context.Context) (string, error) {
	redis, err := rig.RedisVersion(ctx, s.testbed.Redis().Client)
	return strings.TrimPrefix(s.servers.Version, "MySQL ") + ", " + redis, err
}
