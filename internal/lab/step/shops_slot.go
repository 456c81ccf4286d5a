package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/shop/labmode"
)

// How many slots there are where nothing else is asked for. In shared ones all but a few wait for a
// lease to pass; the others have three shops each, and those with a pair two servers of MySQL besides.
const (
	sharedSlots = 48
	ownSlots    = 6
	pairSlots   = 3
)

// slotKind is what runs in a slot can do, and the lease of its locks.
type slotKind struct {
	schedule.Needs
	etcd, quorum bool
	reserving    bool // the shops offer reservations
	// reads says that sales read from the replica of a pair.
	reads bool
	// Crossing has no lease end. Customers who wait for each other give up before that, and after all that
	// others can do meanwhile.
	crossing bool
	lease    time.Duration
}

func kindFor(events []schedule.Event) slotKind {
	return slotKind{Needs: schedule.NeedsOf(events), reads: slices.Contains(events, schedule.Lag)}
}

type pool struct {
	number int // from 1
	open   func() error
	slots  chan *slot
}

// poolOf returns so many slots of a kind, and starts them if there are none yet. They outlast a run that
// is given up meanwhile.
func (s *Shops) poolOf(kind slotKind, n int) (*pool, error) {
	s.mu.Lock()
	p := s.pools[kind]
	if p == nil {
		p = &pool{number: len(s.pools) + 1, slots: make(chan *slot, n)}
		p.open = sync.OnceValue(func() error { return s.open(kind, p) })
		s.pools[kind] = p
	}
	s.mu.Unlock()
	return p, p.open()
}

func (s *Shops) open(kind slotKind, p *pool) error {
	testbeds, each := 1, cap(p.slots)
	if kind.Alone {
		testbeds, each = each, 1
	}
	quorum := 0
	if kind.quorum {
		quorum = rig.QuorumServers
	}
	settings := map[string]string{
		"SHOP_LAB": "true", "SHOP_LAB_STEP": s.reports.Addr, "SHOP_LOG_LEVEL": "error", "SHOP_RETRY": "2ms",
		"SHOP_LEASE": kind.lease.String(), "SHOP_WAIT": kind.wait().String(),
	}
	if kind.reserving {
		maps.Copy(settings, load.Reservations())
	}
	starting, ctx := errgroup.WithContext(s.ctx)
	for i := range testbeds {
		starting.Go(func() error {
			database, settings, err := s.shared, maps.Clone(settings), error(nil)
			switch {
			case kind.Paired:
				database, err = s.openPair(ctx)
			case kind.reserving: // shops that have sold by reservations sweep what is overdue of all
				database, err = s.openApart(ctx, fmt.Sprintf("reserving%d_%d", p.number, i+1))
			}
			if err != nil {
				return err
			}
			if kind.reads {
				settings["SHOP_LAB_MYSQL_READ"] = database.readDSN
			}
			name := fmt.Sprintf("slot%d.%d", p.number, i+1)
			servers, err := s.servers.Rig.Testbed(ctx, rig.TestbedOptions{
				Name: name, Shops: schedule.MaxCustomers, DSN: database.dsn, Faults: kind.Proxied, Etcd: kind.etcd, Quorum: quorum, Env: settings,
			})
			if err != nil {
				if database != s.shared {
					err = errors.Join(err, database.close())
				}
				return err
			}
			l := &slot{Testbed: servers, name: name, shared: each > 1, lease: kind.lease, wait: kind.wait(), database: database, rehearsed: map[rehearsal]bool{}}
			for range each {
				p.slots <- l
			}
			return nil
		})
	}
	return starting.Wait()
}

// restartLimit bounds how long a killed shop takes to be back.
const restartLimit = 20 * time.Second

// restart starts a killed shop again, in the background. One that does not come back is started once
// more by [slot.revive].
func (l *slot) restart(shop *rig.TestbedShop) {
	l.starting.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), restartLimit)
		defer cancel()
		_ = shop.Restart(ctx)
	})
}

// restarted waits until every shop runs again, and gives a primary a replica after a failover.
func (l *slot) restarted(ctx context.Context) error {
	l.starting.Wait()
	if err := l.revive(ctx); err != nil {
		return err
	}
	if err := l.database.restore(ctx); err != nil || !l.failedOver() {
		return err
	}
	return l.RestoreReplica(ctx)
}

// prepare keeps a run's writes from a replica that is to take over. The writes before have reached it.
func (l *slot) prepare(ctx context.Context, p Plan) error {
	if slices.Contains(p.Events, schedule.Failover) {
		if err := l.HoldBackReplication(); err != nil {
			return err
		}
	}
	return l.database.prepare(ctx, slices.Contains(p.Events, schedule.DBFailover))
}

// failedOver says that no replica of Redis is left to take over: the primary that has died becomes it before the next run.
func (l *slot) failedOver() bool { return l.CommandsServers() && !l.Replica().Alive() }

// slot is a place in which one run after the other is played: the shops of the customers, and the servers behind them.
// Runs that stop nothing share one. A pool has it so many times.
type slot struct {
	*rig.Testbed
	name     string
	shared   bool          // by runs side by side
	lease    time.Duration // of every lock
	wait     time.Duration // of a sale for its lock
	database *database

	starting sync.WaitGroup // shops that were killed

	mu        sync.Mutex // guards rehearsed; held for as long as a rehearsal or a restart takes
	rehearsed map[rehearsal]bool
}

func testbedOf(shop string) string { return shop[:max(strings.LastIndexByte(shop, '-'), 0)] }

// revive starts each shop again that does not run: one that has ended by itself, or that did not come
// back after it was killed.
func (l *slot) revive(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, shop := range l.Shops {
		if shop.Alive() {
			continue
		}
		if err := shop.Restart(ctx); err != nil {
			return err
		}
	}
	return nil
}

// processes are the ends of the shops as they run now.
func (l *slot) processes() (ends []<-chan struct{}) {
	for _, shop := range l.Shops {
		ends = append(ends, shop.Exited())
	}
	return ends
}

func over(end <-chan struct{}) bool {
	select {
	case <-end:
		return true
	default:
		return false
	}
}

// dead names the shops that have ended, with their last words. Without any it is empty.
func (l *slot) dead() string {
	var said []string
	for _, shop := range l.Shops {
		if !shop.Alive() {
			log := shop.LogTail()
			said = append(said, fmt.Sprintf("%s has ended: %s", shop.Name, cmp.Or(shop.Panic(), log[strings.LastIndexByte(log, '\n')+1:])))
		}
	}
	return strings.Join(said, "; ")
}

// leasesToWait is how many leases a sale waits for its lock, unless customers cross.
const leasesToWait = 3

// wait is how long a sale waits for its lock.
func (k slotKind) wait() time.Duration {
	if k.crossing {
		return k.lease / 3
	}
	return leasesToWait * k.lease
}

// oneLease is long enough for a lease to end.
func (l *slot) oneLease() time.Duration { return l.lease + l.lease/5 + 10*time.Millisecond }

// patience is how long time is let pass where nobody can go on.
func (l *slot) patience() time.Duration { return (leasesToWait + 4) * l.lease }

// buy is one customer: it sends an order of one unit of each item, and returns the outcome as the customer
// sees it.
func (l *slot) buy(ctx context.Context, shop string, items []uint64, by, id string) string {
	ctx, cancel := context.WithTimeout(ctx, leasesToWait*l.lease+labmode.StepTime+20*time.Second)
	defer cancel()
	return answerOf(load.Send(ctx, load.Order{
		Shop: shop, ItemID: items[0], More: items[1:], AsPosted: len(items) > 1, Quantity: 1, RequestID: id, Strategy: by,
	}))
}
