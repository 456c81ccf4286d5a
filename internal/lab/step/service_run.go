package step

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/seen"
	"stocklock/internal/lab/service"
	"stocklock/internal/lab/wire"
)

type serviceRun struct {
	*run
	service   *Service
	item      int64
	customers []*caller
	looked    func(*serviceRun) error
	over      <-chan struct{}       // closed when the run holds nothing any more
	letGo     func()                // closes it
	conns     map[uint64]*wire.Conn // by MySQL's number

	before map[string]key // what Redis had at the start
	main   string         // the key of the lock, empty before a customer has taken one
	ending string         // the key of the sales that ends first by itself, empty for none
	other  bool           // a key has ended that is not the lock
	late   bool           // the process of who came last did not come to rest
	seen   map[string]key // what Redis had at the last look
	seenAt time.Time      // while the service is learned
	// expiredBefore is how many keys had expired before that look.
	expiredBefore string
	// own has the sums of those keys of seen that are the sales'.
	own   map[string]string
	until time.Time // when the lock's lease ends, by the last look
	ended bool      // time was let pass, which can end a lease

	tapped
}

// caller is a customer of a service.
type caller struct {
	*buyer
	at     *service.Process
	sale   service.Sale
	reply  *service.Reply
	got    service.Reply // the same, when done is closed
	others int           // how many have come in its place: see [serviceRun.anotherComes]
	done   chan struct{} // closed when its request has ended
	open   bool          // something of it was under way then
	early  bool          // it was answered while something of it was held or under way, or before more of it came
	tries  []try         // of what it has sent since another customer changed something, or an event happened
	used   int           // how many events there were when they were made

	accepted atomic.Bool // the service has answered that it will decide later, and the customer asks for that
	leave    func()      // ends the customer's request
}

// try is a request that was answered, as a poll is recognized by it.
type try struct {
	what    string
	nothing bool // it has changed nothing: it was refused, or has only read
	refused bool // it was not to read alone, and the answer was nil, 0 or nothing
	sql     bool
	own     map[string]string // what the sales had in Redis before it, as in [serviceRun.own]
}

// How long to wait for what.
const (
	pushQuiet  = 150 * time.Millisecond // seen silence of a process that listens to a channel: it waits for a message
	pushDelay  = 5 * time.Millisecond   // in which a message comes that was published
	lateQuiet  = 100 * time.Millisecond // seen silence after its last request after which a sale has ended that goes on behind its answer
	shortRest  = 15 * time.Second       // in which all come to rest, or a second more than a process may be silent where that is longer
	betweenTry = 5 * time.Millisecond   // between looks while time passes
	longIdle   = 20 * time.Second       // for which nobody may be able to go on
	lookLimit  = 2 * time.Second        // of a look at what the servers have while sales are held
)

func (r *serviceRun) of(b *buyer) *caller { return r.customers[b.customer-'A'] }

// arrive sends a customer to its process.
func (r *serviceRun) arrive(ctx context.Context, b *buyer) {
	c := r.of(b)
	r.locked(func() { r.came[b.customer-'A'] = true })
	c.reply, c.done = nil, make(chan struct{})
	ctx, c.leave = context.WithCancel(ctx)
	c.accepted.Store(false)
	c.sale.Accepted = func() { c.accepted.Store(true) }
	b.id = c.sale.Customer
	go func() {
		defer c.leave()
		c.got = r.service.on.Buy(ctx, c.at, c.sale)
		c.open = r.isBusy(int(c.customer - 'A'))
		close(c.done)
		r.tell(replied{b.customer, c.got})
	}()
}

// stopAsking has a customer whose sale was accepted ask no more what became of it.
func (c *caller) stopAsking() {
	if c.accepted.Load() {
		c.leave()
	}
}

// atRest has those come who are due: all at the start, or the first one, and the others after the event; and another
// one in the place of a customer whose sale failed.
func (r *serviceRun) atRest(ctx context.Context) (came bool, err error) {
	for i, b := range r.buyers {
		if b.state == absent && (i == 0 || !r.plan.Late || r.used > 0 || r.buyers[0].state == ended) {
			r.come(ctx, b)
			came = true
		}
	}
	if came {
		return came, nil
	}
	if r.looked != nil {
		if err := r.looked(r); err != nil {
			return false, err
		}
	}
	return r.anotherComes(ctx)
}

// end lets go what is held, and waits until all sales have ended: the next run would meet what they do. A process that
// does not come to rest is started again.
func (r *serviceRun) end(ctx context.Context) {
	r.letGo()
	for i, c := range r.customers {
		if !r.service.dirty[i] {
			_ = c.at.Resume()
			if c.accepted.Load() && c.state != ended {
				select {
				case <-c.done:
				case <-time.After(time.Duration(r.service.on.File.Settle)): // what it was to do was lost
					r.service.dirty[i] = true
				}
			}
		}
		if c.state != absent {
			c.stopAsking()
			<-c.done
			r.service.dirty[i] = r.service.dirty[i] || c.state != ended && !r.comesToRest(ctx, i, c.got.Outcome, c.early || c.open)
		}
	}
	// Not before: [serviceRun.free] would start it again while its worker writes an order.
	last := len(r.customers) - 1
	r.service.dirty[last] = r.service.dirty[last] || r.late
}

// comesToRest waits until a process has sent the last request of a sale that was answered so, or nothing of it for as long
// as it may be silent. Early is a sale that went on behind its answer, whatever the probe has seen.
func (r *serviceRun) comesToRest(ctx context.Context, process int, answered load.Outcome, early bool) bool {
	settled, quiet := time.Duration(r.service.on.File.Settle), seen.Quiet{}
	for limit := time.Now().Add(settled + shortRest); early || r.service.probe.AfterAnswer; {
		r.mu.Lock()
		busy, last, heard := r.busy[process], r.last[process], r.heard[process]
		r.mu.Unlock()
		silent, over := quiet.Until(heard, time.Now(), lookAfter), r.service.probe.Last(answered) == service.Shape(last)
		switch {
		case busy == 0 && (silent > lateQuiet && over || time.Since(heard) > settled):
			return true
		case time.Now().After(limit), seen.Pause(ctx, lookAfter) != nil:
			return false
		}
	}
	return true
}

func (r *serviceRun) handle(ctx context.Context, m any) error {
	switch m := m.(type) {
	case *holding:
		if b := r.buyers[m.Process]; b.dead {
			m.go_ <- false
		} else {
			c := r.of(b)
			c.early = c.early || b.answer != ""
			r.hold(b, r.held(m))
		}
	case passed:
		r.landed(r.customers[m.Process], m.Exchange)
	case replied:
		c := r.customers[m.customer-'A']
		c.reply, c.early = &m.reply, c.flying != nil || len(c.queue) > 0
		r.replied(c.buyer, m.reply.String())
	case renewal:
		r.noteRenewal(r.buyers[m.process].customer, m.at)
	case pushed:
		if m.process < len(r.buyers) && r.buyers[m.process].state == onLock {
			b := r.buyers[m.process]
			b.state, b.heard = moving, time.Now()
		}
	case closed:
		if m.conn.Process >= len(r.buyers) {
			return nil
		}
		b := r.buyers[m.conn.Process]
		held := m.inTx || len(b.tx[m.conn.Thread])+len(b.named[m.conn.Thread]) > 0
		delete(b.tx, m.conn.Thread)
		delete(b.named, m.conn.Thread)
		b.heard = time.Now()
		if held {
			return r.hungUp(ctx, m.conn.Thread)
		}
	}
	return nil
}

// held is a request that waits in a proxy.
func (r *serviceRun) held(m *holding) *held {
	r.conns[m.Conn.Thread] = m.Conn
	h := &held{
		Request: schedule.Request{Server: m.Server, Text: m.Text, Tx: m.Tx, Isolation: cmp.Or(m.Isolation, r.service.isolation), Source: m.Source, Foreign: true},
		id:      m.Exchange, name: r.service.nameOf(m.Exchange), conn: m.Conn.Thread, under: m.Conn.Thread,
		release: func(h *held) {
			if h.lost {
				r.locked(func() { r.lost[m.Exchange] = true })
			}
			m.go_ <- true
		},
		drop: func() { m.go_ <- false },
	}
	if m.Database != r.service.database {
		h.database = m.Database
	}
	return h
}

// landed notes what a server has answered, and that what the others wait for may be there now.
func (r *serviceRun) landed(c *caller, x *wire.Exchange) {
	h := r.answered(c.buyer, x, answer{text: x.Answer, matched: x.Matched, failed: x.Failed, ends: x.Ends, open: x.Open})
	if h == nil {
		return
	}
	reads := r.reads(c.buyer, h)
	t := try{what: poll(x.Text, reads), nothing: !x.Matched || !r.writes(c.buyer, h), refused: !reads && !x.Matched && !x.Failed, sql: x.Server == wire.MySQL, own: r.own}
	c.tries = append(r.triesOf(c), t)
	if x.Server == wire.MySQL || !t.nothing {
		for _, other := range r.customers {
			if other != c {
				other.tries = nil
			}
		}
	}
}

// triesOf are the tries of a customer since the last event.
func (r *serviceRun) triesOf(c *caller) []try {
	if c.used != r.used {
		c.used, c.tries = r.used, nil
	}
	return c.tries
}

// goesOn knows of a sale without a fault what the probe has seen. A timeout can answer a customer whose sale is held.
func (r *serviceRun) goesOn(b *buyer) bool { return r.service.probe.AfterAnswer || r.of(b).early }

// listen finds out why a customer is silent.
func (r *serviceRun) listen(ctx context.Context, b *buyer, s *silence) (err error) {
	c, settled := r.of(b), time.Duration(r.service.on.File.Settle)
	switch {
	case b.flying != nil:
		if b.flying.Server == wire.Redis {
			s.waits, err = r.waitsInRedis(ctx, b.flying.id.(*wire.Exchange).Conn.Local)
		}
	case s.answered:
		r.ended = r.ended || s.since > lateQuiet // a lease can end while it is waited for
		last := b.last != nil && r.service.probe.Last(c.reply.Outcome) == service.Shape(b.last.Text)
		s.dropped = s.quiet > lateQuiet && last || s.since > settled
	case s.quiet > pushQuiet && (c.at.Redis.Listening() || c.accepted.Load()):
		s.locking, s.refused = true, true
	case s.since > settled:
		return fmt.Errorf("a process sends nothing, and nothing of it is under way for %s: %s", settled, r.whoWaits())
	}
	return err
}

func (r *serviceRun) waitsInRedis(ctx context.Context, addr string) (bool, error) {
	list, err := r.service.on.Redis().Do(ctx, "CLIENT", "LIST").Text()
	if err != nil {
		return false, fmt.Errorf("look for who waits: %w", err)
	}
	for line := range strings.Lines(list) {
		if !strings.Contains(line, " addr="+addr+" ") {
			continue
		}
		for field := range strings.FieldsSeq(line) {
			if flags, ok := strings.CutPrefix(field, "flags="); ok {
				return strings.Contains(flags, "b"), nil
			}
		}
	}
	return false, nil
}

// wakes gives a message time that was published. That wakes who waits for it.
func (r *serviceRun) wakes(*buyer) bool {
	time.Sleep(pushDelay)
	return false
}

// passTime ends the lease of a process that was killed: who polls would see nothing else.
func (r *serviceRun) passTime(ctx context.Context, polled bool) (bool, error) {
	r.ended = true
	if polled {
		time.Sleep(betweenTry)
		return false, nil
	}
	passed := false
	for i, b := range r.buyers {
		if !r.service.dirty[i] || !r.plan.Early {
			continue
		}
		for _, name := range r.leases(b.customer) {
			if err := r.endKey(ctx, name, true); err != nil {
				return true, err
			}
			passed = true
		}
	}
	if !passed {
		return false, nil
	}
	return true, r.look(ctx, 0, "")
}

func (r *serviceRun) sends(*buyer, *held) {}

func (r *serviceRun) sent(context.Context, *buyer, *held) error { return nil }

// touches is what a step touches. What a customer does after another one's answer was lost is not known.
func (r *serviceRun) touches(b *buyer) []schedule.Touch {
	if b.lose {
		return schedule.Everything("")
	}
	return r.schema.StepTouches(int(b.customer-'A'), r.parties())
}

// pointless says whether a step repeats a try that failed, although nobody else has made a step since. Who
// reads the same again is believed twice, as is who has read before it tries again, and who counts it up, as a lock by INCR
// does, three times. What a sale repeats although nobody keeps it out is no poll. What was changed and undone is none.
func (r *serviceRun) pointless(b *buyer) bool {
	tries, h := r.triesOf(r.of(b)), b.queue[0]
	if h.Server != wire.Redis && !strings.Contains(h.Text, "GET_LOCK(") || slices.ContainsFunc(b.holds(), mayLock) {
		return false
	}
	reads := r.reads(b, h)
	what, same, changed, looked := poll(h.Text, reads), 0, false, false
	alone := r.service.probe.Repeats(func(sent string) bool { return service.Shape(poll(sent, reads)) == service.Shape(what) })
	for _, t := range slices.Backward(tries) {
		if t.what != what {
			if !t.nothing && t.sql {
				break
			}
			changed, looked = changed || !t.nothing, looked || t.nothing && !t.refused
			continue
		}
		if changed && !maps.Equal(t.own, r.own) {
			break
		}
		believed := 3
		switch {
		case t.refused && !looked:
			believed = 1
		case t.nothing:
			believed = 2
		}
		if same++; same >= max(believed, alone) {
			return true
		}
	}
	return false
}

// mayLock says whether a statement may hold locks: a plain SELECT does not.
func mayLock(s schedule.Statement) bool {
	return !plain.MatchString(s.Text) || locking.MatchString(s.Text)
}

var (
	plain   = regexp.MustCompile(`^SELECT\b`)
	locking = regexp.MustCompile(`(?i)LOCK|\bFOR\b|\bINTO\b`)
)

// reads says whether a request reads in Redis, and does nothing else there.
func (r *serviceRun) reads(b *buyer, h *held) bool { return h.Server == wire.Redis && !r.writes(b, h) }

// poll is what a poll repeats: its command, its key, and what it reads there or the field that it changes. An owner's name
// and a time can be others in each try.
func poll(text string, reads bool) string {
	words := strings.Fields(text)
	n := 2
	switch name := words[0]; {
	case name == "EVALSHA", name == "FCALL":
		n = 4
	case reads && !strings.Contains(name, "RANGE") && !strings.Contains(name, "COUNT"):
		n = len(words)
	case name[0] == 'H', name == "SADD", name == "SREM":
		n = 3
	}
	return strings.Join(words[:min(n, len(words))], " ")
}

func (r *serviceRun) db() *sql.DB { return r.service.on.DB }

// count is what the service has for sale and has sold, and what Redis had at the last look.
func (r *serviceRun) count(ctx context.Context) (schedule.State, error) {
	r.counts()
	now := r.lock
	if r.owner != 0 {
		now.Holder = r.owner.String()
	}
	left, err := r.service.on.Left(ctx, r.item)
	if err != nil {
		return now, err
	}
	orders, err := r.service.on.Orders(ctx, r.item)
	for i, o := range orders {
		for range o.Units {
			now.Orders = append(now.Orders, schedule.Order{ID: uint64(i + 1), Customer: r.customerOf(o.Customer)})
		}
	}
	now.Stock = left
	return now, err
}

// conclude has an ordinary customer come where a unit is left, and rules.
func (r *serviceRun) conclude(ctx context.Context) (schedule.Record, error) {
	o := r.outcome()
	end, err := r.lookAtEnd(ctx, &o)
	if err == nil {
		end, err = r.addedUp(ctx, &o, end)
	}
	if err != nil {
		return schedule.Record{}, err
	}
	record := r.record(o)
	record.Wire, record.LeaseMS, record.Unended = true, 0, r.unended(false)
	sold := int64(len(o.Orders))
	if sold < o.Stock || sold == o.Stock && end.Stock > 0 || o.Lies() > 0 || record.NeedsAnother() {
		if end, err = r.afterwards(ctx, &record); err != nil {
			return schedule.Record{}, err
		}
	}
	record.LostUpdates = lostUpdates(record.Outcome, end)
	r.whatWasRead(record.Outcome.Orders)
	record.Entries, record.Holds = r.entries, r.holds
	record = concluded(record, end, r.other)
	if who := record.Unnamed(); who != "" && !record.Outcome.Bad() { // what is bad is so by the orders and other answers
		return schedule.Record{}, fmt.Errorf("%s, which the description does not know", who)
	}
	return record, nil
}

// afterwards has another customer come when what is held has ended, and counts again.
func (r *serviceRun) afterwards(ctx context.Context, record *schedule.Record) (end schedule.State, err error) {
	o := &record.Outcome
	before, err := r.outlast(ctx)
	if err != nil {
		return end, err
	}
	if err := r.free(ctx); err != nil {
		return end, err
	}
	if err := r.awaitOrders(ctx, record); err != nil {
		return end, err
	}
	o.Ordinary = r.ordinary(ctx, record.Unended != "")
	if end, err = r.lookAtEnd(ctx, o); err == nil {
		end, err = r.addedUp(ctx, o, end)
	}
	record.Queued = record.Queued && int64(len(o.Orders)) < o.Stock
	if o.Ordinary == string(load.Busy) && end.Locked() && end.TTLMS == -1 {
		record.Unended = r.unended(true)
	}
	r.note(schedule.Entry{Note: ordinaryNote(before, o.Ordinary)})
	return end, err
}

// unended are the leases that the run has met and not ended. Behind a key that has no end, it is no row that keeps others out.
func (r *serviceRun) unended(endless bool) string {
	var sent service.Probe
	for _, e := range r.entries {
		if !endless || e.Server == wire.Redis {
			sent.Sold = append(sent.Sold, schedule.Sent{Server: e.Server, Sent: e.Sent})
		}
	}
	return strings.Join(sent.Unended(), ", ")
}

// free holds nothing any more, in any process: a worker that is held, or killed, would write nothing.
func (r *serviceRun) free(ctx context.Context) error {
	r.letGo()
	r.locked(func() { clear(r.dead) })
	return r.service.revive(ctx)
}

// lostUpdates are the units both in orders and left, negative for those in neither. A unit without an order that nobody can
// have is left, and not lost.
func lostUpdates(o schedule.Outcome, end schedule.State) int64 {
	lost, missing := int64(len(o.Orders))+end.Stock-o.Stock, o.Stock-int64(len(o.Orders))
	if missing < 0 || lost < 0 && missing > 0 && o.Ordinary != string(load.Sold) {
		return 0
	}
	return lost
}

// addedUp counts again where orders and stock do not add up, when both stand still: a worker can be late.
func (r *serviceRun) addedUp(ctx context.Context, o *schedule.Outcome, end schedule.State) (schedule.State, error) {
	if lostUpdates(*o, end) == 0 {
		return end, nil
	}
	if err := r.free(ctx); err != nil {
		return end, err
	}
	r.ended = true // what follows takes longer than many a lease
	if still, err := r.service.on.Still(ctx, r.item, r.addsUp); err != nil || !still {
		return end, cmp.Or(err, errors.New("the orders and the stock change all the time"))
	}
	return r.lookAtEnd(ctx, o)
}

func (r *serviceRun) addsUp(left int64, orders []service.Order) bool {
	return service.InAll(left, orders) == r.units
}

// awaitOrders waits for the orders that a worker of another process, or of one that was started again, can write: of
// customers who were answered as sold, of what waits in a queue, and of units that are neither sold nor left where orders come
// behind answers. What was taken from a queue may be on its way still.
func (r *serviceRun) awaitOrders(ctx context.Context, record *schedule.Record) error {
	o := &record.Outcome
	for until := time.Now().Add(max(workerLimit, r.service.on.Patience())); ; {
		all, err := r.keysNow(ctx)
		if err != nil {
			return err
		}
		record.Queued = r.queued(all) && int64(len(o.Orders)) < o.Stock
		if !record.Queued && (!r.service.probe.AfterAnswer || o.Lies() == 0) || time.Now().After(until) {
			break
		}
		if err := seen.Pause(ctx, workerEvery); err != nil {
			return err
		}
		end, err := r.count(ctx)
		if err != nil {
			return err
		}
		o.Orders = end.Orders
	}
	missing := o.Stock - int64(len(o.Orders))
	if r.service.queues && !record.Queued && missing > 0 {
		_, err := r.service.on.Still(ctx, r.item, nil)
		return err
	}
	if !r.service.probe.AfterAnswer || missing <= 0 {
		return nil
	}
	left, err := r.service.on.Left(ctx, r.item)
	if err == nil && left < missing { // a table can be a queue
		_, err = r.service.on.Still(ctx, r.item, r.addsUp)
	}
	return err
}

// How long an order is awaited.
const (
	workerLimit = 10 * time.Second
	workerEvery = 100 * time.Millisecond
)

// whatWasRead puts into orders what was in stock when their customers found some for the last time: by that they have
// decided. Two orders by one stock have the same cause.
func (r *serviceRun) whatWasRead(orders []schedule.Order) {
	for i := range orders {
		for _, e := range slices.Backward(r.entries) {
			if e.Customer == orders[i].Customer && e.Server == wire.MySQL && strings.HasPrefix(e.Sent, "SELECT") && e.State != nil && e.State.Stock > 0 {
				orders[i].Read, orders[i].Written = e.State.Stock, e.State.Stock-1
				break
			}
		}
	}
}
