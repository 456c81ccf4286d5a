package step

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/service"
	"stocklock/internal/lab/wire"
)

// The messages of proxies and of customers.
type (
	// holding is a request that waits in a proxy. A value of go_ says whether it may go to the server.
	holding struct {
		*wire.Exchange
		go_ chan bool
	}
	passed  struct{ *wire.Exchange } // it was answered
	replied struct{ customer schedule.Customer }
	renewal struct {
		process int
		at      time.Time
	}
	pushed struct{ process int }
	closed struct {
		conn *wire.Conn
		inTx bool
	}
)

// tapped is what the proxies share with a run.
type tapped struct {
	unforeseen atomic.Bool   // a request was held of a form that the probe has not seen
	came       []atomic.Bool // by process: its customer has come
	dead       []atomic.Bool // by process: it was killed, and what is left of it sends nothing more

	mu    sync.Mutex                   // guards the rest
	under map[*wire.Exchange]bool      // the requests of sales that are held or under way
	since map[*wire.Exchange]bool      // those that the last count can have missed
	lost  map[*wire.Exchange]bool      // those of under whose answer is kept from the sale
	busy  []int                        // how many of them each customer has
	last  []string                     // by process: what of a sale it has sent last
	heard []time.Time                  // by process: when that was sent or answered, or an earlier request of a sale was
	made  map[string]schedule.Customer // the keys by which sales keep others out: who has made them, 0 where that is not known
	// The renewals of a customer's process wait until withheld is closed. It is nil where none do.
	withheld   chan struct{}
	withheldOf schedule.Customer
	inSale     map[*wire.Conn]bool // a statement of a sale is under way, or its transaction is open
}

func (t *tapped) open(customers int) {
	t.busy, t.came, t.dead = make([]int, customers), make([]atomic.Bool, customers), make([]atomic.Bool, customers)
	t.last, t.heard = make([]string, customers), make([]time.Time, customers)
	t.under, t.since, t.lost, t.inSale, t.made = map[*wire.Exchange]bool{}, map[*wire.Exchange]bool{}, map[*wire.Exchange]bool{}, map[*wire.Conn]bool{}, map[string]schedule.Customer{}
}

// Sent passes what belongs to no sale, and holds the rest.
func (r *serviceRun) Sent(x *wire.Exchange) bool {
	switch {
	case x.Process >= len(r.buyers):
		return true
	case r.dead[x.Process].Load():
		return false
	case r.service.on.IsBackground(r.service.probe, x.Text, service.Sale{Item: r.item}):
		return true
	case !r.came[x.Process].Load():
		return true // what its process is late with, of another run
	}
	r.mu.Lock()
	if x.Server == wire.MySQL {
		if x.EndsTransaction() && !r.inSale[x.Conn] {
			r.mu.Unlock()
			return true // the end of a transaction that belongs to no sale
		}
		r.inSale[x.Conn] = true
	}
	renews := r.isRenewal(x)
	if shape := service.Shape(x.Text); !renews && !over(r.over) && !r.service.probe.Sends(shape) {
		r.unforeseen.Store(true)
	}
	withheld, of := r.withheld, r.withheldOf
	if !renews {
		r.busy[x.Process]++
		r.under[x], r.since[x] = true, true
		r.last[x.Process], r.heard[x.Process] = x.Text, time.Now()
	}
	r.mu.Unlock()
	if renews {
		r.tell(renewal{x.Process, time.Now()})
		if withheld != nil && r.buyers[x.Process].customer == of {
			select {
			case <-withheld:
			case <-r.over:
			}
		}
		return true
	}
	h := &holding{x, make(chan bool, 1)}
	r.tell(h)
	goes := true
	select {
	case goes = <-h.go_:
	case <-r.over:
		goes = !r.dead[x.Process].Load()
	}
	if !goes {
		r.forget(x)
	}
	return goes
}

// counts notes that the stock and the orders are counted from now on. A request without an answer can still change it.
func (r *tapped) counts() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.since = maps.Clone(r.under)
}

// uncounted is a request that can have changed what is counted behind the last count, nil for none. What a killed process has
// sent may be gone.
func (r *serviceRun) uncounted() *wire.Exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	for x := range r.since {
		if (x.Server == wire.MySQL || r.service.kept) && !r.buyers[x.Process].dead && r.changes(x) {
			return x
		}
	}
	return nil
}

// changes says whether a request can change what is counted. A ROLLBACK behind a refusal cannot, and neither can a look.
func (r *serviceRun) changes(x *wire.Exchange) bool {
	sent := schedule.Request{Server: x.Server, Text: x.Text, Tx: x.Tx, Isolation: x.Isolation, Source: x.Source, Foreign: true}
	return !strings.HasPrefix(strings.ToUpper(x.Text), "ROLLBACK") && slices.ContainsFunc(r.schema.Touches(sent), func(t schedule.Touch) bool { return t.Does&schedule.Writes != 0 })
}

// isBusy says whether a request of a process's sale is held or under way.
func (r *tapped) isBusy(process int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.busy[process] > 0
}

// isRenewal says whether a request is about the lock of a sale that is held meanwhile, or has the form of one that
// was. A renewal can come between two requests of its sale, and at once after the lock was taken. It is called with
// mu.
func (r *serviceRun) isRenewal(x *wire.Exchange) bool {
	if x.Server != wire.Redis {
		return false
	}
	shape := service.Shape(x.Text)
	if _, is := r.service.renewals.Load(shape); is || over(r.over) {
		return is
	}
	if r.busy[x.Process] == 0 || !slices.ContainsFunc(slices.Collect(maps.Keys(r.made)), func(key string) bool { return names(x.Text, key) }) {
		return false
	}
	if !r.service.probe.Sends(shape) {
		r.service.renewals.Store(shape, true)
	}
	return true
}

// names says whether a word of a request is a key.
func names(text, key string) bool { return strings.Contains(" "+text+" ", " "+wire.Word(key)+" ") }

// passRenewals lets go the renewals that are held as steps, since they came before the run knew their key. A renewal
// has a form that no sale has sent to the probe, and waits beside a request of its sale.
func (r *serviceRun) passRenewals(own []string) {
	for _, b := range r.buyers {
		if len(b.queue) < 2 {
			continue
		}
		b.queue = slices.DeleteFunc(b.queue, func(h *held) bool {
			shape := service.Shape(h.Text)
			if h.Server != wire.Redis || r.service.probe.Sends(shape) || !slices.ContainsFunc(own, func(key string) bool { return names(h.Text, key) }) {
				return false
			}
			r.service.renewals.Store(shape, true)
			r.forget(h.id.(*wire.Exchange))
			h.release(h)
			return true
		})
	}
}

// forget notes that a request is not under way any more, and says whether it was one of a sale, and whether its answer is
// lost.
func (r *tapped) forget(x *wire.Exchange) (ofSale, lost bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ofSale, lost = r.under[x], r.lost[x]
	delete(r.lost, x)
	if !x.Open { // a heartbeat may have the connection next
		delete(r.inSale, x.Conn)
	}
	if ofSale {
		delete(r.under, x)
		r.busy[x.Process]--
		r.heard[x.Process] = time.Now()
	}
	return ofSale, lost
}

// withhold holds the renewals of a customer's process from now on, or lets all go for 0.
func (r *tapped) withhold(c schedule.Customer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.withheld != nil {
		close(r.withheld)
		r.withheld = nil
	}
	if r.withheldOf = c; c != 0 {
		r.withheld = make(chan struct{})
	}
}

// Answered keeps from the sale the answer that it is to lose.
func (r *serviceRun) Answered(x *wire.Exchange) bool {
	ofSale, lost := r.forget(x)
	if ofSale {
		r.tell(passed{x})
	}
	return !lost
}

func (r *serviceRun) Pushed(c *wire.Conn, _ string) { r.tell(pushed{c.Process}) }

func (r *serviceRun) Closed(c *wire.Conn, inTx bool) { r.tell(closed{c, inTx}) }

// tell passes a message on, for as long as the run takes any.
func (r *serviceRun) tell(m any) {
	select {
	case r.messages <- m:
	case <-r.over:
	}
}
