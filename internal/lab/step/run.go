package step

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/words"
	"stocklock/internal/shop/labmode"
)

// run is one run of a schedule, on items of its own.
type run struct {
	source
	plan     Plan
	schema   schedule.Schema
	units    int64 // of each item
	buyers   []*buyer
	messages chan any // for [source.handle]
	log
	watched
	pace
}

// log is what a run's record is made of.
type log struct {
	begun     time.Time
	entries   []schedule.Entry
	chosen    schedule.Schedule
	used      int                 // events
	made      int                 // steps; polls of a lock do not count
	eventAt   time.Time           // when the last one was over
	takenAway []schedule.Customer // see [schedule.Record]
	behind    string
	leaves    bool
	blind     bool // a sale keeps counts waiting
}

// watched is what looks at the servers have shown: see look.go.
type watched struct {
	unseen  bool              // the requests of the lock are not held
	has     schedule.Customer // who has acquired last and not released, where they are not
	lock    schedule.State    // what Redis had at the last look
	stirred bool              // the sales of a described service have changed something there since the look before
	keeps   bool              // the sales have something in Redis; not known where no event is about that
	owner   schedule.Customer
	ids     map[string]schedule.Customer // who is called so in the lock's value
	holds   []schedule.Hold
	version int
	changed map[schedule.Customer]int // the version at the last change of the lock by each
	wrote   map[schedule.Customer]int // and of the stock, wherever the strategy keeps it
}

// source is where the requests of one run come from, and what is done to it: the shops of this repository, or
// the processes of a described service.
type source interface {
	// arrive has a customer send its request. Messages say what comes of it.
	arrive(ctx context.Context, b *buyer)
	// handle takes in a message. It calls hold, answered and replied.
	handle(ctx context.Context, message any) error
	// goesOn says whether a customer who has its answer can have more to send.
	goesOn(b *buyer) bool
	// listen adds what is known of a customer who is silent, other than what MySQL works on.
	listen(ctx context.Context, b *buyer, s *silence) error
	// atRest is called when all are at rest. It reports whether it has sent somebody on the way.
	atRest(ctx context.Context) (bool, error)
	// passTime lets time pass where nobody can go on, and reports whether that is all: before somebody polls,
	// and again where nobody does.
	passTime(ctx context.Context, polled bool) (bool, error)

	// pointless says whether the next step repeats a try that is as vain as the one before.
	pointless(b *buyer) bool
	// touches is what the next step of a customer touches.
	touches(b *buyer) []schedule.Touch
	// canHappen says whether an event can change anything now, and canHit whether it can hit a customer.
	canHappen(e schedule.Event) bool
	canHit(e schedule.Event, b *buyer) bool
	eventTouches(e schedule.Event, b *buyer) []schedule.Touch
	// inapplicable says why an event says nothing here, and nothing where it does.
	inapplicable(e schedule.Event) words.Text

	// sends and sent are called before a request goes, and when all are at rest after it.
	sends(b *buyer, h *held)
	sent(ctx context.Context, b *buyer, h *held) error
	inject(ctx context.Context, c schedule.Choice) error
	// passLease lets a lease end, of a customer or of any.
	passLease(ctx context.Context, c schedule.Choice) error
	// killed returns the connections to MySQL whose end frees something.
	killed(ctx context.Context, b *buyer) (conns []uint64, err error)

	// lookAtLock is what Redis has, and whether the lock has changed hands.
	lookAtLock(ctx context.Context, by schedule.Customer) (now schedule.State, changed bool, err error)
	// wakes says whether one who waits for the lock can go on.
	wakes(b *buyer) bool
	// count is what the servers have.
	count(ctx context.Context) (schedule.State, error)
	db() *sql.DB

	// conclude ends a run whose customers have all ended.
	conclude(ctx context.Context) (schedule.Record, error)
}

// process is what a customer buys at.
type process interface {
	Pause() error
	Resume() error
	Kill() error
}

// play makes a run. A run that fails, or shows something else, because the machine is slow, has that as its error.
func (r *run) play(ctx context.Context, choose explore.Chooser) (schedule.Record, error) {
	r.begun = time.Now()
	r.segment = r.begun
	record, err := explore.Play(ctx, r, func(next explore.Next) (int, error) {
		i, err := choose(next)
		if err != nil {
			r.endSegment() // what was to be next may have failed to come because the machine is slow
			err = r.counted(err)
		}
		return i, err
	})
	if err != nil {
		return schedule.Record{}, err
	}
	return record, r.counted(nil)
}

// Next waits until all are at rest.
func (r *run) Next(ctx context.Context) (next explore.Next, over bool, err error) {
	for again := true; again; {
		if err := r.settle(ctx); err != nil {
			return next, false, err
		}
		if again, err = r.atRest(ctx); err != nil {
			return next, false, err
		}
	}
	if !slices.ContainsFunc(r.buyers, func(b *buyer) bool { return b.state != ended }) {
		return next, true, nil
	}
	next = explore.Next{Options: r.options(), Why: func(c schedule.Choice) error { return r.why(c) }, Arriving: r.arriving(), Entries: len(r.entries)}
	for _, b := range r.buyers {
		if b.state == ended {
			next.Ended = append(next.Ended, b.customer)
		}
		if b.state == onRow && strings.Contains(strings.ToUpper(b.flying.Text), "GET_LOCK(") {
			next.Timed = append(next.Timed, b.customer)
		}
	}
	return next, false, nil
}

// Record concludes the run.
func (r *run) Record(ctx context.Context) (schedule.Record, error) {
	if r.idle.IsZero() {
		r.endSegment()
	}
	return r.conclude(ctx)
}

// Take does what was chosen.
func (r *run) Take(ctx context.Context, next explore.Next, i int) error {
	if !r.idle.IsZero() {
		r.passed += time.Since(r.idle)
		r.idle = time.Time{}
		r.beginSegment()
	}
	o := next.Options[i]
	r.meets(o.Choice)
	r.chosen = append(r.chosen, o.Choice)
	if !o.Choice.IsStep() {
		return r.happen(ctx, o.Choice)
	}
	return r.send(ctx, o.Choice.Customer, false)
}

// rowPatience is for how long nobody may be able to go on while a statement waits: by default, InnoDB ends that after 50 s.
const rowPatience = time.Minute

func (r *run) endless(idle time.Duration) bool {
	waits := slices.ContainsFunc(r.buyers, func(b *buyer) bool { return b.state == onRow })
	return idle > r.patience && !(waits && idle < rowPatience)
}

// Pass is what happens when nobody can go on as things are: those who poll try again, and what is
// silent fails.
func (r *run) Pass(ctx context.Context, next explore.Next) error {
	if r.idle.IsZero() {
		r.endSegment()
		r.idle, r.forgotten = time.Now(), 0
	}
	if idle := time.Since(r.idle); r.endless(idle) {
		endless := ErrEndless
		if r.plan.MaxSilence > 0 {
			endless = ErrSilent
		}
		return fmt.Errorf("%w: nothing has happened for %s: %s", endless, idle.Round(time.Second), r.whoWaits())
	}
	if done, err := r.passTime(ctx, false); done || err != nil {
		return err
	}
	for _, o := range next.Options {
		if o.Choice.IsStep() && o.Retry {
			return r.send(ctx, o.Choice.Customer, true)
		}
	}
	if done, err := r.passTime(ctx, true); done || err != nil {
		return err
	}
	for _, b := range r.buyers {
		if b.waits() {
			b.state, b.heard = moving, time.Now()
		}
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	return r.look(ctx, 0, "")
}

// meets notes behind which request the event happens, or the second customer comes. What a request whose answer is
// lost will leave is not known yet.
func (r *run) meets(c schedule.Choice) {
	if r.behind != "" || c.IsStep() && c.Customer == r.buyers[0].customer {
		return
	}
	r.behind = append(slices.Clone(r.chosen), c).Behind()
	r.leaves = r.keeps || r.lock.Locked() || c.Event == schedule.Lose || slices.ContainsFunc(r.buyers, func(b *buyer) bool { return len(b.holds()) > 0 })
}

func (r *run) note(e schedule.Entry) int {
	e.AtMS = float64(time.Since(r.begun).Microseconds()) / 1000
	r.entries = append(r.entries, e)
	return len(r.entries) - 1
}

// observe keeps what both servers have after an entry. It would wait for tables that a customer has locked, or
// waits for.
func (r *run) observe(ctx context.Context, entry int) error {
	locked := func(b *buyer) bool {
		return slices.ContainsFunc(b.holds(), locksTables) || b.flying != nil && b.flying.Server == labmode.MySQLServer && !ofRows.MatchString(b.flying.Text)
	}
	if !r.plan.Observe || r.blind || slices.ContainsFunc(r.buyers, locked) {
		return nil
	}
	looking, cancel := context.WithTimeout(ctx, r.lookLimit)
	defer cancel()
	now, err := r.count(looking)
	if err != nil && looking.Err() != nil && ctx.Err() == nil { // what a sale has locked keeps the count waiting
		r.blind = true
		return nil
	}
	r.entries[entry].State = &now
	return err
}

// ofRows are statements that leave other readers of a table alone.
var ofRows = regexp.MustCompile(`(?i)^(?:SELECT|INSERT|UPDATE|DELETE|REPLACE|COMMIT|ROLLBACK|DO|SET|WITH|CALL|XA)\b`)

func (r *run) buyer(c schedule.Customer) *buyer { return r.buyers[c-'A'] }

func (r *run) customerOf(id string) string {
	for _, b := range r.buyers {
		if b.id == id {
			return b.customer.String()
		}
	}
	return schedule.OrdinaryCustomer
}

func newRun(p Plan, schema schedule.Schema, units int64, pace pace) *run {
	pace.renewed, pace.resumed = map[schedule.Customer]renewals{}, map[schedule.Customer]time.Time{}
	return &run{plan: p, schema: schema, units: units, pace: pace, messages: make(chan any, 4096),
		watched: watched{lock: noLock, ids: map[string]schedule.Customer{}, changed: map[schedule.Customer]int{}, wrote: map[schedule.Customer]int{}}}
}

// outcome is what the customers were answered, before anything is counted.
func (r *run) outcome() schedule.Outcome {
	o := schedule.Outcome{Stock: r.units, Answers: map[string]string{}}
	for _, b := range r.buyers {
		o.Answers[b.customer.String()] = b.answer
	}
	return o
}

// lookAtEnd looks at both servers, and puts the orders into the outcome.
func (r *run) lookAtEnd(ctx context.Context, o *schedule.Outcome) (schedule.State, error) {
	if err := r.look(ctx, 0, ""); err != nil {
		return schedule.State{}, err
	}
	end, err := r.count(ctx)
	o.Orders = end.Orders
	return end, err
}

func (r *run) record(o schedule.Outcome) schedule.Record {
	return schedule.Record{
		Strategy: r.plan.Strategy, Customers: len(r.buyers), LeaseMS: r.lease.Milliseconds(),
		Entries: r.entries, Outcome: o, Played: r.chosen, Holds: r.holds, TakenAway: r.takenAway, Behind: r.behind, Leaves: r.leaves,
	}
}
