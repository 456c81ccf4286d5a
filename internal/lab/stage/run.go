package stage

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/declared"
)

type state int

// The states of a customer.
const (
	absent state = iota
	moving       // a request is under way, or the shop works
	atStep       // held before a step
	onRow        // its statement waits for a row
	onLock       // it waits for the lock, with no request under way
	cutOff       // its Redis is silent: what it has sent is under way
	ended
)

// buyer is a customer in a run.
type buyer struct {
	customer schedule.Customer
	id       string   // of its request
	lines    []uint64 // the items that it buys, in its order
	shop     *rig.TestbedShop
	state    state
	heard    time.Time
	arrived  time.Duration // of the machine's time in the run

	held   heldReport
	step   string
	retry  bool
	asked  map[string]bool // what it was held at before, with baskets
	counts map[string]int
	sent   int
	tries  int // of them those that were sent while time passed, and the lock was held
	flying int // the entry of the request under way, -1 for none

	first             string // the command with which a try of its lock begins
	tryFrom, tryUntil int    // the run's version when the try before this one, and this one, were made

	tx        []schedule.Statement // of its open transaction
	conn      uint64               // MySQL's id of the connection that has sent the last statement
	named     []schedule.Statement // that have taken locks of GET_LOCK, which it has not released
	lose, cut bool
	refused   bool // it has passed the point waiting, and has sent nothing since
	keptOut   bool // it has passed that, and nothing of it has come to MySQL since
	ordered   bool // its open transaction has inserted an order
	written   bool // its order is committed
	answer    string
}

// run is one run of a schedule on items of its own: one, or those of baskets.
type run struct {
	schema   schedule.Schema
	stage    *Stage
	slot     *slot
	plan     Plan
	of       declared.Strategy
	items    []uint64
	buyers   []*buyer
	messages chan any // of heldReport and answered

	begun, segment time.Time
	idle           time.Time     // since when nobody can go on, zero where somebody can
	passed         time.Duration // that was to pass, until now
	entries        []schedule.Entry
	chosen         schedule.Schedule
	listed         int // so many of the chosen have to be listed
	used           int // events

	lock      schedule.State // what Redis had at the last look
	owner     schedule.Customer
	has       schedule.Customer            // who has acquired last and not released, where the requests of the lock are not held
	ids       map[string]schedule.Customer // who is called so in the lock's value
	version   int
	changed   map[schedule.Customer]int // the version at the last change of the lock by each
	wrote     map[schedule.Customer]int // and of the stock, wherever the strategy keeps it
	holds     []schedule.Hold
	renewed   map[schedule.Customer]renewals
	resumed   map[schedule.Customer]time.Time // when its shop went on after a pause
	forgotten int                             // the entry by which Redis lost the lock, 0 for none, and if time was to pass since
	leased    bool                            // something was seen that a lease ends
	timed     bool                            // something was sent by which a lease can be kept where no look finds it
	spoiled   spoiledError                    // empty for a run that counts
	doubted   doubtedError                    // empty for one that counts with its lease
}

// spoiledError says why a run does not count: the machine was too slow for its lease.
type spoiledError string

func (e spoiledError) Error() string { return "the machine is too busy: " + string(e) }

// doubtedError says why a run is made again with a longer lease.
type doubtedError string

func (e doubtedError) Error() string { return "the machine may be too busy: " + string(e) }

// counted is the error of a run, or why it does not count.
func (r *run) counted(err error) error {
	switch {
	case r.spoiled != "":
		return r.spoiled
	case r.doubted != "":
		return r.doubted
	}
	return err
}

func (r *run) play(ctx context.Context, choose Chooser) (schedule.Record, error) {
	r.begun = time.Now()
	r.segment = r.begun
	for {
		if err := r.settle(ctx); err != nil {
			return schedule.Record{}, err
		}
		if r.allEnded() {
			break
		}
		r.withoutPolls()
		next := Next{Options: r.options(), Past: r.chosen, Requests: r.requests(), Why: r.why, entries: len(r.entries), oneShop: r.plan.OneShop}
		i, err := choose(next)
		if err != nil {
			r.endSegment() // what was to be next may have failed to come because the machine is slow
			return schedule.Record{}, r.counted(err)
		}
		if i == LetTimePass {
			if r.idle.IsZero() {
				r.endSegment()
				r.idle, r.forgotten = time.Now(), 0
			}
			if time.Since(r.idle) > r.slot.patience() {
				return schedule.Record{}, fmt.Errorf("%w: nothing has happened for %s: %s", ErrEndless, r.slot.patience(), r.whoWaits())
			}
			if err := r.letTimePass(ctx, next); err != nil {
				return schedule.Record{}, err
			}
			continue
		}
		if !r.idle.IsZero() {
			r.passed += time.Since(r.idle)
			r.idle, r.segment = time.Time{}, time.Now()
		}
		if err := r.take(ctx, next, i); err != nil {
			return schedule.Record{}, err
		}
	}
	if r.idle.IsZero() {
		r.endSegment()
	}
	record, err := r.conclude(ctx)
	if err != nil {
		return schedule.Record{}, err
	}
	return record, r.counted(nil)
}

// take does what was chosen.
func (r *run) take(ctx context.Context, next Next, i int) error {
	o := next.Options[i]
	if i != next.ByDefault() {
		r.listed = len(r.chosen) + 1
	}
	r.chosen = append(r.chosen, o.Choice)
	if !o.Choice.IsStep() {
		return r.happen(ctx, o.Choice)
	}
	return r.send(ctx, o.Choice.Customer, false)
}

func (r *run) note(e schedule.Entry) int {
	if len(r.items) > 1 && e.Sent != "" {
		e.Item = r.itemOf(e.Server, e.Sent)
	}
	e.AtMS = float64(time.Since(r.begun).Microseconds()) / 1000
	r.entries = append(r.entries, e)
	return len(r.entries) - 1
}

// itemOf returns the one of the run's items that a request names, from 1. It is 0 for none, and for several.
func (r *run) itemOf(server, text string) (item int) {
	form := `\bstock:%d\b`
	if server == labmode.MySQLServer {
		form = `\b%d\b`
	}
	for i, id := range r.items {
		if regexp.MustCompile(fmt.Sprintf(form, id)).MatchString(text) {
			if item != 0 {
				return 0
			}
			item = i + 1
		}
	}
	return item
}

// observe keeps what both servers have after an entry.
func (r *run) observe(ctx context.Context, entry int) error {
	if !r.plan.Observe {
		return nil
	}
	now, err := r.servers(ctx)
	if len(r.items) > 1 {
		possession := schedule.Possession{Items: len(r.items)}
		for _, e := range r.entries {
			possession.After(e)
		}
		possession.Put(&now)
	}
	r.entries[entry].State = &now
	return err
}

// servers is what MySQL has now, and what Redis had at the last look.
func (r *run) servers(ctx context.Context) (schedule.State, error) {
	now := r.lock
	if r.owner != 0 {
		now.Holder = r.owner.String()
	}
	store := r.slot.database.store
	if r.of.State.Remaining != "" {
		if err := store.Pool().QueryRowContext(ctx, r.of.State.Remaining, r.items[0]).Scan(&now.Elsewhere); err != nil {
			return now, fmt.Errorf("look at the strategy's own rows: %w", err)
		}
	}
	for i, id := range r.items {
		item, err := store.Read(ctx, id)
		if err != nil {
			return now, err
		}
		orders, err := store.ItemOrders(ctx, id)
		if err != nil {
			return now, err
		}
		nth := 0
		if len(r.items) > 1 {
			nth = i + 1
			now.Stocks = append(now.Stocks, item.Stock)
		}
		if i == 0 {
			now.Stock, now.Fence = item.Stock, item.Fence
		}
		for _, o := range orders {
			if o.CancelledAt == nil { // it stands
				now.Orders = append(now.Orders, schedule.Order{ID: o.ID, Customer: r.customerOf(o.RequestID), Item: nth, Read: o.StockRead, Written: o.StockWritten})
			}
		}
	}
	if replica := r.slot.database.replica; replica != nil && r.chosen.Has(schedule.Lag) {
		item, err := replica.Read(ctx, r.items[0])
		if err != nil {
			return now, err
		}
		now.Replica = &item.Stock
	}
	if r.of.State.Whole {
		now.Stock, now.Elsewhere = now.Stock+now.Elsewhere, 0
	}
	return now, nil
}

func (r *run) buyer(c schedule.Customer) *buyer { return r.buyers[c-'A'] }

func (r *run) requests() map[schedule.Customer]int {
	sent := map[schedule.Customer]int{}
	for _, b := range r.buyers {
		sent[b.customer] = b.sent - b.tries
	}
	return sent
}

func (r *run) customerOf(request string) string {
	for _, b := range r.buyers {
		if b.id == request {
			return b.customer.String()
		}
	}
	return schedule.OrdinaryCustomer
}

func (r *run) allEnded() bool {
	return !slices.ContainsFunc(r.buyers, func(b *buyer) bool { return b.state != ended })
}

// endSegment checks whether a lease may have ended although none was to pass. If Redis has lost the lock,
// the holder would learn it from a renewal, after a third of the lease at the earliest. [run.toldOfLoss]
// sees that, unless the requests of the lock are not held.
func (r *run) endSegment() {
	limit := r.slot.lease * 8 / 10
	if r.of.AtPoints() && r.forgotten > 0 {
		limit = r.slot.lease * 3 / 10
	}
	if took := time.Since(r.segment); r.leased && took > limit && r.spoiled == "" {
		r.spoiled = spoiledError(fmt.Sprintf("%s went by between two events, and the lease is %s", took.Round(time.Millisecond), r.slot.lease))
	}
}

// waited notes that so much time passed as on any machine. What passes while nobody can go on is noted at
// its end.
func (r *run) waited(d time.Duration) {
	r.forgotten = 0
	if r.idle.IsZero() {
		r.passed += d
	}
}

// machineTime is how much of the run until now was not to pass: the machine needed it.
func (r *run) machineTime() time.Duration {
	took := time.Since(r.begun) - r.passed
	if !r.idle.IsZero() {
		took -= time.Since(r.idle)
	}
	return took
}

// answeredBusy checks whether a customer gave up because the machine was slow. Who waits for others does so
// for half of the time at least.
func (r *run) answeredBusy(b *buyer) {
	if took := r.machineTime() - b.arrived; took > r.slot.wait/2 && r.doubted == "" {
		r.doubted = doubtedError(fmt.Sprintf("%s was answered with %s, and of the %s that it waits the machine took %s",
			b.customer, b.answer, r.slot.wait, took.Round(time.Millisecond)))
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
	for _, b := range r.buyers {
		if b.cut {
			b.cut = false
			b.shop.Reconnect()
			if b.state == cutOff {
				b.state, b.heard = moving, time.Now()
			}
			return r.settle(ctx)
		}
	}
	for _, b := range r.buyers {
		if b.state == onLock || b.state == onRow {
			b.state, b.heard = moving, time.Now()
		}
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	return r.look(ctx, 0, "")
}
