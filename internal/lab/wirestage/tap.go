package wirestage

import (
	"slices"
	"strings"
	"sync"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/service"
	"stocklock/internal/lab/wire"
)

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

// Sent passes what belongs to no sale, and holds the rest.
func (t tap) Sent(x *wire.Exchange) bool {
	r := t.run
	if x.Process >= len(r.buyers) {
		return true
	}
	if r.isDead(x.Process) {
		return false
	}
	if r.stage.on.IsBackground(r.stage.probe, x.Text) {
		return true
	}
	r.mu.Lock()
	if !r.came[x.Process] {
		r.mu.Unlock()
		return true // what its process is late with, of another run
	}
	if ends := x.Server == wire.MySQL && (x.Text == "COMMIT" || x.Text == "ROLLBACK"); ends && !r.inSale[x.Conn] {
		r.mu.Unlock()
		return true // the end of a transaction that belongs to no sale
	} else if x.Server == wire.MySQL {
		r.inSale[x.Conn] = !ends
	}
	renewal := r.isRenewal(x)
	if shape := service.Shape(x.Text); !renewal && !r.stage.probe.Sends(shape) {
		r.unforeseen.Store(true)
	}
	withheld, of := r.withheld, r.withheldOf
	if !renewal {
		r.busy[x.Process]++
		r.held[x] = true
	}
	r.mu.Unlock()
	if renewal {
		if withheld != nil && r.buyers[x.Process].customer == of {
			select {
			case <-withheld:
			case <-r.over:
			}
		}
		return true
	}
	h := &held{Exchange: x, release: make(chan bool, 1)}
	r.messages <- h
	goes := true
	select {
	case goes = <-h.release:
	case <-r.over:
		goes = !r.isDead(x.Process)
	}
	if !goes {
		r.forget(x)
	}
	return goes
}

// isDead says whether a process was killed. What is left of it sends nothing more.
func (r *run) isDead(process int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dead[process]
}

// isRenewal says whether a request is about the lock of a sale that is held meanwhile, or has the form of one that
// was. A renewal can come between two requests of its sale, and at once after the lock was taken. It is called with
// mu.
func (r *run) isRenewal(x *wire.Exchange) bool {
	if x.Server != wire.Redis {
		return false
	}
	shape := service.Shape(x.Text)
	if _, is := r.stage.renewals.Load(shape); is {
		return true
	}
	if r.busy[x.Process] == 0 || !names(x, func(word string) bool { return r.made[word] }) {
		return false
	}
	if !r.stage.probe.Sends(shape) {
		r.stage.renewals.Store(shape, true)
	}
	return true
}

// names says whether a request has a word that is a key.
func names(x *wire.Exchange, key func(word string) bool) bool {
	return slices.ContainsFunc(strings.Fields(x.Text), key)
}

// passRenewals lets go the renewals that are held as steps, since they came before the run knew their key. A renewal
// has a form that no sale has sent to the probe, and waits beside a request of its sale.
func (r *run) passRenewals(own func(word string) bool) {
	for _, b := range r.buyers {
		if len(b.queue) < 2 {
			continue
		}
		b.queue = slices.DeleteFunc(b.queue, func(h *held) bool {
			shape := service.Shape(h.Text)
			if h.Server != wire.Redis || r.stage.probe.Sends(shape) || !names(h.Exchange, own) {
				return false
			}
			r.stage.renewals.Store(shape, true)
			r.forget(h.Exchange)
			h.release <- true
			return true
		})
	}
}

// forget notes that a request is not under way any more, and says whether it was one of a sale.
func (r *run) forget(x *wire.Exchange) (ofSale bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ofSale = r.held[x]; ofSale {
		delete(r.held, x)
		r.busy[x.Process]--
	}
	return ofSale
}

// withhold holds the renewals of a customer's process from now on, or lets all go for 0.
func (r *run) withhold(c schedule.Customer) {
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

func (t tap) Answered(x *wire.Exchange) bool {
	r := t.run
	if !r.forget(x) {
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

// lastRequest is a tap that closes a channel when a request has been answered. It holds nothing.
type lastRequest struct {
	shape string
	once  sync.Once
	seen  chan struct{}
}

func (*lastRequest) Sent(*wire.Exchange) bool { return true }

func (l *lastRequest) Answered(x *wire.Exchange) bool {
	if service.Shape(x.Text) == l.shape {
		l.once.Do(func() { close(l.seen) })
	}
	return true
}

func (*lastRequest) Pushed(*wire.Conn, string) {}

func (*lastRequest) Closed(*wire.Conn, bool) {}
