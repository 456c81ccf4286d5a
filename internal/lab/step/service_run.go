package step

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"stocklock/internal/lab/schedule"
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
	got    service.Reply // when done is closed
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
	r.came[b.customer-'A'].Store(true)
	c.done = make(chan struct{})
	ctx, c.leave = context.WithCancel(ctx)
	c.accepted.Store(false)
	c.sale.Accepted = func() { c.accepted.Store(true) }
	b.id = c.sale.Customer
	go func() {
		defer c.leave()
		c.got = r.service.on.Buy(ctx, c.at, c.sale)
		c.open = r.isBusy(int(c.customer - 'A'))
		close(c.done)
		r.tell(replied{b.customer})
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
		if b.state == absent && (i == 0 || !r.plan.Late || r.used > 0 && !r.buyers[0].lose || r.buyers[0].state == ended) {
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

func (r *serviceRun) handle(ctx context.Context, m any) error {
	switch m := m.(type) {
	case *holding:
		if b := r.buyers[m.Process]; b.dead {
			m.go_ <- false
		} else {
			c := r.of(b)
			c.early = c.early || b.answer != ""
			long := !r.idle.IsZero() || time.Since(r.begun) > longIdle
			if (long || b.answer != "") && r.unforeseen.Load() && !r.service.idled {
				return errLearned // what comes without a customer may come again and again, and no customer ends beside it
			}
			r.hold(b, r.held(m))
		}
	case passed:
		r.landed(r.customers[m.Process], m.Exchange)
	case replied:
		c := r.customers[m.customer-'A']
		c.early = c.flying != nil || len(c.queue) > 0
		r.replied(c.buyer, c.got.String())
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
				r.mu.Lock()
				r.lost[m.Exchange] = true
				r.mu.Unlock()
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
	inSQL := x.Server == wire.MySQL
	t := try{what: poll(x.Text, reads, inSQL), nothing: !x.Matched || !r.writes(c.buyer, h), refused: !reads && !x.Matched && !x.Failed, sql: inSQL, own: r.own}
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
	c, settled := r.of(b), r.service.on.File.Settle
	switch {
	case b.flying != nil:
		if b.flying.Server == wire.Redis {
			s.waits, err = r.waitsInRedis(ctx, b.flying.id.(*wire.Exchange).Conn.Local)
		}
	case s.answered:
		r.ended = r.ended || s.since > lateQuiet // a lease can end while it is waited for
		last := b.last != nil && r.service.probe.Last(c.got.Outcome) == service.Shape(b.last.Text)
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

// touches is what a step touches. Nobody knows what a customer does whose answer is lost.
func (r *serviceRun) touches(b *buyer) []schedule.Touch {
	if b.lose {
		return schedule.Everything("")
	}
	return r.schema.StepTouches(int(b.customer-'A'), r.parties())
}

// pointless says whether a step repeats a try that failed, although nobody else has made a step since. A sale
// that reads the same again, or has read before it tries again, is believed twice. One that counts up, as a lock by INCR
// does, is believed three times.
// A request that a sale repeats although nobody keeps it out is no poll. A change that was undone is none. Nor is a statement
// of a transaction that holds locks.
func (r *serviceRun) pointless(b *buyer) bool {
	tries, h := r.triesOf(r.of(b)), b.queue[0]
	inSQL := h.Server == wire.MySQL
	if inSQL && !tried.MatchString(h.Text) || slices.ContainsFunc(b.holds(), mayLock) {
		return false
	}
	reads := r.reads(b, h)
	what, same, changed, looked := poll(h.Text, reads, inSQL), 0, false, false
	alone := r.service.probe.Repeats(func(sent string) bool { return service.Shape(poll(sent, reads, inSQL)) == service.Shape(what) })
	for _, t := range slices.Backward(tries) {
		if t.sql && !t.nothing {
			break
		}
		if t.what != what {
			changed, looked = changed || !t.nothing, looked || t.nothing && !t.refused
			continue
		}
		if changed && !maps.Equal(t.own, r.own) {
			break
		}
		believed := 3
		switch {
		case t.refused && !looked && !inSQL:
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
	tried   = regexp.MustCompile(`(?i)^(INSERT|REPLACE|UPDATE|DELETE|SELECT|DO)\b`) // statements that a poll can consist of
	locking = regexp.MustCompile(`(?i)LOCK|\bFOR\b|\bINTO\b`)
)

// reads says whether a request reads in Redis, and does nothing else there.
func (r *serviceRun) reads(b *buyer, h *held) bool { return h.Server == wire.Redis && !r.writes(b, h) }

// poll is what a poll repeats: its command, its key, and what it reads there or the field that it changes. An owner's name
// and a time can be others in each try.
func poll(text string, reads, inSQL bool) string {
	switch {
	case inSQL && plain.MatchString(text):
		return text
	case inSQL:
		return service.Shape(text)
	}
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
