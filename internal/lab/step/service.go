package step

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/service"
	"stocklock/internal/lab/wire"
)

// Service plays one run after the other on a described service. It is safe for concurrent use: runs take turns.
//
// Each customer has a process with proxies of its own. It is certain whose a request is: what comes through them while the
// customer buys belongs to that sale. An answer, and a message of a subscription, are no steps, and are passed on at once. The
// process then sends its next request, which is held: until then, no other customer can see what the process does with the
// answer.
type Service struct {
	on     *service.Service
	probe  *service.Probe
	schema schedule.Schema

	database  string // of the schema
	isolation string // of transactions that ask for none, in the words of database/sql

	// renewals are requests that renew a lock, in the form of [service.Shape].
	renewals sync.Map

	mu     sync.Mutex      // held while a run is played; guards the rest
	idled  bool            // the idle service was watched: see learns
	dirty  []bool          // by process: it was killed, or must be started again
	cold   []bool          // by process: its connections are gone
	queues bool            // a run has shown what [serviceRun.queued] is about; another one can miss it: its worker was quicker than the look
	lock   string          // the key of a sale that ends by itself, in the form of [service.Shape]: of several one that is renewed, or else is deleted
	renews bool            // and renews it
	locks  map[string]bool // all, in the form of [service.Shape]: whether each is renewed
	lease  time.Duration
	waits  int // how many keys of a sale can end one after the other

	learning      bool            // the first sales show which keys sales delete, and which end by themselves
	deletes, ends map[string]bool // in the form of [service.Shape]
	outlasted     bool            // a key of a sale ended by its time while the sale was held
	kept          bool            // the stock is kept in Redis: it is there before a sale
	spare         bool            // there is a unit for each customer
}

// OpenService prepares a service that was probed. It finds out whether sales keep leases, and renew them.
func OpenService(ctx context.Context, on *service.Service, probe *service.Probe) (*Service, error) {
	s := &Service{on: on, probe: probe, kept: on.File.Stock.SetRedis+on.File.Stock.LeftRedis != "", deletes: map[string]bool{}, ends: map[string]bool{}, dirty: make([]bool, len(on.Processes)), cold: make([]bool, len(on.Processes)), locks: map[string]bool{}}
	if len(on.Processes) < 2 {
		return nil, errors.New("it is one process, which can keep its own customers apart: each customer needs a process of its own")
	}
	var err error
	if s.schema, err = schedule.LoadSchema(ctx, on.DB); err != nil {
		return nil, err
	}
	if err = on.DB.QueryRowContext(ctx, "SELECT COALESCE(DATABASE(), '')").Scan(&s.database); err != nil {
		return nil, err
	}
	if s.isolation, err = levelOf(ctx, on.DB); err != nil {
		return nil, err
	}
	learned, some, best := false, false, 0
	look := func(r *serviceRun) (err error) {
		for name, held := range r.before { // where each run sells the same item, only what sets the stock is there
			s.kept = s.kept || !on.File.Fresh() || strings.Contains(name+" "+held.value, strconv.FormatInt(r.item, 10))
		}
		leases := slices.DeleteFunc(r.leases(0), func(name string) bool { _, known := s.locks[service.Shape(name)]; return known })
		if some = some || len(leases) > 0; !learned {
			return nil
		}
		if err := r.watchRenewals(ctx, leases, s.locks); err != nil {
			return err
		}
		for _, name := range leases {
			shape, left, rank := service.Shape(name), time.Duration(r.seen[name].ttl)*time.Millisecond, 1
			for i, is := range []bool{left <= longestEnd || s.deletes[shape], s.deletes[shape], s.locks[shape]} {
				if is {
					rank += 1 << i
				}
			}
			if rank > best {
				best, s.lock, s.lease, s.renews = rank, shape, left, s.locks[shape]
			}
		}
		return nil
	}
	s.learning = true
	for _, learned = range []bool{false, true} { // the second time it is known which keys are deleted: they are locks, however they are made
		for try := 0; try == 0 || try < slowTries && (s.outlasted && !learned || errors.Is(err, errLearned) || errors.As(err, new(slowError))); try++ {
			best, s.lock, s.lease, s.renews, s.outlasted = 0, "", 0, false, false
			clear(s.locks)
			_, err = s.play(ctx, s.Plan(2), explore.Follow(nil), look, false)
		}
		if err != nil || !some && len(s.deletes) == 0 {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	if _, known := s.locks[s.lock]; s.lock != "" && !known {
		return nil, errors.New("what may renew its lock waits behind requests that are held: give the lock a connection of its own")
	}
	s.learning = false
	s.waits = len(s.ends)
	for shape := range s.locks {
		delete(s.ends, shape)
	}
	return s, nil
}

// levelOf is the isolation that a server gives to transactions that ask for none. MariaDB calls it otherwise than MySQL.
func levelOf(ctx context.Context, db *sql.DB) (level string, err error) {
	err = db.QueryRowContext(ctx, "SHOW GLOBAL VARIABLES WHERE variable_name IN ('transaction_isolation', 'tx_isolation')").Scan(new(string), &level)
	for known := sql.LevelReadUncommitted; known <= sql.LevelSerializable; known++ {
		if strings.EqualFold(strings.ReplaceAll(level, "-", " "), known.String()) {
			level = known.String()
		}
	}
	return level, err
}

// Leases says whether a sale keeps others out by a key in Redis that ends by itself, and whether that is renewed while
// the sale goes on.
func (s *Service) Leases() (leases, renewed bool) { return s.lock != "", s.renews }

// NotRenewed says what is known of who renews a lock that was not seen to be renewed.
func (s *Service) NotRenewed() string {
	if s.lease > longestEnd {
		return fmt.Sprintf("nobody was seen in %s to renew", longestWatch)
	}
	return "nobody renews"
}

// Unrenewed says whether a lease of a sale can end although its process goes on: that of a lock which nobody renews.
func (s *Service) Unrenewed() bool {
	return slices.Contains(slices.Collect(maps.Values(s.locks)), false)
}

// Ends are the other keys of a sale that end by themselves, in the form of [service.Shape]. It made them without asking
// whether they were there, and did not delete them.
func (s *Service) Ends() (all []string) {
	for _, shape := range slices.Sorted(maps.Keys(s.ends)) {
		all = append(all, wire.Word(shape))
	}
	return all
}

// Lease is about how long the lease of a lock is: what was left of it when it was seen first.
func (s *Service) Lease() time.Duration { return s.lease }

// KeepsStock says whether the stock is kept in Redis. What is lost there of a unit that is sold shows nothing: faults
// of Redis are played with one more, too.
func (s *Service) KeepsStock() bool { return s.kept }

// Spare has a unit for each customer for sale from now on, or one less.
func (s *Service) Spare(spare bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = spare
}

// Plan is what an exploration plays: so many customers, and one of the events at most. Leases are ended early: where a sale
// keeps several keys that end, one after the other, so that each ends.
func (s *Service) Plan(customers int, events ...schedule.Event) Plan {
	p := Plan{Strategy: s.on.File.Name, Customers: customers, Events: events, MaxEvents: 1, MaxSteps: fewSteps, Observe: true, Early: true}
	if slices.Contains(events, schedule.Wait) {
		p.MaxEvents, p.InARow = max(1, s.waits), true
	}
	return p
}

const (
	slowTries = 3   // how often a run is made that the machine is too slow for
	fewSteps  = 200 // what a run may have: each can be seconds behind the one before
)

// Play plays one run. A run that could not be played is not made again until it fits: its error has
// [explore.ErrGivenUp] in its chain.
func (s *Service) Play(ctx context.Context, p Plan, choose func() explore.Chooser) (schedule.Record, error) {
	record, err := s.play(ctx, p, choose(), nil, false)
	for try := 1; errors.Is(err, errLearned) || errors.As(err, new(slowError)) && try < slowTries; {
		if !errors.Is(err, errLearned) { // which says nothing of the machine
			try++
		}
		record, err = s.play(ctx, p, choose(), nil, try == slowTries)
	}
	switch {
	case errors.As(err, new(manyError)):
		err = fmt.Errorf("%w: if that belongs to no sale, name it in background", err)
	case err == nil, ctx.Err() != nil, errors.Is(err, explore.ErrStop), errors.Is(err, explore.ErrCannot):
		return record, err
	}
	return record, fmt.Errorf("%w: %w", explore.ErrGivenUp, err)
}

// PlaySchedule plays a schedule, with its events, and looks at both servers after each step.
func (s *Service) PlaySchedule(ctx context.Context, _ string, customers int, order schedule.Schedule) (schedule.Record, error) {
	return s.follow(ctx, s.Plan(max(customers, order.Customers())), order)
}

func (s *Service) follow(ctx context.Context, p Plan, order schedule.Schedule) (schedule.Record, error) {
	if p.Customers > len(s.on.Processes) {
		return schedule.Record{}, fmt.Errorf("%w: it has %d customers, and each needs a process of its own: want processes: %d", explore.ErrCannot, p.Customers, p.Customers)
	}
	return s.Play(ctx, p.Following(order), func() explore.Chooser { return explore.Follow(order) })
}

// InTime plays a schedule in which leases end by themselves, however long that takes: no key is ended early.
// Customers who make no step before that come when it is over, so that nothing of their sales is overdue.
func (s *Service) InTime(ctx context.Context, _ string, customers int, order schedule.Schedule) (schedule.Record, error) {
	event := slices.IndexFunc(order, func(c schedule.Choice) bool { return !c.IsStep() })
	p := s.Plan(max(customers, order.Customers()))
	p.Early = false
	if event >= 0 {
		over := event + 1
		for c := order[event]; c.Event == schedule.Lose && over < len(order) && (!order[over-1].IsStep() || order[over-1].Customer != c.Customer); {
			over++ // it is over when the step is made whose answer is lost
		}
		p.Late = !slices.ContainsFunc(order[:over], func(c schedule.Choice) bool { return c.Customer > 'A' })
	}
	return s.follow(ctx, p, order)
}

// nameOf is what a step with a request is called: a script as the description says.
func (s *Service) nameOf(x *wire.Exchange) string {
	if words := strings.Fields(x.Text); len(words) > 1 && words[0] == "EVALSHA" {
		return cmp.Or(s.on.File.Scripts[words[1]], x.Name)
	}
	return x.Name
}

// prepare starts all processes again where each run sells the same item, and elsewhere those that were killed. One
// sale opens the connections of those, and of others that have lost theirs.
func (s *Service) prepare(ctx context.Context) error {
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
func (s *Service) revive(ctx context.Context) error {
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

func (s *Service) warm(ctx context.Context, p *service.Process) error {
	defer s.on.Watch(nil)()
	for range warmings {
		item := s.on.NewItem()
		if err := s.on.SetStock(ctx, item, 1); err != nil {
			return err
		}
		last := s.awaitLast()
		reply := s.on.Buy(ctx, p, s.on.NewSale(item))
		if reply.Outcome == load.Sold {
			return last(ctx)
		}
	}
	return nil
}

// awaitLast watches for the last request of a sale that goes on when it has answered. The function that it returns
// waits for that, so that no other run meets it.
func (s *Service) awaitLast() func(context.Context) error {
	if !s.probe.AfterAnswer {
		return func(context.Context) error { return nil }
	}
	shape := s.probe.Last(load.Sold)
	seen := make(chan struct{})
	saw := sync.OnceFunc(func() { close(seen) })
	s.on.Watch(wire.Answers(func(x *wire.Exchange) {
		if service.Shape(x.Text) == shape {
			saw()
		}
	}))
	return func(ctx context.Context) error {
		select {
		case <-seen:
			return nil
		case <-time.After(s.on.File.Settle):
			return fmt.Errorf("a sale did not send %s within %s, as another one did when it had answered", shape, s.on.File.Settle)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// play makes one run. When all are at rest it calls looked, which may be nil. With certain, a lease that ends although
// it is renewed counts.
func (s *Service) play(ctx context.Context, p Plan, choose explore.Chooser, looked func(*serviceRun) error, certain bool) (schedule.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.prepare(ctx); err != nil {
		return schedule.Record{}, err
	}
	units := int64(p.Customers - 1)
	if s.spare {
		units++
	}
	r := &serviceRun{
		run: newRun(p, s.schema, units, pace{
			lease: s.lease, renews: s.renews, certain: certain, patience: longIdle, restLimit: max(shortRest, s.on.File.Settle+time.Second),
			lookLimit: lookLimit, starved: new(atomic.Int64),
		}),
		service: s, item: s.on.NewItem(), looked: looked, conns: map[uint64]*wire.Conn{},
	}
	holding, letGo := context.WithCancel(context.WithoutCancel(ctx))
	r.over, r.letGo = holding.Done(), letGo
	r.run.source = r
	r.open(p.Customers)
	if err := s.on.SetStock(ctx, r.item, units); err != nil {
		return schedule.Record{}, err
	}
	if slices.Contains(p.Events, schedule.Failover) {
		if err := s.on.HoldBackReplication(ctx); err != nil {
			return schedule.Record{}, err
		}
	}
	var err error
	if r.before, err = r.keysNow(ctx); err != nil {
		return schedule.Record{}, err
	}
	for i, c := range schedule.Customers(p.Customers) {
		sale := s.on.NewSale(r.item)
		b := newBuyer(c, sale.Customer, s.on.Processes[i])
		r.buyers = append(r.buyers, b)
		r.customers = append(r.customers, &caller{buyer: b, at: s.on.Processes[i], sale: sale})
	}
	stop := s.on.Watch(r)
	record, err := r.play(ctx, choose)
	r.end(ctx)
	stop()
	if r.unforeseen.Load() && s.learns(ctx, r.item) {
		return schedule.Record{}, errLearned
	}
	if x := r.uncounted(); x != nil && err == nil && !record.Outcome.Bad() {
		err = fmt.Errorf("a sale sent %s when the run had been counted", x.Text)
	}
	return record, err
}

// errLearned is about a run that had requests of no sale among its steps, or that may have had them.
var errLearned = errors.New("a request comes without a customer, too")

// learns watches the idle service once, when sales have sent what the probe has not seen: a heartbeat comes without
// them, too. It says whether there was one.
func (s *Service) learns(ctx context.Context, item int64) bool {
	if s.idled || ctx.Err() != nil {
		return false
	}
	s.idled = true
	_, more, err := s.on.Learn(ctx, s.probe, service.LongWatch, service.Sale{Item: item})
	return more && err == nil
}
