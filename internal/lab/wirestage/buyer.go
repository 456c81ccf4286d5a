package wirestage

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/service"
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
	entry   int       // of its step, -1 for none
}

// buyer is a customer in a run.
type buyer struct {
	customer schedule.Customer
	process  *service.Process
	database string // of the tables that are known
	sale     service.Sale
	state    state
	heard    time.Time
	queue    []*held // what it waits with; the first is its next step
	flying   *held   // what the server works on, nil for nothing
	parked   []*held // what servers make wait, while another connection of the process goes on
	sent     int
	last     string // what it has sent last, in the form of [service.Shape]
	counts   map[string]int
	tries    []try // of what it has sent since another customer changed something
	tx       map[connection][]schedule.Statement
	named    map[connection][]schedule.Statement // that have taken locks of GET_LOCK or LOCK TABLES, which are not released
	reply    *service.Reply
	others   int           // how many have come in its place: see anotherComes
	done     chan struct{} // closed when its request has ended

	accepted atomic.Bool // the service has answered that it will decide later, and the customer asks for that
	leave    func()      // ends the customer's request

	mu   sync.Mutex // guards lose, which the proxies read
	lose bool
}

// try is a request that was answered, as a poll is recognized by it.
type try struct {
	what    string
	nothing bool // it has changed nothing: it was refused, or has only read
	failed  bool // the answer was nil, 0 or nothing
}

// step is a customer's next step, as a schedule has it.
func (b *buyer) step() string { return schedule.StepName(b.queue[0].Name, b.counts[b.queue[0].Name]+1) }

// atStep says whether a customer can make a step. While a server makes one of its requests wait, another connection of its
// process can: what that has may be what is waited for.
func (b *buyer) atStep() bool {
	return b.state != ended && len(b.queue) > 0 && (b.flying == nil || b.state == onRow || b.state == onRedis)
}

// landed takes a request that was answered from those under way, nil for another one.
func (b *buyer) landed(x *wire.Exchange) (h *held) {
	is := func(of *held) bool { return of.Exchange == x }
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

// stopAsking has a customer whose sale was accepted ask no more what became of it.
func (b *buyer) stopAsking() {
	if b.accepted.Load() {
		b.leave()
	}
}

func (b *buyer) holds() (all []schedule.Statement) {
	for _, by := range []map[connection][]schedule.Statement{b.tx, b.named} {
		for _, of := range by {
			all = append(all, of...)
		}
	}
	return all
}

// request is what a customer sends, as the table of independence reads it. What it does after another one's
// answer was lost is not known.
func (b *buyer) request(h *held) schedule.Request {
	q := schedule.Request{Server: h.Server, Text: h.Text, Tx: h.Tx, Isolation: h.Isolation, Earlier: b.tx[h.Conn], Source: h.Source}
	if h.Database != "" && h.Database != b.database { // whose tables are not known
		q.Text = "USE " + h.Database + "; " + h.Text
	}
	if h.Isolation == "Serializable" {
		return q.Serializable()
	}
	return q
}

// pointless says whether a step repeats a try that failed, although nobody else has made a step since. Who
// reads the same again is believed twice, and who counts it up, as a lock by INCR does, three times.
func (r *run) pointless(b *buyer) bool {
	h := b.queue[0]
	if h.Server != wire.Redis && !strings.Contains(h.Text, "GET_LOCK(") || len(b.holds()) > 0 {
		return false
	}
	what, same := poll(h.Text), 0
	if n := len(b.tries); n >= countedUp && !slices.ContainsFunc(b.tries[n-countedUp:], func(t try) bool { return t.what != what }) {
		return true
	}
	for _, t := range slices.Backward(b.tries) {
		if t.what != what {
			if !t.nothing {
				break
			}
			continue
		}
		if same++; t.nothing && t.failed && !reads(h.Name) || same == 2 {
			return true
		}
	}
	return false
}

const countedUp = 3

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
