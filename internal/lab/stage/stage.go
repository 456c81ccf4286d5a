// Package stage plays sales request by request on real servers, in a chosen order.
//
// A [Stage] has one shop for each customer, so that customers share only Redis and MySQL. The shops
// hold every request of a sale until the stage lets it go. [Stage.PlaySchedule] plays a schedule on a
// fresh item and returns its record. [Stage.Play] asks a [Chooser] what comes next.
//
// # Decisions
//
// A schedule is played by holding requests, not by points. Points serve faults under load. A
// schedule needs every request to a server, and some strategies announce no point between two
// requests. A hook of go-redis and a wrapped connector therefore hold requests in the shop. The
// scheduler controls them over a connection to each shop (internal/shop/labmode/stepping.go).
//
// Each schedule is played from its beginning, on an item of its own. To go back one step, nothing
// has to be saved and restored. A schedule can be replayed from its text. Playing the steps takes
// milliseconds; the leases that pass take the time. So 48 runs share three shops, and only a few of
// them work at a time. A run that waits for a lease gives its turn to another. A run in which a
// lease may have ended by itself is not judged: it is made again, after three such runs with twice
// the lease. Runs that stop a process have shops of their own.
package stage

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"sync/atomic"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/bench"
	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/stock"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/testserver"
)

// Options is how a stage is set up.
type Options struct {
	Lease time.Duration // of every lock; a run that the machine is too slow for gets a longer one
	// Slots is how many runs there are at a time, 0 for as many as is best for their events.
	Slots int
	// OwnSlots is how many of them there are with shops of their own, 0 for the same.
	OwnSlots int
	// RedisServer is the program that is started as Redis, empty for the one of the machine.
	RedisServer string
	// MySQLSet has settings of the MySQL, such as innodb_snapshot_isolation=ON.
	MySQLSet []string
}

// Stage is what schedules are played on: one MySQL, shops for the customers A, B and C, and slots
// in which one run after the other is played. Slots start when the first run needs them. It is safe
// for concurrent use.
type Stage struct {
	options Options
	shop    *catalog.Catalog
	servers *bench.Bench
	rig     *rig.Rig
	source  *source
	store   *stock.Store
	slots   slots
	// snapshotIsolation is what the server says: see [declared.Circumstances].
	snapshotIsolation bool
	// turns are the runs that may be at work at a time: all others wait for a lease. More than the
	// machine has cores for would outlast their leases.
	turns chan struct{}
	runs  atomic.Int64
	// starved are the runs that were made again because a renewal was late.
	starved atomic.Int64

	rehearsals rehearsals
}

// Open starts MySQL. Shops are started when the first run needs them, as long as ctx lasts,
// and sell by the strategies of the catalog, which is to stay open until the stage is closed.
func Open(ctx context.Context, shop *catalog.Catalog, o Options) (_ *Stage, err error) {
	s := &Stage{options: o, shop: shop, turns: make(chan struct{}, turnsPerCore*runtime.NumCPU())}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	servers := bench.Options{Shop: shop.Program, Redis: o.RedisServer, MySQL: append(testserver.Settings(o.MySQLSet), fast), Connections: stock.PoolSize}
	if s.servers, err = bench.Open(ctx, servers); err != nil {
		return nil, err
	}
	s.rig, s.store = s.servers.Rig, s.servers.Store
	if s.source, err = openSource(); err != nil {
		return nil, err
	}
	s.slots = slots{background: ctx, rig: s.rig, shared: &database{dsn: s.servers.MySQL.DSN(), store: s.store}, mysqlSet: s.options.MySQLSet, pools: map[slotKind]*pool{}, settings: map[string]string{
		"SHOP_LAB": "true", "SHOP_LAB_STEP": s.source.addr(), "SHOP_LOG_LEVEL": "error", "SHOP_RETRY": "2ms",
	}}
	s.snapshotIsolation, err = audit.SnapshotIsolation(ctx, s.store)
	return s, err
}

const turnsPerCore = 2

// Declared is what a strategy declares for the MySQL of the stage.
func (s *Stage) Declared(of declared.Strategy) declared.Strategy {
	return of.Under(declared.Circumstances{SnapshotIsolation: s.snapshotIsolation})
}

// Slots is how many runs with these events can be played at a time.
func (s *Stage) Slots(events []schedule.Event) int {
	switch kind := kindFor(events); {
	case kind.Paired:
		return min(cmp.Or(s.options.OwnSlots, s.options.Slots, pairSlots), pairSlots)
	case kind.Alone:
		return cmp.Or(s.options.OwnSlots, s.options.Slots, ownSlots)
	}
	return cmp.Or(s.options.Slots, sharedSlots)
}

// Close ends everything.
func (s *Stage) Close() error {
	var errs []error
	if s.source != nil {
		errs = append(errs, s.source.close())
	}
	errs = append(errs, s.slots.close())
	if s.servers != nil {
		errs = append(errs, s.servers.Close())
	}
	return errors.Join(errs...)
}

// Starved is how many runs were made again until now because the machine made a renewal late. They are
// not judged.
func (s *Stage) Starved() int64 { return s.starved.Load() }

// Lacks says why the Redis of the stage cannot run a strategy, and nothing where it can.
func (s *Stage) Lacks(ctx context.Context, of declared.Strategy) (string, error) {
	return s.rig.Lacks(ctx, of.NeedsCommand)
}

// Shop is the catalog of the shops that the stage starts.
func (s *Stage) Shop() *catalog.Catalog { return s.shop }

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
func (d *database) newItem(ctx context.Context, of declared.Strategy, units int64) (uint64, error) {
	item, err := d.store.CreateItem(ctx, "item", units)
	if err == nil {
		err = audit.Prepare(ctx, d.store, of.State, item.ID)
	}
	return item.ID, err
}

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
