package step

import (
	"database/sql"
	"slices"
	"time"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/seen"
)

type state int

// The states of a customer.
const (
	absent  state = iota
	moving        // a request is under way, or the process works; or it is held before a step
	onRow         // its statement waits for a row
	onRedis       // Redis makes its command wait
	onLock        // it waits for the lock, with no request under way
	cutOff        // its Redis is silent: what it has sent is under way
	ended
)

// held is a request of a sale that waits to be sent, or is under way.
type held struct {
	schedule.Request
	id       any    // by which its answer is known
	name     string // the command in one word
	conn     uint64 // MySQL's number of the connection, 0 for none
	under    uint64 // by which what the connection holds is kept: our shop has one transaction in a sale
	replica  bool   // it is for the replica of MySQL
	database string // that the connection has turned to, empty for that of the schema
	entry    int    // of its step
	lost     bool   // its answer is kept from the sale
	release  func(h *held)
	drop     func() // in the place of release, where the connection is gone
}

// buyer is a customer in a run.
type buyer struct {
	customer schedule.Customer
	id       string // by which its orders are known
	process  process
	state    state
	heard    time.Time
	quiet    seen.Quiet
	first    *held   // what it is known to send first, nil where it is not
	queue    []*held // what it is held at; the first is its next step
	flying   *held   // what a server works on, nil for nothing
	parked   []*held // what servers make wait, while another connection of the process goes on
	last     *held   // what it has sent last, nil before the first
	counts   map[string]int

	tx    map[uint64][]schedule.Statement // of open transactions, by [held] under
	named map[uint64][]schedule.Statement // that have taken locks by name or of tables, which are not released

	lose   bool
	dead   bool   // its process was killed
	answer string // empty before there is one
}

func newBuyer(c schedule.Customer, id string, at process) *buyer {
	return &buyer{customer: c, id: id, process: at, counts: map[string]int{}, tx: map[uint64][]schedule.Statement{}, named: map[uint64][]schedule.Statement{}}
}

// next is what a customer sends next, waits with, or has sent last; nil before anything is known.
func (b *buyer) next() *held {
	switch {
	case b.flying != nil:
		return b.flying
	case len(b.queue) > 0:
		return b.queue[0]
	case b.last != nil:
		return b.last
	}
	return b.first
}

// step is a customer's next step, as a schedule has it.
func (b *buyer) step() string {
	h := b.first
	if len(b.queue) > 0 {
		h = b.queue[0]
	}
	if h == nil {
		return ""
	}
	return schedule.StepName(h.name, b.counts[h.name]+1)
}

// atStep says whether a customer can make a step. While a server makes one of its requests wait, another
// connection of its process can: what that has may be what is waited for.
func (b *buyer) atStep() bool {
	return b.state != ended && len(b.queue) > 0 && (b.flying == nil || b.state == onRow || b.state == onRedis)
}

// moves says whether something is to be heard of a customer yet.
func (b *buyer) moves() bool { return b.state == moving && !b.atStep() }

func (b *buyer) waits() bool { return b.state == onRow || b.state == onRedis || b.state == onLock }

// landed takes a request that was answered from those under way, nil for another one.
func (b *buyer) landed(id any) (h *held) {
	is := func(of *held) bool { return of.id == id }
	if i := slices.IndexFunc(b.parked, is); i >= 0 {
		h, b.parked = b.parked[i], slices.Delete(b.parked, i, i+1)
	} else if b.flying != nil && is(b.flying) {
		h, b.flying = b.flying, nil
		if last := len(b.parked) - 1; last >= 0 {
			b.flying, b.parked = b.parked[last], b.parked[:last]
		}
	}
	return h
}

// underWay are all requests that have no answer yet.
func (b *buyer) underWay() []*held {
	if b.flying == nil {
		return nil
	}
	return append(slices.Clone(b.parked), b.flying)
}

// holds are the statements that a customer's connections may hold locks by.
func (b *buyer) holds() (all []schedule.Statement) {
	for _, by := range []map[uint64][]schedule.Statement{b.tx, b.named} {
		for _, of := range by {
			all = append(all, of...)
		}
	}
	return all
}

// letGoOf notes that a customer's connections are gone.
func (b *buyer) letGoOf() {
	clear(b.tx)
	clear(b.named)
}

// request is what a customer sends, as the table of independence reads it.
func (b *buyer) request(h *held) schedule.Request {
	if h == nil {
		return schedule.Request{}
	}
	q := h.Request
	q.Earlier = b.tx[h.under]
	if h.database != "" { // whose tables are not known
		q.Text = "USE " + h.database + "; " + h.Text
	}
	if q.Isolation == serializable {
		return q.Serializable()
	}
	return q
}

// serializable is the isolation under which a plain read takes a lock.
var serializable = sql.LevelSerializable.String()
