package schedule

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
)

// StageOptions is how a stage is set up.
type StageOptions struct {
	Lease time.Duration // of every lock
	// Events decide what kind of lanes there are: those that stop a process or a server need lanes
	// with shops of their own.
	Events []Event
	// Lanes is how many runs there are at a time. 0 is as many as is best for the events.
	Lanes int
	// Quorum is how many independent Redis servers there are, for the strategies that want a majority.
	Quorum int
}

// How many lanes there are where nothing else is asked for. In shared ones all but a few wait for a
// lease to pass; the others have three shops each.
const (
	sharedLanes = 48
	ownLanes    = 6
)

// Stage is what schedules are played on: one MySQL, shops for the customers A, B and C, and lanes in
// which one run after the other is played. It is safe for concurrent use.
type Stage struct {
	rig   *rig.Rig
	seat  *seat
	store *stock.Store
	lease time.Duration
	wait  time.Duration
	lanes chan *lane
	count int
	// turns are the runs that may be at work at a time: all others wait for a lease. More than the
	// machine has cores for would outlast their leases.
	turns chan struct{}
	runs  atomic.Int64

	mu    sync.Mutex // guards the rest
	first map[string]firstStep
}

// firstStep is what each customer of a strategy sends first.
type firstStep struct {
	step string
	Request
}

// OpenStage starts servers and shops.
func OpenStage(ctx context.Context, o StageOptions) (_ *Stage, err error) {
	s := &Stage{lease: o.Lease, wait: 3 * o.Lease, first: map[string]firstStep{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.rig, err = rig.New(); err != nil {
		return nil, err
	}
	if s.seat, err = openSeat(); err != nil {
		return nil, err
	}
	// What a crash of MySQL itself would lose is of no interest here, and a commit is ten times as fast.
	server, err := s.rig.MySQL(ctx, "--innodb-flush-log-at-trx-commit=0")
	if err != nil {
		return nil, err
	}
	if s.store, err = stock.Open(server.DSN()); err != nil {
		return nil, err
	}
	if err = s.store.Migrate(ctx); err != nil {
		return nil, err
	}
	if _, err = s.rig.ShopBinary(ctx); err != nil {
		return nil, err
	}
	alone, proxied := needs(o.Events)
	s.count = o.Lanes
	testbeds := 1
	if s.count == 0 {
		s.count = sharedLanes
		if alone {
			s.count = ownLanes
		}
	}
	if alone {
		testbeds = s.count
	}
	s.turns = make(chan struct{}, 3*runtime.NumCPU())
	s.lanes = make(chan *lane, s.count)
	starting, startCtx := errgroup.WithContext(ctx)
	for i := range testbeds {
		starting.Go(func() error {
			testbed, err := s.rig.Testbed(startCtx, rig.TestbedOptions{
				Name: fmt.Sprintf("lane%d", i+1), Shops: MaxCustomers, DSN: server.DSN(), Faults: proxied, Quorum: o.Quorum,
				Env: s.settings(),
			})
			if err != nil {
				return err
			}
			shared := &bed{Testbed: testbed, rehearsed: map[rehearsal]bool{}}
			for range s.count / testbeds {
				s.lanes <- &lane{bed: shared, redis: testbed.Redis().Client()}
			}
			return nil
		})
	}
	return s, starting.Wait()
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
	for len(s.lanes) > 0 {
		errs = append(errs, (<-s.lanes).redis.Close())
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	if s.rig != nil {
		errs = append(errs, s.rig.Close())
	}
	return errors.Join(errs...)
}

// Lanes is how many runs can be played at a time.
func (s *Stage) Lanes() int { return s.count }

// Lease is the lease of every lock.
func (s *Stage) Lease() time.Duration { return s.lease }

// Script is the source of a script that was sent, empty for one that is not known.
func (s *Stage) Script(sha string) string { return s.seat.script(sha) }

// maxSpoiled is how often a run is made again that the machine was too slow for.
const maxSpoiled = 6

// Play runs one schedule on a fresh item and a free lane. A run in which a lease may have ended
// although none was to pass is made again.
func (s *Stage) Play(ctx context.Context, p Plan, choose func() Chooser) (Record, error) {
	var l *lane
	select {
	case l = <-s.lanes:
	case <-ctx.Done():
		return Record{}, context.Cause(ctx)
	}
	defer func() { s.lanes <- l }()
	for try := 1; ; try++ {
		record, err := s.playOn(ctx, l, p, choose())
		if err == nil && record.spoiled == "" || errors.Is(err, ErrCannot) || errors.Is(err, errSeen) || ctx.Err() != nil {
			return record, err
		}
		if err == nil {
			err = fmt.Errorf("the machine is too busy: %s", record.spoiled)
		}
		if try == maxSpoiled {
			return Record{}, fmt.Errorf("%s, tried %d times: %w", p.Strategy, try, err)
		}
	}
}

func (s *Stage) playOn(ctx context.Context, l *lane, p Plan, choose Chooser) (Record, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := l.restarted(ctx); err != nil {
		return Record{}, err
	}
	if err := s.rehearse(ctx, l, p.Strategy); err != nil {
		return Record{}, err
	}
	if err := l.prepare(p); err != nil {
		return Record{}, err
	}
	s.turns <- struct{}{}
	defer func() { <-s.turns }()
	item, err := s.store.CreateItem(ctx, "item", int64(p.Customers-1))
	if err != nil {
		return Record{}, err
	}
	r := &run{
		stage: s, lane: l, plan: p, item: item.ID, inbox: make(chan any, 4096), changed: map[Customer]int{}, ids: map[string]Customer{},
		lock: lockLook{ttl: -2},
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

// rehearse has two customers buy at once at every shop of a lane: then connections are open, scripts
// are loaded, a lock that waits for messages listens, and the first step of a sale is known.
func (s *Stage) rehearse(ctx context.Context, l *lane, strategy string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	rehearsing, ctx := errgroup.WithContext(ctx)
	for _, shop := range l.Shops {
		this := rehearsal{shop.PID(), strategy}
		if l.rehearsed[this] {
			continue
		}
		l.rehearsed[this] = true
		rehearsing.Go(func() error { return s.rehearseAt(ctx, shop, strategy) })
	}
	return rehearsing.Wait()
}

func (s *Stage) rehearseAt(ctx context.Context, shop *rig.TestbedShop, strategy string) error {
	item, err := s.store.CreateItem(ctx, "rehearsal", 2)
	if err != nil {
		return err
	}
	ids := []string{fmt.Sprintf("rehearsal-%d-1", item.ID), fmt.Sprintf("rehearsal-%d-2", item.ID)}
	defer s.seat.follow(item.ID, ids, func(r heldReport) {
		if r.Hold == 0 {
			return
		}
		s.mu.Lock()
		if _, known := s.first[strategy]; !known {
			s.first[strategy] = firstStep{r.Name, Request{Server: r.Server, Text: r.Text, Tx: r.Tx}}
		}
		s.mu.Unlock()
		time.AfterFunc(rehearsalPace, func() { r.release(false) })
	})()
	second := make(chan string, 1)
	go func() { second <- s.buy(ctx, shop.URL, item.ID, strategy, ids[1]) }()
	answer := s.buy(ctx, shop.URL, item.ID, strategy, ids[0])
	<-second
	if answer != string(load.Sold) {
		return fmt.Errorf("%s: a sale by %s before the first run was answered with %s", shop.Name, strategy, answer)
	}
	return nil
}

// rehearsalPace makes the sales of a rehearsal so slow that one of them meets the other.
const rehearsalPace = 2 * time.Millisecond

func (s *Stage) firstStep(strategy string) firstStep {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first[strategy]
}

// oneLease is long enough for a lease to end.
func (s *Stage) oneLease() time.Duration { return s.lease + s.lease/10 + 5*time.Millisecond }

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
func (s *Stage) buy(ctx context.Context, shop string, item uint64, strategy, id string) string {
	ctx, cancel := context.WithTimeout(ctx, s.wait+labmode.HoldLimit+20*time.Second)
	defer cancel()
	answer := load.Send(ctx, load.Order{Shop: shop, ItemID: item, Quantity: 1, RequestID: id, Strategy: strategy})
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
