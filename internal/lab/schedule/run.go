package schedule

import (
	"context"
	"fmt"
	"slices"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/strategy"
)

// Plan is what is played, and what may be chosen in it.
type Plan struct {
	Strategy  string
	Customers int
	// Events may happen, MaxEvents of them in one run. With InARow they follow each other, with no
	// step in between.
	Events    []Event
	MaxEvents int
	InARow    bool
	// LocalClock says that the strategy compares times of its process's clock: then it matters
	// whether a customer came before a lease passed, or after.
	LocalClock bool
	// Everything offers also what is pointless: it is for schedules that were written by hand, and
	// for showing that what is left out loses nothing.
	Everything bool
	// Observe looks at both servers after each step, and keeps what it saw.
	Observe bool
}

type state int

// The states of a customer.
const (
	absent  state = iota
	moving        // a request is under way, or the shop works
	atStep        // held before a step
	onRow         // its statement waits for a row
	onLock        // it waits for the lock, with no request under way
	inPeace       // its Redis is silent: what it has sent is under way
	ended
)

// person is a customer in a run.
type person struct {
	customer Customer
	id       string // of its request
	shop     *rig.TestbedShop
	state    state
	heard    time.Time

	held   heldReport
	step   string
	retry  bool
	counts map[string]int
	sent   int
	tries  int // of them those that were sent while time passed, and the lock was held
	flying int // the entry of the request under way, -1 for none

	first             string // the command with which a try of its lock begins
	tryFrom, tryUntil int    // the run's version when the try before this one, and this one, were made

	row       rowLock // of its transaction
	lose, cut bool
	ordered   bool // its open transaction has inserted an order
	written   bool // its order is committed
	answer    string
}

// run is one run of a schedule on one item.
type run struct {
	stage  *Stage
	lane   *lane
	plan   Plan
	of     strategy.Description
	item   uint64
	people []*person
	inbox  chan any // of heldReport and answered

	begun, segment time.Time
	entries        []Entry
	chosen         Schedule
	listed         int // so many of the chosen have to be listed
	switches       int
	used           int // events

	lock    lockLook
	owner   Customer
	has     Customer            // who has acquired last and not released, where the requests of the lock are not held
	ids     map[string]Customer // who is called so in the lock's value
	version int
	changed map[Customer]int // the version at the last change of the lock by each
	wrote   map[Customer]int // and of the stock, wherever the strategy keeps it
	tenures []tenure
	leased  bool // something was seen that a lease ends
	spoiled string
}

func (r *run) play(ctx context.Context, choose Chooser) (Record, error) {
	r.begun = time.Now()
	r.segment = r.begun
	var idle time.Time
	for {
		if err := r.settle(ctx); err != nil {
			return Record{}, err
		}
		if r.allEnded() {
			break
		}
		next := Next{Options: r.options(), Past: r.chosen, Requests: r.requests(), Why: r.why, entries: len(r.entries)}
		i, err := choose(next)
		if err != nil {
			r.endSegment() // what was to be next may have failed to come because the machine is slow
			return Record{spoiled: r.spoiled}, err
		}
		if i < 0 {
			if idle.IsZero() {
				r.endSegment()
				idle = time.Now()
			}
			if time.Since(idle) > r.stage.patience() {
				return Record{}, fmt.Errorf("%w: nothing has happened for %s: %s", ErrEndless, r.stage.patience(), r.whoWaits())
			}
			if err := r.letTimePass(ctx, next); err != nil {
				return Record{}, err
			}
			continue
		}
		if !idle.IsZero() {
			idle, r.segment = time.Time{}, time.Now()
		}
		if err := r.take(ctx, next, i); err != nil {
			return Record{}, err
		}
	}
	if idle.IsZero() {
		r.endSegment()
	}
	return r.conclude(ctx)
}

// take does what was chosen.
func (r *run) take(ctx context.Context, next Next, i int) error {
	o := next.Options[i]
	if i != next.byDefault() {
		r.listed = len(r.chosen) + 1
	}
	if r.switchesTo(next, o) {
		r.switches++
	}
	r.chosen = append(r.chosen, o.Choice)
	if !o.Choice.IsStep() {
		return r.happen(ctx, o.Choice)
	}
	return r.send(ctx, o.Choice.Customer, false)
}

// switchesTo says whether a step goes to another customer although the last one could go on.
func (r *run) switchesTo(next Next, o Option) bool { return switches(next, o) }

func switches(next Next, o Option) bool {
	if !o.Choice.IsStep() {
		return false
	}
	for _, before := range slices.Backward(next.Past) {
		if !before.IsStep() {
			continue
		}
		if before.Customer == o.Choice.Customer {
			return false
		}
		return slices.ContainsFunc(next.Options, func(other Option) bool {
			return other.Choice.IsStep() && other.Choice.Customer == before.Customer && other.free()
		})
	}
	return false
}

func (r *run) note(e Entry) int {
	e.AtMS = sinceMS(r.begun)
	r.entries = append(r.entries, e)
	return len(r.entries) - 1
}

// observe keeps what both servers have after an entry.
func (r *run) observe(ctx context.Context, entry int) error {
	if !r.plan.Observe {
		return nil
	}
	s, err := r.rows(ctx)
	if err != nil {
		return err
	}
	s.Lock, s.TTLMS, s.Kept = r.lock.value, r.lock.ttl, r.lock.kept
	if r.owner != 0 {
		s.Holder = r.owner.String()
	}
	r.entries[entry].State = &s
	return nil
}

func (r *run) person(c Customer) *person { return r.people[c-'A'] }

func (r *run) requests() map[Customer]int {
	sent := map[Customer]int{}
	for _, p := range r.people {
		sent[p.customer] = p.sent - p.tries
	}
	return sent
}

func (r *run) customerOf(request string) string {
	for _, p := range r.people {
		if p.id == request {
			return p.customer.String()
		}
	}
	return "ordinary"
}

func (r *run) allEnded() bool {
	return !slices.ContainsFunc(r.people, func(p *person) bool { return p.state != ended })
}

// endSegment checks whether a lease may have ended although none was to pass. If Redis has lost the
// lock, the holder would learn it from a renewal, after a third of the lease at the earliest.
func (r *run) endSegment() {
	limit := r.stage.lease * 8 / 10
	if r.happened(Forget) || r.happened(FlushAll) || r.happened(Failover) {
		limit = r.stage.lease * 3 / 10
	}
	if took := time.Since(r.segment); r.leased && took > limit && r.spoiled == "" {
		r.spoiled = fmt.Sprintf("%s went by between two events, and the lease is %s", took.Round(time.Millisecond), r.stage.lease)
	}
}

// letTimePass is what happens when nobody can go on as things are: those who poll try again, and
// what is silent fails.
func (r *run) letTimePass(ctx context.Context, next Next) error {
	for _, o := range next.Options {
		if o.Choice.IsStep() && o.Retry {
			return r.send(ctx, o.Choice.Customer, true)
		}
	}
	for _, p := range r.people {
		if p.cut {
			p.cut = false
			p.shop.Reconnect()
			if p.state == inPeace {
				p.state, p.heard = moving, time.Now()
			}
			return r.settle(ctx)
		}
	}
	for _, p := range r.people {
		if p.state == onLock || p.state == onRow {
			p.state, p.heard = moving, time.Now()
		}
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	return r.look(ctx, 0, "")
}
