// Package wirestage plays sales of a described service request by request, in a chosen order.
//
// A [Stage] has one process of the service for each customer, with proxies of its own: what comes through
// them while its customer buys belongs to that sale. It holds each request until it is chosen. It is a
// player for package explore, as package stage is one for the shop of this repository, and gives the same
// records.
//
// wirestage.go opens a stage and makes runs, run.go is one run, and tap.go holds what the proxies read. send.go
// makes a step, settle.go waits until all are at rest, handle.go takes in what was seen meanwhile, and look.go
// looks into Redis. happen.go and fault.go have the events. conclude.go counts.
//
// # Decisions
//
// A described service has a second player, and no second search. Package wirestage plays sales at
// the wire, and package explore searches with it as with the stage inside our shop. Each customer
// has a process with proxies of its own, so it is certain whose a request is. A late answer and a
// message of a subscription are not steps, and are passed on at once. The process then sends its
// next request, which is held: until then, no other customer can see what the process does with the
// answer.
//
// Counts have a process of their own. A request that counts and a request of a sale look alike at
// the wire, so one more process, at which nobody buys and nothing is held, is asked. It lives when
// a customer's process is killed. Its price is a worker in it that takes jobs of a shared queue,
// unseen: then the search says that the same schedule goes more than one way.
//
// A lease that was ended early is no finding. A search ends the key at once. Each finding is played
// again, and the lease ends in its own time. So a process that goes by its own clock is not blamed
// for a time that this clock has not shown. A key that rises again while its sale is held is
// renewed: it ends only while its process is stopped, or its renewals are withheld. Then the other
// customer comes afterwards: a customer who polls meanwhile does so by a clock, and no two runs
// would go alike.
//
// Redis is broken as a server, where the sale has something in it. A failover, a restart and an
// eviction are those of the rig. The proxies lead to the new primary, and all connections end. A
// fault at a place where the run has named no key that Redis has would show nothing: it counts as
// not met.
//
// A request of a process whose customer has not come belongs to another run. A service may try a
// release again later. Such a request is passed on.
//
// A request that comes when its customer has been answered is a step of that sale. A command that
// Redis blocks, such as BLPOP, and a statement that waits for a row, are seen to wait: others go on
// meanwhile.
//
// Whatever command gave a key of the sale its end, that end is played. It is called the lock where
// the sale makes the key only if there is none, or deletes it. Elsewhere, as for a cache or a
// session, it is called a key that ends. A key that lives for more than a minute and is no lock
// always ends early. While a lock is renewed, no other key ends.
//
// Locks end where the server says so. A second BEGIN, DDL, LOCK TABLES, SET autocommit=1, XA COMMIT
// and a reset of the connection are steps, as is a SET with a SELECT in it. A text of several
// statements is one step.
//
// A lock is what a sale makes exclusively or deletes. The first sales of a stage show which keys
// are deleted, whatever command made them. A command's name says too little: INCR, ZADD and a
// script take locks, and SET fills caches.
//
// A run at the wire that does not go as before is reported, not repeated. A place that is not
// reached a second time counts among those that decide nothing. Whether a request waits is asked of
// InnoDB and of Redis' list of clients. A process that is silent with nothing under way is waited
// for, up to settle.
package wirestage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/service"
	"stocklock/internal/lab/stage"
	"stocklock/internal/lab/wire"
)

// Customers is how many buy in a run that is not given as a schedule.
const Customers = 2

// Stage plays one run after the other on a service. It is safe for concurrent use: runs take turns.
type Stage struct {
	on     *service.Service
	probe  *service.Probe
	schema schedule.Schema

	database string // of the schema

	// renewals are requests that renew a lock, in the form of [service.Shape].
	renewals sync.Map

	mu     sync.Mutex // held while a run is played; guards the rest
	idled  bool       // the idle service was watched: see learns
	dirty  []bool     // by process: it was killed, or must be started again
	cold   []bool     // by process: its connections are gone
	leases bool       // a sale keeps a key that ends by itself
	renews bool       // and renews it
	lease  time.Duration
	inTime bool // leases end by themselves, and are not ended early
	late   bool // the second customer comes after the event

	learning      bool            // the first sales show which keys sales delete, and which end by themselves
	deletes, ends map[string]bool // in the form of [service.Shape]
	outlasted     bool            // a key of a sale ended by its time while the sale was held
	kept          bool            // the stock is kept in Redis: it is there before a sale
	spare         bool            // there is a unit for each customer
}

// Open prepares a service that was probed. It finds out whether sales keep leases, and renew them.
func Open(ctx context.Context, on *service.Service, probe *service.Probe) (*Stage, error) {
	s := &Stage{on: on, probe: probe, deletes: map[string]bool{}, ends: map[string]bool{}, dirty: make([]bool, len(on.Processes)), cold: make([]bool, len(on.Processes))}
	if len(on.Processes) < Customers {
		return nil, errors.New("it is one process, which can keep its own customers apart: each customer needs a process of its own")
	}
	var err error
	if s.schema, err = stage.LoadSchema(ctx, on.DB); err != nil {
		return nil, err
	}
	if err = on.DB.QueryRowContext(ctx, "SELECT COALESCE(DATABASE(), '')").Scan(&s.database); err != nil {
		return nil, err
	}
	lock, watched := "", false
	look := func(r *run) error {
		for name := range r.before {
			s.kept = s.kept || strings.Contains(name, strconv.FormatInt(r.item, 10))
		}
		if !r.lock.Locked() || r.lock.TTLMS <= 0 || watched {
			return nil
		}
		watched, s.leases, s.lease, lock = true, true, time.Duration(r.lock.TTLMS)*time.Millisecond, service.Shape(r.main)
		var err error
		s.renews, err = r.renewed(ctx)
		return err
	}
	s.learning = true
	for range 2 { // the second time it is known which keys are deleted: they are locks, however they are made
		for try := 0; try == 0 || try < slowTries && (s.outlasted || errors.Is(err, errLearned) || errors.Is(err, errSlow)); try++ {
			watched, s.outlasted = false, false
			_, err = s.play(ctx, s.plan(nil), stage.Follow(nil), look)
		}
		if err != nil || watched || len(s.deletes) == 0 {
			break
		}
	}
	s.learning = false
	delete(s.ends, lock)
	return s, err
}

// Leases says whether a sale keeps others out by a key in Redis that ends by itself, and whether that is renewed while
// the sale goes on.
func (s *Stage) Leases() (leases, renewed bool) { return s.leases, s.renews }

// Ends are the other keys of a sale that end by themselves, in the form of [service.Shape]. It made them without asking
// whether they were there, and did not delete them.
func (s *Stage) Ends() []string { return slices.Sorted(maps.Keys(s.ends)) }

// Lease is about how long the lease of a lock is: what was left of it when it was seen first.
func (s *Stage) Lease() time.Duration { return s.lease }

// KeepsStock says whether the stock is kept in Redis. What is lost there of a unit that is sold shows nothing: faults
// of Redis are played with one more, too.
func (s *Stage) KeepsStock() bool { return s.kept }

// Spare has a unit for each customer for sale from now on, or one less.
func (s *Stage) Spare(spare bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = spare
}

func (s *Stage) plan(events []schedule.Event) stage.Plan {
	return stage.Plan{Strategy: s.on.File.Name, Customers: Customers, Events: events, MaxEvents: 1, Observe: true}
}

// Plan is what an exploration plays: two customers, and one of the events at most.
func (s *Stage) Plan(events ...schedule.Event) stage.Plan { return s.plan(events) }

// Slots is one: a service has one Redis.
func (s *Stage) Slots([]schedule.Event) int { return 1 }

// Play plays one run. A run that could not be played is not made again until it fits: its error has
// [stage.ErrGivenUp] in its chain.
func (s *Stage) Play(ctx context.Context, p stage.Plan, choose func() stage.Chooser) (schedule.Record, error) {
	record, err := s.play(ctx, p, choose(), nil)
	for try := 1; errors.Is(err, errLearned) || errors.Is(err, errSlow) && try < slowTries; try++ {
		record, err = s.play(ctx, p, choose(), nil)
	}
	switch {
	case err == nil, ctx.Err() != nil, errors.Is(err, stage.ErrStop), errors.Is(err, stage.ErrCannot):
		return record, err
	}
	return record, fmt.Errorf("%w: %w", stage.ErrGivenUp, err)
}

// PlaySchedule plays a schedule, with its events, and looks at both servers after each step.
func (s *Stage) PlaySchedule(ctx context.Context, _ string, _ int, order schedule.Schedule) (schedule.Record, error) {
	p := s.plan(order.Events())
	if p.Customers = order.Customers(); p.Customers > len(s.on.Processes) {
		return schedule.Record{}, fmt.Errorf("%w: it has %d customers, and each needs a process of its own: want processes: %d", stage.ErrCannot, p.Customers, p.Customers)
	}
	p.MaxEvents, p.Everything = len(order), true
	return s.Play(ctx, p, func() stage.Chooser { return stage.Follow(order) })
}

// InTime plays a schedule in which leases end by themselves, however long that takes: no key is ended early.
// Customers who make no step before that come when it is over, so that nothing of their sales is overdue.
func (s *Stage) InTime(ctx context.Context, order schedule.Schedule) (schedule.Record, error) {
	event := slices.IndexFunc(order, func(c schedule.Choice) bool { return !c.IsStep() })
	late := event >= 0 && !slices.ContainsFunc(order[:event], func(c schedule.Choice) bool { return c.Customer > 'A' })
	s.timing(true, late)
	defer s.timing(false, false)
	return s.PlaySchedule(ctx, "", Customers, order)
}

func (s *Stage) timing(inTime, late bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inTime, s.late = inTime, late
}

// InOwnTime plays as a [Stage] does, and leases end by themselves: a run in which one ends takes that long. The
// others come when it is over: who polls meanwhile does that by a clock, and differently in each run.
type InOwnTime struct{ *Stage }

// Play plays one run.
func (s InOwnTime) Play(ctx context.Context, p stage.Plan, choose func() stage.Chooser) (schedule.Record, error) {
	s.timing(true, true)
	defer s.timing(false, false)
	return s.Stage.Play(ctx, p, choose)
}

// PlaySchedule plays a schedule.
func (s InOwnTime) PlaySchedule(ctx context.Context, strategy string, customers int, order schedule.Schedule) (schedule.Record, error) {
	s.timing(true, true)
	defer s.timing(false, false)
	return s.Stage.PlaySchedule(ctx, strategy, customers, order)
}

// errSlow is about a run in which a lease ended although nothing was to let it pass. It is made so often.
var errSlow = errors.New("the machine is too slow for the lease of the lock")

const slowTries = 3

// prepare starts all processes again where each run sells the same item, and elsewhere those that were killed. One
// sale opens the connections of those, and of others that have lost theirs.
func (s *Stage) prepare(ctx context.Context) error {
	if !s.on.File.Fresh() {
		if err := s.on.Redis().Do(ctx, "FLUSHALL").Err; err != nil {
			return err
		}
		for i := range s.dirty {
			s.dirty[i] = true
		}
	}
	if err := s.revive(ctx); err != nil {
		return err
	}
	for i, p := range s.on.Processes {
		if s.cold[i] {
			if err := s.warm(ctx, p); err != nil {
				return err
			}
		}
		s.cold[i] = false
	}
	return nil
}

// revive starts the processes again that were killed.
func (s *Stage) revive(ctx context.Context) error {
	for i, p := range s.on.Processes {
		if !s.dirty[i] {
			continue
		}
		if err := s.on.Restart(ctx, p); err != nil {
			return err
		}
		s.dirty[i], s.cold[i] = false, true
	}
	return nil
}

// warmings is how often a process may fail to sell before it has connections.
const warmings = 3

func (s *Stage) warm(ctx context.Context, p *service.Process) error {
	for range warmings {
		item := s.on.NewItem()
		if err := s.on.SetStock(ctx, item, 1); err != nil {
			return err
		}
		last := s.awaitLast()
		reply := s.on.Buy(ctx, p, s.on.NewSale(item, fmt.Sprintf("%d-%d", item, time.Now().UnixNano()%1e6)))
		if reply.Outcome == load.Sold {
			return last(ctx)
		}
	}
	return nil
}

// awaitLast watches for the last request of a sale that goes on when it has answered. The function that it returns
// waits for that, so that no other run meets it.
func (s *Stage) awaitLast() func(context.Context) error {
	if !s.probe.AfterAnswer {
		return func(context.Context) error { return nil }
	}
	shape := s.probe.Last(load.Sold)
	seen := make(chan struct{})
	stop := s.on.Watch(&lastRequest{shape: shape, seen: seen})
	return func(ctx context.Context) error {
		defer stop()
		select {
		case <-seen:
			return nil
		case <-time.After(time.Duration(s.on.File.Settle)):
			return fmt.Errorf("a sale did not send %s within %s, as another one did when it had answered", shape, time.Duration(s.on.File.Settle))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// play makes one run. After each step it calls looked, which may be nil.
func (s *Stage) play(ctx context.Context, p stage.Plan, choose stage.Chooser, looked func(*run) error) (schedule.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.prepare(ctx); err != nil {
		return schedule.Record{}, err
	}
	item := s.on.NewItem()
	units := int64(p.Customers - 1)
	if s.spare {
		units++
	}
	if err := s.on.SetStock(ctx, item, units); err != nil {
		return schedule.Record{}, err
	}
	if slices.Contains(p.Events, schedule.Failover) {
		if err := s.on.HoldBackReplication(ctx); err != nil {
			return schedule.Record{}, err
		}
	}
	r := &run{
		stage: s, plan: p, item: item, units: units, looked: looked, messages: make(chan any, 4096), over: make(chan struct{}), lock: noLock, busy: make([]int, p.Customers), came: make([]bool, p.Customers), dead: make([]bool, p.Customers), held: map[*wire.Exchange]bool{}, inSale: map[connection]bool{}, made: map[string]bool{},
		settleLimit: time.Duration(s.on.File.Settle),
	}
	var err error
	if r.before, err = r.keys(ctx); err != nil {
		return schedule.Record{}, err
	}
	for i, c := range schedule.Customers(p.Customers) {
		// The name leaves the form of a request as the probe has seen it: see [service.Shape].
		r.buyers = append(r.buyers, &buyer{
			customer: c, process: s.on.Processes[i], database: s.database, sale: s.on.NewSale(item, fmt.Sprintf("%d-%c", item, c+'a'-'A')),
			counts: map[string]int{}, tx: map[connection][]schedule.Statement{}, named: map[connection][]schedule.Statement{},
		})
	}
	stop := s.on.Watch(tap{r})
	record, err := r.play(ctx, choose)
	stop()
	r.end()
	if r.unforeseen.Load() && s.learns(ctx) {
		return schedule.Record{}, errLearned
	}
	return record, err
}

// errLearned is about a run that had requests of no sale among its steps.
var errLearned = errors.New("a request comes without a customer, too")

// learns watches the idle service once, when sales have sent what the probe has not seen: a heartbeat comes without
// them, too. It says whether there was one.
func (s *Stage) learns(ctx context.Context) bool {
	if s.idled || ctx.Err() != nil {
		return false
	}
	s.idled = true
	more, err := s.on.Learn(ctx, s.probe, service.LongWatch)
	return more && err == nil
}
