package redislock

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// The model has a Redis run the shipped scripts, and the shipped state machine take in their answers. In
// between, messages are delayed and overtake each other without bound, a process may be paused at any moment, and
// so many times a message is lost, a subscription is cut off, stays with a server that counts no more, or a
// process dies. The search visits every world that can be reached. docs/lock-protocol.md says what is abstracted.

// model is what bounds a search.
type model struct {
	processes  int
	lease      int8 // in ticks; a third of it is one tick
	mail       int  // messages under way beyond which no process begins anything new
	heartbeats int  // heartbeats of one process under way
	faults     int8 // how many there may be
	crashes    bool // a fault may also kill a process
	wipes      bool // a fault may also wipe Redis; then two can hold, and the tokens tell them apart
	tries      bool // processes also try without waiting
	fresh      bool // no process is subscribed yet; a message that it misses by that must not be missed for long
	engine     *engine
	ahead      int // no bound: the place in the queue of whom the request at hand queues
}

const (
	maxProcesses = 3
	maxMail      = 12
)

// world is one state of everything. Worlds that are equal behave alike.
type world struct {
	redisState
	processes [maxProcesses]process
	mail      [maxMail]message // sorted, with the empty ones at the end
	faults    int8             // so many have happened

	// What only the checks know.
	begun int8 // the largest token with which a hold has begun
	wrong breach
}

// place is one process in the queue. The owner 0 means that it is empty.
type place struct {
	owner, attempt int8
	alive          int8 // ticks until its heartbeat ends
	visible        bool // the server saw it listen
}

// process is one Locker: the state of its name, and what may happen to it.
type process struct {
	state    int8 // idle, asking, waiting, held
	attempt  int8 // the newest one
	had      int8 // the newest one that became a hold
	from     int8 // asking with a release: the attempt that it gave back
	bound    int8 // asking and waiting: ticks since name.bound
	left     int8 // held: ticks until the local deadline
	epoch, n int8 // held: the grant's
	try      bool // asking without waiting
	deaf     bool // its subscription is cut off
	uncount  bool // its subscription is not counted by the server that is asked; it may still hear
	due      bool // a heartbeat is due at once; only with model.fresh
	dead     bool // it was killed
}

type kind int8

const (
	nothing kind = iota
	acquireRequest
	releaseRequest // with the next attempt, sent once
	endRequest     // a release without a next attempt; sent until it is answered, as a cancel is
	cancelRequest  // likewise
	renewalRequest
	acquireAnswer
	releaseAnswer
	renewalAnswer
	push
)

// message is a request, the answer to one, or a pushed grant.
type message struct {
	kind    kind
	owner   int8 // process + 1
	attempt int8
	more    int8 // of an acquire: 1 to queue. Of a release: its next attempt. Of a renewal: 1 for a hold.
	age     int8 // ticks since the request was sent
	answer  int8 // as in reply.kind
	epoch   int8
}

// about is the attempt for which it asks, or that it is an answer to.
func (msg message) about() int8 {
	if msg.kind == releaseRequest || msg.kind == releaseAnswer {
		return msg.more
	}
	return msg.attempt
}

// event is what leads from one world to the next.
type event struct {
	what    string
	process int
	message message
}

const tick = "a tick passes"

func (k kind) String() string {
	return [...]string{"none", "acquire", "release", "end", "cancel", "renewal", "answer to acquire", "answer to release", "answer to renewal", "push"}[k]
}

func (e event) String() string { return fmt.Sprintf("%c %s %+v", 'A'+e.process, e.what, e.message) }

type breach int8

const (
	fine breach = iota
	twoHolders
	epochNotNew
	tokenNotNew
	overtaken
	orphaned
	unnotified
	forgotten
	unasked
)

func (b breach) String() string {
	return [...]string{"nothing is wrong", "two processes believe that they hold the lock", "an epoch is not new",
		"a hold begins with a token that is not larger than the last", "a waiter that is alive is overtaken",
		"the lock stays with an attempt that is over",
		"a waiter has the lock and is not notified", "a waiter is forgotten", "a waiter missed a message, and does not ask"}[b]
}

// finding is what a search comes to.
type finding struct {
	worlds int
	ticks  int // the longest that a fair run takes, from anywhere, until nobody waits
	wrong  breach
	trace  []string // the shortest way there
}

// search visits every world, those that are reached in fewer steps first, until one is wrong.
func (m model) search() finding {
	var first world
	for i := range m.processes {
		first.processes[i].deaf, first.processes[i].uncount = m.fresh, m.fresh
	}
	start := m.normal(first)
	known := map[world]int32{start: 0}
	worlds, parents := []world{start}, []int32{-1}
	for i := int32(0); int(i) < len(worlds); i++ {
		from := worlds[i]
		if wrong := m.check(&from); wrong != fine {
			return finding{worlds: len(worlds), wrong: wrong, trace: m.wayTo(worlds, parents, i)}
		}
		m.successors(&from, func(w world, _ event) {
			w = m.normal(w)
			if _, is := known[w]; !is {
				known[w] = int32(len(worlds))
				worlds, parents = append(worlds, w), append(parents, i)
			}
		})
	}

	// From every world, without more faults and with nobody late: is everybody served?
	follow := func(i int32) (int32, event) {
		w, e := m.fairly(&worlds[i])
		next, is := known[m.normal(w)]
		if !is {
			panic(fmt.Sprintf("%s leads out of the search: %+v", e, w))
		}
		return next, e
	}
	const underWay = -1
	ticks := make([]int32, len(worlds)) // until everybody is served, plus one
	longest := int32(0)
	for i := range worlds {
		var path []int32
		at := int32(i)
		for ticks[at] == 0 {
			ticks[at] = underWay
			path = append(path, at)
			at, _ = follow(at)
		}
		if ticks[at] == underWay { // the run goes round in a circle
			for w, _ := follow(at); ; w, _ = follow(w) {
				if worlds[w].somebodyWaits() {
					return finding{worlds: len(worlds), wrong: forgotten, trace: m.wayTo(worlds, parents, int32(i))}
				}
				if ticks[w] = 1; w == at {
					break
				}
			}
		}
		for _, w := range slices.Backward(path) {
			if ticks[w] == underWay {
				next, e := follow(w)
				ticks[w] = ticks[next]
				if e.what == tick {
					ticks[w]++
				}
			}
			longest = max(longest, ticks[w]-1)
		}
	}
	return finding{worlds: len(worlds), ticks: int(longest)}
}

// wayTo says how a world was reached. It goes the way again, so that attempts have the numbers that
// they were given.
func (m model) wayTo(worlds []world, parents []int32, i int32) (said []string) {
	var way []int32
	for ; i > 0; i = parents[i] {
		way = append(way, i)
	}
	at := worlds[0]
	for _, i := range slices.Backward(way) {
		var next *world
		m.successors(&at, func(w world, e event) {
			if next == nil && m.normal(w) == worlds[i] {
				m.prune(&w)
				w.sortMail()
				next = &w
				said = append(said, e.String())
			}
		})
		at = *next
	}
	return said
}

func (m model) String() string {
	s := fmt.Sprintf("%d processes, %d ticks, %d messages, %d heartbeats", m.processes, m.lease, m.mail, m.heartbeats)
	for name, is := range map[string]bool{"kills": m.crashes, "lost data": m.wipes, "tries": m.tries, "not subscribed yet": m.fresh} {
		if is {
			s += ", " + name
		}
	}
	return fmt.Sprintf("%s, %d faults", s, m.faults)
}

// When this variable is set to anything the searches go further, for some minutes.
var largeModel = os.Getenv("REDISLOCK_MODEL_LARGE") != ""

// TestModel searches the protocol as it is.
func TestModel(t *testing.T) {
	t.Parallel()
	engine := newEngine(t)
	searches := []model{
		{processes: 2, lease: 3, mail: 2, heartbeats: 1},
		{processes: 2, lease: 2, mail: 1, heartbeats: 1, faults: 1, crashes: true},
		{processes: 2, lease: 2, mail: 1, heartbeats: 1, faults: 2, crashes: true},
		{processes: 2, lease: 2, mail: 2, heartbeats: 1, tries: true},
		{processes: 2, lease: 2, mail: 1, heartbeats: 1, faults: 1, wipes: true},
		{processes: 2, lease: 2, mail: 1, heartbeats: 1, fresh: true},
		{processes: 3, lease: 2, mail: 1, heartbeats: 1},
	}
	if largeModel {
		searches = []model{
			{processes: 2, lease: 2, mail: 2, heartbeats: 1, faults: 1, crashes: true},
			{processes: 2, lease: 3, mail: 2, heartbeats: 2, faults: 1, crashes: true},
			{processes: 2, lease: 2, mail: 2, heartbeats: 1, faults: 2, crashes: true, wipes: true},
			{processes: 3, lease: 2, mail: 1, heartbeats: 1, faults: 1, crashes: true},
			{processes: 2, lease: 2, mail: 2, heartbeats: 1, fresh: true},
		}
	}
	for _, m := range searches {
		begun := time.Now()
		m.engine = engine
		f := m.search()
		t.Logf("%s: %d worlds in %s; without more faults, everybody is served within %d ticks", m, f.worlds, time.Since(begun).Round(time.Millisecond), f.ticks)
		if f.wrong != fine {
			t.Errorf("%s: %s:\n\t%s", m, f.wrong, strings.Join(f.trace, "\n\t"))
		}
	}
}

// check says what is wrong in a world, if it is looked for.
func (m model) check(w *world) breach {
	believers := 0
	for _, p := range w.processes[:m.processes] {
		if state(p.state) == held && p.left > 0 {
			believers++
		}
	}
	switch { // where Redis loses its data, tokens still tell holders apart, and everybody is served
	case w.wrong != fine:
		return w.wrong
	case believers > 1 && !m.wipes:
		return twoHolders
	case !m.wipes && m.isOrphan(w):
		return orphaned
	case m.fresh && m.missesSomething(w):
		return unasked
	}
	return fine
}

// missesSomething says whether a process waits and listens, and is not about to learn what it has missed
// before it listened: that it has the lock, or that it must say that it listens.
func (m model) missesSomething(w *world) bool {
	for i, p := range w.processes[:m.processes] {
		if state(p.state) != waiting || p.deaf || p.due || w.heartbeatsOf(i) > 0 || w.sent(push, int8(i+1), p.attempt) {
			continue
		}
		if q := w.waiting(int8(i + 1)); w.holds(int8(i+1), p.attempt) || q != nil && !q.visible {
			return true
		}
	}
	return false
}

// isOrphan says whether the lock is with an attempt that its living process neither
// goes by nor is about to give back.
func (m model) isOrphan(w *world) bool {
	if w.owner == 0 {
		return false
	}
	p := w.processes[w.owner-1]
	if p.dead || state(p.state) != idle && p.attempt == w.hold || state(p.state) == asking && p.from == w.hold {
		return false
	}
	for _, msg := range w.mail {
		if msg.owner == w.owner && msg.attempt == w.hold && (msg.kind == endRequest || msg.kind == cancelRequest || msg.kind == push) {
			return false
		}
	}
	return true
}

// checkGrant wants that a new owner is notified in the same step, and that no live waiter was
// there before it.
func (m model) checkGrant(before, after *world, caller int8) {
	if after.owner == 0 || after.epoch == before.epoch && before.owner == after.owner {
		return
	}
	notified := slices.ContainsFunc(after.mail[:], func(msg message) bool {
		return msg.owner == after.owner && msg.epoch == after.epoch
	})
	if to := after.processes[after.owner-1]; !notified && !to.dead && !to.deaf && !m.wipes {
		after.wrong = unnotified
	}
	for i, q := range before.queue {
		if q.owner == 0 || q.owner == after.owner || after.owner == caller && i == m.ahead {
			break
		}
		if q.owner == caller {
			continue // a place that it gave up with this request
		}
		gone := q.visible && before.processes[q.owner-1].uncount
		if q.alive > 0 && !gone && !m.wipes {
			after.wrong = overtaken
		}
	}
}

// begin checks the token with which a hold begins.
func (m model) begin(w *world, p *process) {
	token := p.epoch*2 + p.n
	if token <= w.begun && !m.wipes {
		w.wrong = tokenNotNew
	}
	w.begun = max(w.begun, token)
}

func (w *world) somebodyWaits() bool {
	return slices.ContainsFunc(w.processes[:], func(p process) bool { return state(p.state) == asking || state(p.state) == waiting })
}

func (w *world) underWay() int {
	n := 0
	for n < len(w.mail) && w.mail[n].kind != nothing {
		n++
	}
	return n
}

func (w *world) heartbeatsOf(i int) int {
	n := 0
	for _, msg := range w.mail {
		if int(msg.owner) == i+1 && (msg.kind == renewalRequest || msg.kind == renewalAnswer) {
			n++
		}
	}
	return n
}

func (w *world) send(msg message) {
	for i := range w.mail {
		if w.mail[i].kind == nothing {
			w.mail[i] = msg
			return
		}
	}
	panic("too many messages under way")
}
