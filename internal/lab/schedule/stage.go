package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// StageOptions is how a stage is set up.
type StageOptions struct {
	Lease time.Duration // of every lock
	// Lanes is how many runs there are at a time, 0 for as many as is best for their events.
	Lanes int
	// OwnLanes is how many of them there are with shops of their own, 0 for the same.
	OwnLanes int
}

// How many lanes there are where nothing else is asked for. In shared ones all but a few wait for a
// lease to pass; the others have three shops each.
const (
	sharedLanes = 48
	ownLanes    = 6
)

// Stage is what schedules are played on: one MySQL, shops for the customers A, B and C, and lanes
// in which one run after the other is played. Lanes start when the first run needs them. It is safe
// for concurrent use.
type Stage struct {
	background context.Context // of what outlasts a run
	options    StageOptions
	shop       *catalog.Catalog
	rig        *rig.Rig
	seat       *seat
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
	pools map[laneKind]*pool
}

// laneKind is what runs in a lane can do.
type laneKind struct{ alone, proxied, etcd, quorum bool }

func kindFor(events []Event) laneKind {
	alone, proxied := needs(events)
	return laneKind{alone: alone, proxied: proxied}
}

// pool is the lanes of one kind.
type pool struct {
	opening sync.Once
	err     error
	lanes   chan *lane
}

// firstStep is what each customer of a strategy sends first.
type firstStep struct {
	step string
	Request
}

// OpenStage starts MySQL. Shops are started when the first run needs them, as long as ctx lasts,
// and sell by the strategies of the catalog, which is to stay open until the stage is closed.
func OpenStage(ctx context.Context, shop *catalog.Catalog, o StageOptions) (_ *Stage, err error) {
	s := &Stage{background: ctx, options: o, shop: shop, lease: o.Lease, wait: 3 * o.Lease, first: map[string]firstStep{}, pools: map[laneKind]*pool{},
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
	if s.seat, err = openSeat(); err != nil {
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

// Lanes is how many runs with these events can be played at a time.
func (s *Stage) Lanes(events []Event) int {
	if kindFor(events).alone {
		return cmp.Or(s.options.OwnLanes, s.options.Lanes, ownLanes)
	}
	return cmp.Or(s.options.Lanes, sharedLanes)
}

// pool returns the lanes for runs of a plan, and starts them if there are none yet. They outlast a
// run that is given up meanwhile.
func (s *Stage) pool(of Plan) (*pool, error) {
	by, err := s.shop.ByName(of.Strategy)
	if err != nil {
		return nil, err
	}
	kind := kindFor(of.Events)
	kind.etcd, kind.quorum = by.NeedsEtcd, by.NeedsQuorum
	s.mu.Lock()
	p := s.pools[kind]
	if p == nil {
		p = &pool{lanes: make(chan *lane, s.Lanes(of.Events))}
		s.pools[kind] = p
	}
	s.mu.Unlock()
	p.opening.Do(func() { p.err = s.openLanes(s.background, kind, p.lanes) })
	return p, p.err
}

// quorumSize is how many servers locks have that need several.
const quorumSize = 5

func (s *Stage) openLanes(ctx context.Context, kind laneKind, lanes chan *lane) error {
	testbeds, each := 1, cap(lanes)
	if kind.alone {
		testbeds, each = each, 1
	}
	quorum := 0
	if kind.quorum {
		quorum = quorumSize
	}
	s.mu.Lock()
	set := len(s.pools)
	s.mu.Unlock()
	starting, ctx := errgroup.WithContext(ctx)
	for i := range testbeds {
		starting.Go(func() error {
			testbed, err := s.rig.Testbed(ctx, rig.TestbedOptions{
				Name: fmt.Sprintf("lane%d.%d", set, i+1), Shops: MaxCustomers, DSN: s.dsn, Faults: kind.proxied, Etcd: kind.etcd, Quorum: quorum, Env: s.settings(),
			})
			if err != nil {
				return err
			}
			shared := &bed{Testbed: testbed, rehearsed: map[rehearsal]bool{}}
			for range each {
				l := &lane{bed: shared, redis: testbed.Redis().Client()}
				for _, server := range testbed.Quorum {
					l.quorum = append(l.quorum, server.Client())
				}
				lanes <- l
			}
			return nil
		})
	}
	return starting.Wait()
}

func (s *Stage) settings() map[string]string {
	return map[string]string{
		"SHOP_LAB": "true", "SHOP_LAB_STEP": s.seat.addr(), "SHOP_LOG_LEVEL": "error",
		"SHOP_LEASE": s.lease.String(), "SHOP_WAIT": s.wait.String(), "SHOP_RETRY": "2ms",
	}
}

// Close ends everything.
func (s *Stage) Close() error {
	var errs []error
	if s.seat != nil {
		errs = append(errs, s.seat.close())
	}
	for _, p := range s.pools {
		for len(p.lanes) > 0 {
			l := <-p.lanes
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

// Lease is the lease of every lock.
func (s *Stage) Lease() time.Duration { return s.lease }

// Script is the source of a script that was sent, empty for one that is not known.
func (s *Stage) Script(sha string) string { return s.seat.script(sha) }

// maxSpoiled is how often a run is made again that the machine was too slow for.
const maxSpoiled = 10

// ErrEndless is in the chain of an error about sales that go on without end.
var ErrEndless = errors.New("the sales do not end")

// errGivenUp is a run that failed each time it was made.
var errGivenUp = errors.New("a run was given up")

// calmDown is how much longer each time a run waits before it is made again.
const calmDown = 50 * time.Millisecond

// rehearsalError is a rehearsal that failed: the strategy does not sell.
type rehearsalError struct{ error }

func (e rehearsalError) Unwrap() error { return e.error }

// How often an order of steps, and a rehearsal, is tried before it is said that it cannot be. A machine
// that stalls can end more than one rehearsal.
const (
	sureTries      = 2
	rehearsalTries = 5
)

// Play runs one schedule on a fresh item and a free lane. A run in which a lease may have ended
// although none was to pass is made again, on the next lane that is free.
func (s *Stage) Play(ctx context.Context, p Plan, choose func() Chooser) (Record, error) {
	from, err := s.pool(p)
	if err != nil {
		return Record{}, err
	}
	for try := 1; ; try++ {
		record, err := s.playOnFree(ctx, from, p, choose())
		unrehearsed := errors.As(err, new(rehearsalError)) && (try >= rehearsalTries || errors.Is(err, ErrEndless))
		final := err == nil || errors.Is(err, errSeen) || errors.Is(err, ErrCannot) && try >= sureTries || unrehearsed
		if final && record.spoiled == "" || ctx.Err() != nil {
			return record, err
		}
		if record.spoiled != "" {
			err = fmt.Errorf("the machine is too busy: %s", record.spoiled)
		}
		if try == maxSpoiled {
			return Record{}, fmt.Errorf("%w: %s, tried %d times: %w", errGivenUp, p.Strategy, try, err)
		}
		select {
		case <-time.After(time.Duration(try) * calmDown):
		case <-ctx.Done():
			return Record{}, context.Cause(ctx)
		}
	}
}

// playOnFree makes one try of a run. Its error says which shops have ended.
func (s *Stage) playOnFree(ctx context.Context, from *pool, p Plan, choose Chooser) (Record, error) {
	var l *lane
	select {
	case l = <-from.lanes:
	case <-ctx.Done():
		return Record{}, context.Cause(ctx)
	}
	defer func() { from.lanes <- l }()
	record, err := s.playOn(ctx, l, p, choose)
	if err == nil || errors.Is(err, errSeen) {
		return record, err
	}
	l.starting.Wait()
	if dead := l.dead(); dead != "" {
		err = fmt.Errorf("%w: %s", err, dead)
	}
	return record, err
}

func (s *Stage) playOn(ctx context.Context, l *lane, p Plan, choose Chooser) (Record, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := l.restarted(ctx); err != nil {
		return Record{}, err
	}
	of, err := s.shop.ByName(p.Strategy)
	if err != nil {
		return Record{}, err
	}
	if err := s.rehearse(ctx, l, of); err != nil {
		return Record{}, rehearsalError{err}
	}
	if err := l.prepare(p); err != nil {
		return Record{}, err
	}
	s.turns <- struct{}{}
	defer func() { <-s.turns }()
	item, err := s.newItem(ctx, of, int64(p.Customers-1))
	if err != nil {
		return Record{}, err
	}
	r := &run{
		stage: s, lane: l, plan: p, of: of, item: item, inbox: make(chan any, 4096), changed: map[Customer]int{}, wrote: map[Customer]int{},
		ids: map[string]Customer{}, lock: lockLook{ttl: -2}, leased: of.State.Remaining != "",
	}
	number := s.runs.Add(1)
	var ids []string
	for i, c := range customers(p.Customers) {
		id := fmt.Sprintf("step-%d-%s", number, c)
		ids = append(ids, id)
		r.people = append(r.people, &person{customer: c, id: id, shop: l.Shops[i], counts: map[string]int{}, flying: -1})
	}
	unfollow := s.seat.follow(r.item, ids, func(report heldReport) {
		if report.Hold == 0 && len(r.inbox) > cap(r.inbox)/2 {
			return // what the shops do on their own is shown, not needed
		}
		r.inbox <- report
	})
	record, err := r.play(ctx, choose)
	unfollow()
	r.letGo()
	return record, err
}

// newItem makes an item with so many units for a strategy.
func (s *Stage) newItem(ctx context.Context, of strategy.Description, units int64) (uint64, error) {
	item, err := s.store.CreateItem(ctx, "item", units)
	if err == nil {
		err = of.State.Prepare(ctx, s.store, item.ID)
	}
	return item.ID, err
}

// letGo ends a run that was given up: what is still held goes on, so that the shops are free.
func (r *run) letGo() {
	for _, p := range r.people {
		if p.state == atStep {
			p.held.release(false)
		}
		if p.cut {
			p.shop.Reconnect()
		}
	}
	for {
		select {
		case m := <-r.inbox:
			if report, ok := m.(heldReport); ok && report.Hold != 0 {
				report.release(false)
			}
		default:
			return
		}
	}
}

// rehearse has two customers buy at once at every shop of a lane: then connections are open,
// scripts are loaded, a lock that waits for messages listens, and the first step of a sale is
// known.
func (s *Stage) rehearse(ctx context.Context, l *lane, by strategy.Description) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	rehearsing, ctx := errgroup.WithContext(ctx)
	if by.NeedsQuorum { // each server has a fifth of the lease, and connections to all are to be opened
		s.quorum.Lock()
		defer s.quorum.Unlock()
		rehearsing.SetLimit(1)
	}
	for _, shop := range l.Shops {
		this := rehearsal{shop.PID(), by.Name}
		if l.rehearsed[this] {
			continue
		}
		l.rehearsed[this] = true
		rehearsing.Go(func() error { return s.rehearseAt(ctx, shop, by) })
	}
	err := rehearsing.Wait()
	if err != nil {
		for _, shop := range l.Shops {
			delete(l.rehearsed, rehearsal{shop.PID(), by.Name})
		}
	}
	return err
}

func (s *Stage) rehearseAt(ctx context.Context, shop *rig.TestbedShop, by strategy.Description) error {
	item, err := s.newItem(ctx, by, 2)
	if err != nil {
		return err
	}
	ids := []string{fmt.Sprintf("rehearsal-%d-1", item), fmt.Sprintf("rehearsal-%d-2", item)}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var sent atomic.Int64
	defer s.seat.follow(item, ids, func(r heldReport) {
		if r.Hold == 0 {
			return
		}
		if sent.Add(1) == maxRehearsal {
			cancel(fmt.Errorf("%s: two sales by %s have sent %d requests: %w", shop.Name, by.Name, maxRehearsal, ErrEndless))
		}
		s.mu.Lock()
		if _, known := s.first[by.Name]; !known {
			s.first[by.Name] = firstStep{r.Name, Request{Server: r.Server, Text: r.Text, Tx: r.Tx}}
		}
		s.mu.Unlock()
		time.AfterFunc(rehearsalPace, func() { r.release(false) })
	})()
	second := make(chan string, 1)
	if by.NeedsQuorum {
		second <- "" // two that ask several servers at once can keep each other out
	} else {
		go func() { second <- s.buy(ctx, shop.URL, item, by.Name, ids[1]) }()
	}
	answer := s.buy(ctx, shop.URL, item, by.Name, ids[0])
	<-second
	if cause := context.Cause(ctx); errors.Is(cause, ErrEndless) {
		return cause
	}
	if answer != string(load.Sold) {
		return fmt.Errorf("%s: a sale by %s before the first run was answered with %s", shop.Name, by.Name, answer)
	}
	return nil
}

// rehearsalPace makes the sales of a rehearsal so slow that one of them meets the other.
const rehearsalPace = 2 * time.Millisecond

// maxRehearsal bounds the requests of a rehearsal: a lock that polls sends some hundreds.
const maxRehearsal = 2000

func (s *Stage) firstStep(of string) firstStep {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first[of]
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
