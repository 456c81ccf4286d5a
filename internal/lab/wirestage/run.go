package wirestage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/service"
	"stocklock/internal/lab/stage"
	"stocklock/internal/lab/wire"
)

type state int

// The states of a customer.
const (
	moving  state = iota // a request is under way, or the process works
	onRow                // MySQL makes its statement wait
	onRedis              // Redis makes its command wait
	onPush               // its process listens to a channel, and is silent
	absent               // it comes after the event: see [Stage.InTime]
	ended
)

type connection = *wire.Conn

// held is a request that waits in a proxy, or is under way.
type held struct {
	*wire.Exchange
	release chan bool // whether it may go to the server
}

// buyer is a customer in a run.
type buyer struct {
	customer schedule.Customer
	process  *service.Process
	sale     service.Sale
	state    state
	heard    time.Time
	queue    []*held // what it waits with; the first is its next step
	flying   *held   // what the server works on, nil for nothing
	entry    int     // of that
	sent     int
	counts   map[string]int
	tries    []try // of what it has sent since another customer made a step
	tx       map[connection][]schedule.Statement
	named    []schedule.Statement // that have taken locks of GET_LOCK, which it has not released
	reply    *service.Reply
	done     chan struct{} // closed when its request has ended

	mu   sync.Mutex // guards lose, which the proxies read
	lose bool
}

// try is a request that was answered, as a poll is recognized by it.
type try struct {
	what    string
	nothing bool // it has changed nothing: it was refused, or has only read
	failed  bool // the answer was nil, 0 or nothing
}

// run is one run of a schedule on an item of its own.
type run struct {
	stage       *Stage
	plan        stage.Plan
	item        int64
	buyers      []*buyer
	looked      func(*run) error
	settleLimit time.Duration

	messages chan any      // of *held, answered, replied, pushed and closed
	over     chan struct{} // closed when the run holds nothing any more

	begun   time.Time
	entries []schedule.Entry
	chosen  schedule.Schedule
	listed  int // so many of the chosen have to be listed
	used    int // events
	version int

	before map[string]key // what Redis had at the start
	main   string         // the key of the lock, empty before a customer has taken one
	lock   schedule.State // what it was at the last look
	owner  schedule.Customer
	holds  []schedule.Hold

	mu     sync.Mutex              // guards the rest
	held   map[*wire.Exchange]bool // the requests of sales that are held or under way
	busy   []int                   // how many of them each customer has
	made   map[string]bool         // the keys that came with the lock
	inSale map[connection]bool     // a statement of a sale was sent since the last transaction ended
}

// The messages of proxies and of customers.
type (
	answered struct{ *held }
	replied  struct {
		customer schedule.Customer
		reply    service.Reply
	}
	pushed struct{ process int }
	closed struct {
		conn *wire.Conn
		inTx bool
	}
)

// tap holds what the service sends during a run.
type tap struct{ *run }

// Sent passes what belongs to no sale, and holds the rest. A request about the keys of the lock, while the
// sale itself is held, is a renewal.
func (t tap) Sent(x *wire.Exchange) bool {
	r := t.run
	if x.Process >= len(r.buyers) || r.stage.on.IsBackground(r.stage.probe, x.Text) {
		return true
	}
	r.mu.Lock()
	if ends := x.Server == wire.MySQL && (x.Text == "COMMIT" || x.Text == "ROLLBACK"); ends && !r.inSale[x.Conn] {
		r.mu.Unlock()
		return true // the end of a transaction that belongs to no sale
	} else if x.Server == wire.MySQL {
		r.inSale[x.Conn] = !ends
	}
	renewal := x.Server == wire.Redis && r.busy[x.Process] > 0 && slices.ContainsFunc(strings.Fields(x.Text), func(word string) bool { return r.made[word] })
	if !renewal {
		r.busy[x.Process]++
		r.held[x] = true
	}
	r.mu.Unlock()
	if renewal {
		return true
	}
	h := &held{x, make(chan bool, 1)}
	r.messages <- h
	select {
	case goes := <-h.release:
		return goes
	case <-r.over:
		return true
	}
}

func (t tap) Answered(x *wire.Exchange) bool {
	r := t.run
	r.mu.Lock()
	ofSale := r.held[x]
	if delete(r.held, x); ofSale {
		r.busy[x.Process]--
	}
	r.mu.Unlock()
	if !ofSale {
		return true
	}
	b := r.buyers[x.Process]
	b.mu.Lock()
	lost := b.lose
	b.lose = false
	b.mu.Unlock()
	r.tell(answered{&held{Exchange: x}})
	return !lost
}

func (t tap) Pushed(c *wire.Conn, _ string) { t.tell(pushed{c.Process}) }

func (t tap) Closed(c *wire.Conn, inTx bool) { t.tell(closed{c, inTx}) }

// tell passes a message on, for as long as the run takes any.
func (r *run) tell(m any) {
	select {
	case r.messages <- m:
	case <-r.over:
	}
}

// patience is how long nobody may be able to go on.
const patience = 20 * time.Second

func (r *run) play(ctx context.Context, choose stage.Chooser) (schedule.Record, error) {
	r.begun = time.Now()
	for i, b := range r.buyers {
		if b.state = absent; i == 0 || !r.stage.late {
			r.arrive(ctx, b)
		}
	}
	var idle time.Time
	for {
		if err := r.settle(ctx); err != nil {
			return schedule.Record{}, err
		}
		if !slices.ContainsFunc(r.buyers, func(b *buyer) bool { return b.state != ended }) {
			break
		}
		if last := r.buyers[len(r.buyers)-1]; last.state == absent && (r.used > 0 || r.buyers[0].state == ended) {
			r.arrive(ctx, last)
			continue
		}
		next := stage.Next{Options: r.options(), Past: r.chosen, Requests: r.requests(), Why: r.why}
		i, err := choose(next)
		if err != nil {
			return schedule.Record{}, err
		}
		if i == stage.LetTimePass {
			if idle.IsZero() {
				idle = time.Now()
			}
			if time.Since(idle) > patience {
				return schedule.Record{}, fmt.Errorf("nothing has happened for %s: %s", patience, r.whoWaits())
			}
			if err := r.letTimePass(ctx, next); err != nil {
				return schedule.Record{}, err
			}
			continue
		}
		idle = time.Time{}
		o := next.Options[i]
		if i != next.ByDefault() {
			r.listed = len(r.chosen) + 1
		}
		r.chosen = append(r.chosen, o.Choice)
		if o.Choice.IsStep() {
			err = r.send(ctx, r.buyer(o.Choice.Customer), false)
		} else {
			err = r.happen(ctx, o.Choice)
		}
		if err != nil {
			return schedule.Record{}, err
		}
		if len(r.chosen) > maxSteps {
			return schedule.Record{}, fmt.Errorf("the sales have sent %d requests and go on", maxSteps)
		}
	}
	return r.conclude(ctx)
}

// arrive sends a customer to its process.
func (r *run) arrive(ctx context.Context, b *buyer) {
	b.state, b.heard, b.done = moving, time.Now(), make(chan struct{})
	go func() {
		reply := r.stage.on.Buy(ctx, b.process, b.sale)
		close(b.done)
		r.tell(replied{b.customer, reply})
	}()
}

// maxSteps bounds a run.
const maxSteps = 200

func (r *run) buyer(c schedule.Customer) *buyer { return r.buyers[c-'A'] }

// end lets go what is held, and waits until both requests have ended.
func (r *run) end() {
	close(r.over)
	for _, b := range r.buyers {
		if !r.stage.dirty[b.customer-'A'] {
			_ = b.process.Resume()
		}
		if b.state != absent {
			<-b.done
		}
	}
}

func (r *run) requests() map[schedule.Customer]int {
	sent := map[schedule.Customer]int{}
	for _, b := range r.buyers {
		sent[b.customer] = b.sent
	}
	return sent
}

// step is a customer's next step, as a schedule has it.
func (b *buyer) step() string { return schedule.StepName(b.queue[0].Name, b.counts[b.queue[0].Name]+1) }

// atStep says whether a customer can make a step.
func (b *buyer) atStep() bool { return b.state != ended && b.flying == nil && len(b.queue) > 0 }

// options are the ways in which the run can go on.
func (r *run) options() []stage.Option {
	var all []stage.Option
	for i, b := range r.buyers {
		if b.atStep() {
			all = append(all, stage.Option{
				Choice: schedule.Choice{Customer: b.customer, Step: b.step()}, Touches: r.schema().StepTouches(i, r.parties()),
				Retry: r.pointless(b), RowHeld: r.schema().IsHeld(i, r.parties()),
			})
		}
		if b.sent == 0 && !r.plan.Everything {
			break // customers are alike: the second one never begins
		}
	}
	if r.used < r.plan.MaxEvents {
		for _, e := range r.plan.Events {
			all = append(all, r.eventOptions(e)...)
		}
	}
	return all
}

func (r *run) schema() schedule.Schema { return r.stage.schema }

// parties are the customers as the order of their steps depends on them.
func (r *run) parties() []schedule.Party {
	all := make([]schedule.Party, len(r.buyers))
	for i, b := range r.buyers {
		all[i] = schedule.Party{AtStep: b.atStep(), Waiting: b.state == onRow, Held: b.holds()}
		switch {
		case b.flying != nil:
			all[i].Next = b.request(b.flying)
		case len(b.queue) > 0:
			all[i].Next = b.request(b.queue[0])
		}
	}
	return all
}

func (b *buyer) holds() (all []schedule.Statement) {
	for _, of := range b.tx {
		all = append(all, of...)
	}
	return append(all, b.named...)
}

// request is what a customer sends, as the table of independence reads it. What it does after another one's
// answer was lost is not known.
func (b *buyer) request(h *held) schedule.Request {
	q := schedule.Request{Server: h.Server, Text: h.Text, Tx: h.Tx, Isolation: h.Isolation, Earlier: b.tx[h.Conn]}
	if h.Isolation == "Serializable" {
		return q.Serializable()
	}
	return q
}

// pointless says whether a step repeats a try that failed, although nobody else has made a step since. Who
// reads the same again is believed twice.
func (r *run) pointless(b *buyer) bool {
	h := b.queue[0]
	if h.Server != wire.Redis && !strings.Contains(h.Text, "GET_LOCK(") || len(b.holds()) > 0 {
		return false
	}
	what, same := poll(h.Text), 0
	for _, t := range slices.Backward(b.tries) {
		if !t.nothing {
			break
		}
		if t.what != what {
			continue
		}
		if same++; t.failed && !reads(h.Name) || same == 2 {
			return true
		}
	}
	return false
}

// poll is what a poll repeats: its command and its key, and not the owner's name.
func poll(text string) string {
	words := strings.Fields(text)
	n := 2
	if words[0] == "EVALSHA" {
		n = 4
	}
	return strings.Join(words[:min(n, len(words))], " ")
}

func reads(name string) bool {
	switch name {
	case "get", "exists", "ttl", "pttl", "hget", "hgetall", "hexists", "type", "mget", "llen", "zscore", "zrank", "strlen":
		return true
	}
	return false
}

// note adds an entry.
func (r *run) note(e schedule.Entry) int {
	e.AtMS = float64(time.Since(r.begun).Microseconds()) / 1000
	r.entries = append(r.entries, e)
	return len(r.entries) - 1
}

// send lets a customer's request go, and waits until all are at rest. A quiet one leaves no entry.
func (r *run) send(ctx context.Context, b *buyer, quiet bool) error {
	h := b.queue[0]
	b.queue = b.queue[1:]
	b.entry = -1
	if !quiet {
		b.counts[h.Name]++
		b.sent++
		b.entry = r.note(schedule.Entry{
			Choice: schedule.Choice{Customer: b.customer, Step: schedule.StepName(h.Name, b.counts[h.Name])}, Customer: b.customer.String(),
			Server: h.Server, Sent: h.Text, Tx: h.Tx,
		})
	}
	for _, other := range r.buyers {
		if other != b {
			other.tries = nil
		}
	}
	b.flying, b.state, b.heard = h, moving, time.Now()
	h.release <- true
	return r.rest(ctx, b.customer, "", h.Text)
}

// rest waits until all are at rest after a step or an event, and looks at both servers.
func (r *run) rest(ctx context.Context, by schedule.Customer, event schedule.Event, sent string) error {
	entry := len(r.entries) - 1
	if err := r.settle(ctx); err != nil {
		return err
	}
	if err := r.look(ctx, by, event, sent); err != nil {
		return err
	}
	if slices.ContainsFunc(r.buyers, func(b *buyer) bool { return b.state == onPush }) {
		time.Sleep(pushDelay)
	}
	for _, b := range r.buyers { // what they wait for may be there now
		if b.state == onRow || b.state == onRedis {
			b.state, b.heard = moving, time.Now()
		}
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	if r.looked != nil {
		if err := r.looked(r); err != nil {
			return err
		}
	}
	return r.observe(ctx, entry)
}

// observe keeps what both servers have after an entry.
func (r *run) observe(ctx context.Context, entry int) error {
	if !r.plan.Observe || entry < 0 || !r.countsBySQL() {
		return nil
	}
	now, err := r.servers(ctx)
	r.entries[entry].State = &now
	return err
}

// countsBySQL says whether counting leaves the service alone.
func (r *run) countsBySQL() bool {
	s := r.stage.on.File.Stock
	return s.Left != "" && s.Orders != ""
}

func (r *run) servers(ctx context.Context) (schedule.State, error) {
	now := r.lock
	if r.owner != 0 {
		now.Holder = r.owner.String()
	}
	left, err := r.stage.on.Left(ctx, r.item)
	if err != nil {
		return now, err
	}
	orders, err := r.stage.on.Orders(ctx, r.item)
	for i, o := range orders {
		for range o.Units {
			now.Orders = append(now.Orders, schedule.Order{ID: uint64(i + 1), Customer: r.customerOf(o.Customer)})
		}
	}
	now.Stock = left
	return now, err
}

func (r *run) customerOf(name string) string {
	for _, b := range r.buyers {
		if b.sale.Customer == name {
			return b.customer.String()
		}
	}
	return schedule.OrdinaryCustomer
}

// conclude has an ordinary customer come where a unit is left, and rules.
func (r *run) conclude(ctx context.Context) (schedule.Record, error) {
	o := schedule.Outcome{Stock: Customers - 1, Answers: map[string]string{}}
	for _, b := range r.buyers {
		o.Answers[b.customer.String()] = b.reply.String()
	}
	if err := r.look(ctx, 0, "", ""); err != nil {
		return schedule.Record{}, err
	}
	end, err := r.servers(ctx)
	if err != nil {
		return schedule.Record{}, err
	}
	o.Orders = end.Orders
	if int64(len(o.Orders)) < o.Stock || o.Lies() > 0 {
		note := "nothing is held"
		if r.lock.Locked() {
			if note, err = r.outlast(ctx); err != nil {
				return schedule.Record{}, err
			}
		}
		r.stage.on.Watch(nil)
		if err := r.stage.restart(ctx); err != nil {
			return schedule.Record{}, err
		}
		last := r.buyers[len(r.buyers)-1].process
		o.Ordinary = r.stage.on.Buy(ctx, last, r.stage.on.NewSale(r.item, fmt.Sprintf("item%d-ordinary", r.item))).String()
		if err := r.look(ctx, 0, "", ""); err != nil {
			return schedule.Record{}, err
		}
		if end, err = r.servers(ctx); err != nil {
			return schedule.Record{}, err
		}
		o.Orders = end.Orders
		r.note(schedule.Entry{Note: note + ", and an ordinary customer was answered with " + o.Ordinary})
	}
	for _, b := range r.buyers {
		if b.reply.Outcome == load.Failed && b.reply.Status < 500 {
			return schedule.Record{}, fmt.Errorf("%s was answered with %s, which the description does not know", b.customer, b.reply)
		}
	}
	record := schedule.Record{
		Strategy: r.plan.Strategy, Schedule: r.chosen[:r.listed], Customers: len(r.buyers), Entries: r.entries, Outcome: o, Played: r.chosen, Holds: r.holds, Wire: true,
	}
	record.Decide()
	record.Conclude(end, false)
	return record, nil
}

// whoWaits says what each customer waits for.
func (r *run) whoWaits() string {
	var who []string
	for _, b := range r.buyers {
		if b.state == ended {
			continue
		}
		what := map[state]string{moving: "works", onRow: "waits in MySQL", onRedis: "waits in Redis", onPush: "waits for a message"}[b.state]
		switch {
		case b.flying != nil:
			what += " with " + b.flying.Text
		case len(b.queue) > 0:
			what = "is held at " + b.queue[0].Text
		case b.state == moving:
			what += " and sends nothing"
		}
		who = append(who, fmt.Sprintf("%s %s", b.customer, what))
	}
	return strings.Join(who, ", ")
}

// why says why a choice cannot be.
func (r *run) why(c schedule.Choice) string {
	if c.Customer == 0 {
		return fmt.Sprintf("%s cannot be here", c)
	}
	if int(c.Customer-'A') >= len(r.buyers) {
		return fmt.Sprintf("%s: there is no customer %s: a service is tried with %s and %s", c, c.Customer, r.buyers[0].customer, r.buyers[1].customer)
	}
	b := r.buyer(c.Customer)
	switch {
	case b.state == ended:
		return fmt.Sprintf("%s cannot be here: %s has ended: it was answered with %s", c, b.customer, b.reply)
	case b.atStep():
		return fmt.Sprintf("%s cannot be here: %s's next step is %s.%s", c, b.customer, b.customer, b.step())
	}
	return fmt.Sprintf("%s cannot be here: %s", c, r.whoWaits())
}

var errSilent = errors.New("a process sends nothing, and nothing of it is under way")
