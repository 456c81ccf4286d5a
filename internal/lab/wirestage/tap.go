package wirestage

import (
	"slices"
	"strings"

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
