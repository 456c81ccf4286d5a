// Package stage plays sales request by request on real servers, in a chosen order.
//
// A [Stage] has one shop for each customer, so that customers share only Redis and MySQL. The shops
// hold every request of a sale until the stage lets it go. [Stage.PlaySchedule] plays a schedule on a
// fresh item and returns its record. [Stage.Play] asks a [Chooser] what comes next.
package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// Options is how a stage is set up.
type Options struct {
	Lease time.Duration // of every lock
	// Slots is how many runs there are at a time, 0 for as many as is best for their events.
	Slots int
	// OwnSlots is how many of them there are with shops of their own, 0 for the same.
	OwnSlots int
}

// How many slots there are where nothing else is asked for. In shared ones all but a few wait for a
// lease to pass; the others have three shops each.
const (
	sharedSlots = 48
	ownSlots    = 6
)

// Stage is what schedules are played on: one MySQL, shops for the customers A, B and C, and slots
// in which one run after the other is played. Slots start when the first run needs them. It is safe
// for concurrent use.
type Stage struct {
	background context.Context // of what outlasts a run
	options    Options
	shop       *catalog.Catalog
	rig        *rig.Rig
	source     *source
	store      *stock.Store
	dsn        string
	lease      time.Duration
	wait       time.Duration
	// turns are the runs that may be at work at a time: all others wait for a lease. More than the
	// machine has cores for would outlast their leases.
	turns chan struct{}
	runs  atomic.Int64

	quorum sync.Mutex // of rehearsals that ask several servers: one at a time

	mu    sync.Mutex // guards the rest
	first map[string]firstStep
	pools map[slotKind]*pool
}

// slotKind is what runs in a slot can do.
type slotKind struct{ alone, proxied, etcd, quorum bool }

func kindFor(events []schedule.Event) slotKind {
	alone, proxied := schedule.Needs(events)
	return slotKind{alone: alone, proxied: proxied}
}

// pool is the slots of one kind.
type pool struct {
	opening sync.Once
	err     error
	slots   chan *slot
}

// Open starts MySQL. Shops are started when the first run needs them, as long as ctx lasts,
// and sell by the strategies of the catalog, which is to stay open until the stage is closed.
func Open(ctx context.Context, shop *catalog.Catalog, o Options) (_ *Stage, err error) {
	s := &Stage{background: ctx, options: o, shop: shop, lease: o.Lease, wait: 3 * o.Lease, first: map[string]firstStep{}, pools: map[slotKind]*pool{},
		turns: make(chan struct{}, turnsPerCore*runtime.NumCPU())}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.rig, err = rig.New(); err != nil {
		return nil, err
	}
	if err := s.rig.UseShopBinary(shop.Program); err != nil {
		return nil, err
	}
	if s.source, err = openSource(); err != nil {
		return nil, err
	}
	return s, s.openStore(ctx)
}

const turnsPerCore = 2

func (s *Stage) openStore(ctx context.Context) error {
	// MySQL itself does not crash here, and a commit is ten times as fast.
	server, err := s.rig.MySQL(ctx, "--innodb-flush-log-at-trx-commit=0")
	if err != nil {
		return err
	}
	s.dsn = server.DSN()
	if s.store, err = stock.Open(s.dsn); err != nil {
		return err
	}
	return s.store.Migrate(ctx, slog.New(slog.DiscardHandler))
}

// Slots is how many runs with these events can be played at a time.
func (s *Stage) Slots(events []schedule.Event) int {
	if kindFor(events).alone {
		return cmp.Or(s.options.OwnSlots, s.options.Slots, ownSlots)
	}
	return cmp.Or(s.options.Slots, sharedSlots)
}

// pool returns the slots for runs of a plan, and starts them if there are none yet. They outlast a
// run that is given up meanwhile.
func (s *Stage) pool(of Plan) (*pool, error) {
	by, err := s.Strategy(of.Strategy)
	if err != nil {
		return nil, err
	}
	kind := kindFor(of.Events)
	kind.etcd, kind.quorum = by.NeedsEtcd, by.NeedsQuorum
	s.mu.Lock()
	p := s.pools[kind]
	if p == nil {
		p = &pool{slots: make(chan *slot, s.Slots(of.Events))}
		s.pools[kind] = p
	}
	s.mu.Unlock()
	p.opening.Do(func() { p.err = s.openSlots(s.background, kind, p.slots) })
	return p, p.err
}

func (s *Stage) openSlots(ctx context.Context, kind slotKind, slots chan *slot) error {
	testbeds, each := 1, cap(slots)
	if kind.alone {
		testbeds, each = each, 1
	}
	quorum := 0
	if kind.quorum {
		quorum = rig.QuorumServers
	}
	s.mu.Lock()
	set := len(s.pools)
	s.mu.Unlock()
	starting, ctx := errgroup.WithContext(ctx)
	for i := range testbeds {
		starting.Go(func() error {
			bed, err := s.rig.Testbed(ctx, rig.TestbedOptions{
				Name: fmt.Sprintf("slot%d.%d", set, i+1), Shops: schedule.MaxCustomers, DSN: s.dsn, Faults: kind.proxied, Etcd: kind.etcd, Quorum: quorum, Env: s.settings(),
			})
			if err != nil {
				return err
			}
			shared := &testbed{Testbed: bed, rehearsed: map[rehearsal]bool{}}
			for range each {
				l := &slot{testbed: shared, redis: bed.Redis().Client()}
				for _, server := range bed.Quorum {
					l.quorum = append(l.quorum, server.Client())
				}
				slots <- l
			}
			return nil
		})
	}
	return starting.Wait()
}

func (s *Stage) settings() map[string]string {
	return map[string]string{
		"SHOP_LAB": "true", "SHOP_LAB_STEP": s.source.addr(), "SHOP_LOG_LEVEL": "error",
		"SHOP_LEASE": s.lease.String(), "SHOP_WAIT": s.wait.String(), "SHOP_RETRY": "2ms",
	}
}

// Close ends everything.
func (s *Stage) Close() error {
	var errs []error
	if s.source != nil {
		errs = append(errs, s.source.close())
	}
	for _, p := range s.pools {
		for len(p.slots) > 0 {
			l := <-p.slots
			l.starting.Wait()
			errs = append(errs, l.redis.Close())
			for _, server := range l.quorum {
				errs = append(errs, server.Close())
			}
		}
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	if s.rig != nil {
		errs = append(errs, s.rig.Close())
	}
	return errors.Join(errs...)
}

// Strategies are those of the stage's shops.
func (s *Stage) Strategies() []strategy.Description { return s.shop.Strategies }

// Strategy finds a strategy of the stage's shops. The error names those that there are.
func (s *Stage) Strategy(name string) (strategy.Description, error) { return s.shop.ByName(name) }

// Lease is the lease of every lock.
func (s *Stage) Lease() time.Duration { return s.lease }

// Script is the source of a script that was sent, empty for one that is not known.
func (s *Stage) Script(sha string) string { return s.source.script(sha) }

var panicked = regexp.MustCompile(`panic: [^\n\\"]*`)

// Panic returns what a shop of the stage said when it last panicked, empty where none did.
func (s *Stage) Panic() string {
	logs, _ := filepath.Glob(filepath.Join(s.rig.Dir(), "shop-*", "log")) // the pattern is right
	for _, log := range logs {
		if content, err := os.ReadFile(log); err == nil {
			if all := panicked.FindAll(content, -1); len(all) > 0 {
				return string(all[len(all)-1])
			}
		}
	}
	return ""
}

// newItem makes an item with so many units for a strategy.
func (s *Stage) newItem(ctx context.Context, of strategy.Description, units int64) (uint64, error) {
	item, err := s.store.CreateItem(ctx, "item", units)
	if err == nil {
		err = of.State.Prepare(ctx, s.store, item.ID)
	}
	return item.ID, err
}

// oneLease is long enough for a lease to end.
func (s *Stage) oneLease() time.Duration { return s.lease + s.lease/5 + 10*time.Millisecond }

// patience is how long time is let pass where nobody can go on.
func (s *Stage) patience() time.Duration { return s.wait + 4*s.lease }

// sleep lets another run have the turn meanwhile.
func (s *Stage) sleep(ctx context.Context, d time.Duration) error {
	<-s.turns
	defer func() { s.turns <- struct{}{} }()
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// buy is one customer: it sends an order and returns the outcome as the customer sees it.
func (s *Stage) buy(ctx context.Context, shop string, item uint64, by, id string) string {
	ctx, cancel := context.WithTimeout(ctx, s.wait+labmode.HoldLimit+20*time.Second)
	defer cancel()
	answer := load.Send(ctx, load.Order{Shop: shop, ItemID: item, Quantity: 1, RequestID: id, Strategy: by})
	switch {
	case answer.Err != nil:
		return noAnswer
	case answer.Outcome == load.Failed:
		return fmt.Sprintf("%d: %s", answer.Status, answer.Detail())
	}
	return string(answer.Outcome)
}

// noAnswer stands for the answer of a shop that has ended.
const noAnswer = "no answer"
