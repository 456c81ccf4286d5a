package schedule

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/shop/labmode"
)

// Plan is what is played, and what may be chosen in it.
type Plan struct {
	Strategy  string
	Customers int
	// Events may happen, MaxEvents of them in one run.
	Events    []Event
	MaxEvents int
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
	flying int // the entry of the request under way, -1 for none

	first             string // the command with which a try of its lock begins
	tryFrom, tryUntil int    // the run's version when the try before this one, and this one, were made

	rowHeld, lose, cut bool
	answer             string
}

// run is one run of a schedule on one item.
type run struct {
	stage  *Stage
	lane   *lane
	plan   Plan
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
	ids     map[string]Customer // who is called so in the lock's value
	version int
	changed map[Customer]int // the version at the last change by each
	tenures []tenure
	locked  bool // a lock was seen
	spoiled string
}

// answered is the shop's answer to a customer.
type answered struct {
	customer Customer
	answer   string
}

// How long to wait for what, beyond which a run has failed.
const (
	settleLimit = 8 * time.Second
	lookAfter   = 3 * time.Millisecond  // silence after which a row is looked at
	lockAfter   = 20 * time.Millisecond // and the lock: a shop may be at work
)

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
		next := Next{Options: r.options(), Past: r.chosen, Why: r.why, entries: len(r.entries)}
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
				return Record{}, fmt.Errorf("nothing has happened for %s: %s", r.stage.patience(), r.whoWaits())
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

// send lets a customer's request go, and waits until all are at rest again. A quiet one leaves no
// entry, unless it changes the lock.
func (r *run) send(ctx context.Context, c Customer, quiet bool) error {
	p := r.person(c)
	if p.state == absent {
		if err := r.arrive(ctx, p); err != nil {
			return err
		}
	}
	if p.state == ended && p.sent == 0 {
		return fmt.Errorf("%s was answered with %s before its first step", c, p.answer)
	}
	if p.state != atStep {
		return fmt.Errorf("%s was to send %s and is not held at it", c, p.step)
	}
	request := Request{Server: p.held.Server, Text: p.held.Text, Tx: p.held.Tx}
	p.flying = r.note(Entry{Choice: Choice{Customer: c, Step: p.step}.String(), Customer: c.String(),
		Server: request.Server, Sent: request.Text, Request: &request, customer: c})
	p.state, p.heard = moving, time.Now()
	p.sent++
	entry := p.flying
	p.held.release(p.lose)
	p.lose = false
	if err := r.settle(ctx); err != nil {
		return err
	}
	before := r.lock
	if err := r.look(ctx, c, ""); err != nil {
		return err
	}
	if quiet && r.lock.value == before.value && r.lock.present() == before.present() && p.flying < 0 {
		r.entries = slices.Delete(r.entries, entry, entry+1)
		for _, other := range r.people {
			if other.flying > entry {
				other.flying--
			}
		}
		return nil
	}
	if err := r.recheck(ctx); err != nil {
		return err
	}
	return r.observe(ctx, entry)
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
	s, err := lookAtRow(ctx, r.stage.store.Pool(), r.item, r.customerOf)
	if err != nil {
		return err
	}
	s.Lock, s.TTLMS = r.lock.value, r.lock.ttl
	if r.owner != 0 {
		s.Holder = r.owner.String()
	}
	r.entries[entry].State = &s
	return nil
}

func (r *run) person(c Customer) *person { return r.people[c-'A'] }

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

// arrive sends a customer to its shop, and waits until it is held at its first step.
func (r *run) arrive(ctx context.Context, p *person) error {
	p.state, p.heard = moving, time.Now()
	go func() {
		answer := r.stage.buy(ctx, p.shop.URL, r.item, r.plan.Strategy, p.id)
		select {
		case r.inbox <- answered{p.customer, answer}:
		case <-ctx.Done():
		}
	}()
	return r.settle(ctx)
}

// settle waits until nobody is on the way: each customer is held at a step, has ended, or is seen
// to wait.
func (r *run) settle(ctx context.Context) error {
	limit := time.Now().Add(settleLimit)
	for {
		select { // first what is there
		case m := <-r.inbox:
			r.handle(m)
			continue
		default:
		}
		if !slices.ContainsFunc(r.people, func(p *person) bool { return p.state == moving }) {
			return nil
		}
		select {
		case m := <-r.inbox:
			r.handle(m)
		case <-time.After(lookAfter):
			for _, p := range r.people {
				if p.state == moving {
					if err := r.probe(ctx, p); err != nil {
						return err
					}
				}
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if time.Now().After(limit) {
			return fmt.Errorf("no rest within %s: %s", settleLimit, r.whoWaits())
		}
	}
}

// handle takes in what a shop reports.
func (r *run) handle(m any) {
	if a, ok := m.(answered); ok {
		p := r.person(a.customer)
		p.answer = a.answer
		if p.flying >= 0 && a.answer != noAnswer {
			return // the report on its last request comes another way, and is slower
		}
		if p.flying >= 0 {
			r.entries[p.flying].Note = "no answer came"
		}
		p.state, p.rowHeld, p.flying = ended, false, -1
		return
	}
	report := m.(heldReport)
	i := slices.IndexFunc(r.people, func(p *person) bool { return p.id == report.Sale })
	switch {
	case i < 0 || report.Own:
		if r.plan.Observe {
			r.note(Entry{Own: true, Customer: r.customerOfShop(report.shop), Server: report.Server, Sent: report.Text, Answer: report.Answer})
		}
	case report.Hold != 0:
		r.hold(r.people[i], report)
	default:
		r.done(r.people[i], report)
	}
}

func (r *run) customerOfShop(name string) string {
	for _, p := range r.people {
		if strings.HasSuffix(name, fmt.Sprintf("-%d", p.customer-'A'+1)) {
			return p.customer.String()
		}
	}
	return ""
}

func (r *run) hold(p *person, report heldReport) {
	p.state, p.held, p.heard = atStep, report, time.Now()
	p.counts[report.Name]++
	p.step = stepName(report.Name, p.counts[report.Name])
	begin := report.Name
	if words := strings.Fields(report.Text); len(words) > 1 && words[0] == "EVALSHA" {
		begin += " " + words[1]
	}
	if p.first == "" {
		p.first = begin
	}
	p.retry = false
	if begin == p.first && report.Phase == "" && report.Server != labmode.MySQLServer {
		p.retry = p.counts[report.Name] > 1
		p.tryFrom, p.tryUntil = p.tryUntil, r.version
	}
}

// pointless says whether the step repeats a try although nobody else has changed the lock, and no
// lease has passed, since the try before was made. Made, and not sent: a try has its time in it.
func (r *run) pointless(p *person) bool {
	if !p.retry {
		return false
	}
	for by, version := range r.changed {
		if by != p.customer && version > p.tryFrom {
			return false
		}
	}
	return true
}

func (r *run) done(p *person, report heldReport) {
	p.heard = time.Now()
	if p.flying < 0 {
		return
	}
	e := &r.entries[p.flying]
	e.Answer = report.Answer
	if report.Lost {
		e.Note = "the answer was lost"
	}
	failed := strings.HasPrefix(report.Answer, "error: ")
	switch {
	case report.Name == "commit" || report.Name == "rollback":
		p.rowHeld = false
	case e.Request.locksRow() && e.Request.Tx && !failed:
		p.rowHeld = true
	}
	p.flying = -1
	switch {
	case p.answer != "":
		p.state, p.rowHeld = ended, false
	case p.state != atStep:
		p.state = moving
	}
}

// probe finds out why a customer is silent.
func (r *run) probe(ctx context.Context, p *person) error {
	silent := time.Since(p.heard)
	switch {
	case p.flying >= 0 && p.cut && r.entries[p.flying].Server != labmode.MySQLServer:
		p.state = inPeace
		r.entries[p.flying].Blocked = "Redis is silent"
	case p.flying >= 0 && r.entries[p.flying].Request.locksRow():
		holder := slices.IndexFunc(r.people, func(other *person) bool { return other != p && other.rowHeld })
		if holder < 0 {
			return nil
		}
		held, err := rowIsHeld(ctx, r.stage.store.Pool(), r.item)
		if err == nil && held && p.state == moving {
			p.state = onRow
			r.entries[p.flying].Blocked = fmt.Sprintf("the row is held by %s's transaction", r.people[holder].customer)
		}
		return err
	case p.flying < 0 && silent > lockAfter:
		look, err := lookAtLock(ctx, r.lane.redis, r.item)
		if err != nil {
			return err
		}
		if owner := r.ownerOf(look); look.present() && owner != p.customer || silent > r.stage.lease {
			p.state = onLock
			if look.present() && owner != 0 {
				r.blockLast(p, fmt.Sprintf("the lock is held by %s", owner))
			} else if look.present() {
				r.blockLast(p, "the lock is held")
			}
		}
	}
	return nil
}

func (r *run) blockLast(p *person, by string) {
	for i := range slices.Backward(r.entries) {
		if r.entries[i].customer == p.customer {
			r.entries[i].Blocked = by
			return
		}
	}
}

// recheck puts everyone on the way again whose reason to wait is gone.
func (r *run) recheck(ctx context.Context) error {
	again := false
	for _, p := range r.people {
		switch {
		case p.state == onRow && !slices.ContainsFunc(r.people, func(other *person) bool { return other != p && other.rowHeld }):
			p.state, p.heard, again = moving, time.Now(), true
		case p.state == onLock && (!r.lock.present() || r.owner == p.customer):
			p.state, p.heard, again = moving, time.Now(), true
		}
	}
	if !again {
		return nil
	}
	begun := time.Now()
	if err := r.settle(ctx); err != nil {
		return err
	}
	if time.Since(begun) > r.stage.lease/5 {
		r.segment = time.Now() // a waiter that found out by its heartbeat takes that long on any machine
	}
	return r.look(ctx, 0, "")
}

func (r *run) whoWaits() string {
	var who []string
	for _, p := range r.people {
		if p.state == ended || p.state == absent {
			continue
		}
		what := map[state]string{moving: "works after", atStep: "is held at", onRow: "waits for a row with", onLock: "waits for the lock after", inPeace: "has no answer to"}[p.state]
		who = append(who, fmt.Sprintf("%s %s %s", p.customer, what, p.step))
	}
	return strings.Join(who, ", ")
}

// endSegment looks at whether a lease may have ended although none was to pass. Where Redis has
// lost the lock, a renewal would tell the holder, which is no sooner than a third of the lease.
func (r *run) endSegment() {
	limit := r.stage.lease * 8 / 10
	if r.happened(Forget) || r.happened(FlushAll) || r.happened(Failover) {
		limit = r.stage.lease * 3 / 10
	}
	if took := time.Since(r.segment); r.locked && took > limit && r.spoiled == "" {
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

// why says why a choice cannot be.
func (r *run) why(c Choice) string {
	cannot := func(format string, args ...any) string {
		return fmt.Sprintf("%s cannot be here: ", c) + fmt.Sprintf(format, args...)
	}
	if c.Customer == 0 {
		return cannot("everyone has ended")
	}
	if int(c.Customer-'A') >= len(r.people) {
		return fmt.Sprintf("%s: there is no customer %s: this run has %s to %s", c, c.Customer, r.people[0].customer, r.people[len(r.people)-1].customer)
	}
	p := r.person(c.Customer)
	switch {
	case p.state == ended:
		return cannot("%s has ended: it was answered with %s", p.customer, p.answer)
	case !c.IsStep() && c.Event == Arrive:
		return cannot("%s has come already", p.customer)
	case !c.IsStep() && p.state == absent:
		return cannot("%s has not come yet", p.customer)
	case p.state == absent:
		return cannot("%s's next step is %s", p.customer, Choice{Customer: p.customer, Step: r.stage.firstStep(r.plan.Strategy).step})
	case p.state == atStep:
		return cannot("%s's next step is %s", p.customer, Choice{Customer: p.customer, Step: p.step})
	case p.state == onRow:
		return cannot("%s waits for the row", p.customer)
	case p.state == onLock:
		return cannot("%s waits for the lock", p.customer)
	}
	return cannot("%s waits for Redis", p.customer)
}
