package step

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/bench"
	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/seen"
	"stocklock/internal/lab/words"
	"stocklock/internal/stock"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/testserver"
)

// Options is how shops are set up.
type Options struct {
	Lease time.Duration // of every lock; a run that the machine is too slow for gets a longer one
	// OwnSlots is how many runs with shops of their own there are at a time, 0 for as many as is best for their events.
	OwnSlots int
	// RedisServer is the program that is started as Redis, empty for the one of the machine.
	RedisServer string
	// MySQLSet has settings of the MySQL, such as innodb_snapshot_isolation=ON.
	MySQLSet []string
}

// Shops are those of this repository, on which schedules are played: one MySQL, shops for the customers A, B and C,
// and slots in which one run after the other is played. Slots start when the first run needs them. They are safe
// for concurrent use.
//
// Customers have a shop each, so that they share only Redis and MySQL. Playing the steps takes
// milliseconds; the leases that pass take the time. So 48 runs share three shops, and only a few of
// them work at a time. A run that waits for a lease gives its turn to another. A run in which a
// lease may have ended by itself is not judged: it is made again, after three such runs with twice
// the lease. Runs that stop a process have shops of their own.
type Shops struct {
	options Options
	shop    *catalog.Catalog
	servers *bench.Bench
	reports *reports
	shared  *database       // of all slots that have no pair of their own
	ctx     context.Context // of what outlasts a run
	// snapshotIsolation is what the server says: see [declared.Circumstances].
	snapshotIsolation bool
	// turns are the runs that may be at work at a time: all others wait for a lease. More than the
	// machine has cores for would outlast their leases.
	turns chan struct{}
	runs  atomic.Int64
	// starved are the runs that were made again because a renewal was late.
	starved atomic.Int64

	rehearsals rehearsals
	reserving  sync.Mutex // held by a run with reservations

	mu    sync.Mutex // guards pools
	pools map[slotKind]*pool
}

// OpenShops starts MySQL. Shops are started when the first run needs them, as long as ctx lasts,
// and sell by the strategies of the catalog, which is to stay open until the stage is closed.
func OpenShops(ctx context.Context, shop *catalog.Catalog, o Options) (_ *Shops, err error) {
	s := &Shops{options: o, shop: shop, ctx: ctx, turns: make(chan struct{}, turnsPerCore*runtime.NumCPU()), pools: map[slotKind]*pool{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	servers := bench.Options{Shop: shop.Program, Redis: o.RedisServer, MySQL: append(testserver.Settings(o.MySQLSet), fast), Connections: stock.PoolSize}
	if s.servers, err = bench.Open(ctx, servers); err != nil {
		return nil, err
	}
	s.shared = &database{dsn: s.servers.MySQL.DSN(), store: s.servers.Store}
	if s.reports, err = openReports(); err != nil {
		return nil, err
	}
	if s.reports.isolation, err = levelOf(ctx, s.servers.Store.Pool()); err != nil {
		return s, err
	}
	s.snapshotIsolation, err = audit.SnapshotIsolation(ctx, s.servers.Store)
	return s, err
}

const turnsPerCore = 2

// Declared is what a strategy declares for the MySQL of the stage, and for such sales.
func (s *Shops) Declared(of declared.Strategy, sales schedule.Sales) declared.Strategy {
	return of.Under(declared.Circumstances{OneProcess: sales.OneShop, SnapshotIsolation: s.snapshotIsolation})
}

// Slots is how many runs with these events can be played at a time.
func (s *Shops) Slots(events []schedule.Event) int {
	switch kind := kindFor(events); {
	case kind.Paired:
		return min(cmp.Or(s.options.OwnSlots, pairSlots), pairSlots)
	case kind.Alone:
		return cmp.Or(s.options.OwnSlots, ownSlots)
	}
	return sharedSlots
}

// Close ends everything.
func (s *Shops) Close() error {
	var errs []error
	if s.reports != nil {
		errs = append(errs, s.reports.Close())
	}
	for _, p := range s.pools {
		for len(p.slots) > 0 {
			l := <-p.slots
			l.starting.Wait()
			if l.database != s.shared {
				errs = append(errs, l.database.close())
			}
		}
	}
	if s.servers != nil {
		errs = append(errs, s.servers.Close())
	}
	return errors.Join(errs...)
}

// Starved is how many runs were made again until now because the machine made a renewal late. They are
// not judged.
func (s *Shops) Starved() int64 { return s.starved.Load() }

// Lacks says why the Redis of the stage cannot run a strategy, and nothing where it can.
func (s *Shops) Lacks(ctx context.Context, of declared.Strategy) (words.Text, error) {
	return s.servers.Rig.Lacks(ctx, of.NeedsCommand)
}

// Shop is the catalog of the shops that the stage starts.
func (s *Shops) Shop() *catalog.Catalog { return s.shop }

// PIDs are the numbers of the shops' processes, between two runs.
func (s *Shops) PIDs() (pids []int) {
	for _, p := range s.pools {
		for range len(p.slots) {
			l := <-p.slots
			for _, shop := range l.Shops {
				pids = append(pids, shop.PID())
			}
			p.slots <- l
		}
	}
	return pids
}

// Script is the source of a script that was sent, empty for one that is not known.
func (s *Shops) Script(sha string) string { return s.reports.script(sha) }

// Panic returns what a shop of the stage said when it last panicked, empty where none did.
func (s *Shops) Panic() string {
	logs, _ := filepath.Glob(filepath.Join(s.servers.Rig.Dir(), "shop-*", "log")) // the pattern is right
	for _, log := range logs {
		if content, err := os.ReadFile(log); err == nil {
			if why := rig.Panicked(string(content)); why != "" {
				return why
			}
		}
	}
	return ""
}

// PlaySchedule plays a schedule with its own events, and looks at both servers after each step.
func (s *Shops) PlaySchedule(ctx context.Context, strategy string, customers int, order schedule.Schedule) (schedule.Record, error) {
	return As{Shops: s}.PlaySchedule(ctx, strategy, customers, order)
}

// As are shops on which the customers of all schedules buy alike.
type As struct {
	*Shops
	schedule.Sales
}

func (a As) plan(strategy string, customers int, order schedule.Schedule) Plan {
	return Plan{Strategy: strategy, Customers: customers, Sales: a.Sales}.Following(order)
}

// Slots is how many runs can be played at a time.
func (a As) Slots(events []schedule.Event) int {
	if a.Reservations {
		return 1
	}
	return a.Shops.Slots(events)
}

// PlaySchedule plays a schedule as [Shops.PlaySchedule] does.
func (a As) PlaySchedule(ctx context.Context, strategy string, customers int, order schedule.Schedule) (schedule.Record, error) {
	record, err := a.Play(ctx, a.plan(strategy, customers, order), func() explore.Chooser { return explore.Follow(order) })
	if err == nil {
		err = explore.Followed(order, record)
	}
	return record, err
}

// Position is how things stand after the last entry of a schedule, and what can be done next.
type Position struct {
	schedule.Record
	Options []schedule.Choice `json:"options"`
	Ended   bool              `json:"ended"` // nothing can be chosen any more: the record has the outcome
}

// Position plays a schedule and what follows it, and returns how things stood in between. So no
// sale waits for whoever chooses the next step.
func (a As) Position(ctx context.Context, strategy string, customers int, order schedule.Schedule) (Position, error) {
	var at Position
	p := a.plan(strategy, customers, order)
	events, following := order.Events(), append(schedule.Events(), schedule.DBFailover)
	switch {
	case a.Reservations: // which have none
		following = nil
	case !kindFor(events).Alone:
		following = []schedule.Event{schedule.Wait, schedule.Lose, schedule.Forget} // those without shops of one's own
	}
	for _, e := range following {
		beside := e == schedule.DBFailover && slices.Contains(events, schedule.Lag) // it takes the replica away at the start
		if e != schedule.Lag && !beside && !slices.Contains(events, e) {            // where it may lag, sales read at a replica from the start
			events = append(events, e)
		}
	}
	p.Events, p.MaxEvents = events, len(order)+1
	entries := 0
	record, err := a.Play(ctx, p, func() explore.Chooser {
		play := explore.Follow(order)
		at = Position{Ended: true}
		return func(next explore.Next) (int, error) {
			if len(next.Past) == len(order) && at.Ended && next.ByDefault() != explore.LetTimePass {
				at.Ended = false
				entries = next.Entries
				for _, o := range next.Options {
					at.Options = append(at.Options, o.Choice)
				}
			}
			return play(next)
		}
	})
	if err != nil {
		return Position{}, err
	}
	at.Record = record
	if !at.Ended {
		at.Entries = at.Entries[:entries]
	}
	return at, explore.Followed(order, record)
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
func (s *Shops) sleep(ctx context.Context, d time.Duration) error {
	<-s.turns
	defer func() { s.turns <- struct{}{} }()
	return seen.Pause(ctx, d)
}
