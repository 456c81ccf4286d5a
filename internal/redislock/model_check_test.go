package redislock

import (
	"math/bits"
	"slices"
)

// check says what is wrong in a world, if it is looked for.
func (m model) check(w *world) breach {
	believers := 0
	for _, p := range w.processes[:m.processes] {
		if state(p.state) == held && p.left > 0 {
			believers++
		}
	}
	switch {
	case w.wrong != fine:
		return w.wrong
	case believers > 1 && m.looksFor(twoHolders):
		return twoHolders
	case m.looksFor(orphaned) && m.isOrphan(w):
		return orphaned
	}
	return fine
}

// looksFor says whether a search minds a breach. One that lets Redis lose its data cannot want one
// holder, or that nobody is overtaken; it still wants tokens to tell holders apart, and everybody to be served.
func (m model) looksFor(b breach) bool {
	if m.only != fine {
		return m.only == b
	}
	return !m.wipes || b == epochNotNew || b == forgotten
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
		if msg.owner == w.owner && msg.attempt == w.hold && (msg.kind == giveBackRequest || msg.kind == cancelRequest || msg.kind == push) {
			return false
		}
	}
	return true
}

// checkGrant wants that a new owner is told in the same step, and that no live waiter was
// there before it.
func (m model) checkGrant(before, after *world, caller int8) {
	if after.owner == 0 || after.epoch == before.epoch && before.owner == after.owner {
		return
	}
	told := slices.ContainsFunc(after.mail[:], func(msg message) bool {
		return msg.owner == after.owner && msg.epoch == after.epoch
	})
	if !told && !after.processes[after.owner-1].dead && m.looksFor(untold) {
		after.wrong = untold
	}
	for _, q := range before.queue {
		if q.owner == 0 || q.owner == after.owner {
			break
		}
		if q.owner == caller {
			continue // a place that it gave up with this request
		}
		if q.alive > 0 && !before.processes[q.owner-1].deaf && m.looksFor(overtaken) {
			after.wrong = overtaken
		}
	}
}

// begin checks the token with which a hold begins.
func (m model) begin(w *world, p *process) {
	token := p.epoch*2 + p.n
	if token <= w.begun && m.looksFor(tokenNotNew) {
		w.wrong = tokenNotNew
	}
	w.begun = max(w.begun, token)
}

func (w *world) somebodyWaits() bool {
	for _, p := range w.processes {
		if st := state(p.state); st == asking || st == waiting {
			return true
		}
	}
	return false
}

func (w *world) underWay() int {
	n := 0
	for n < len(w.mail) && w.mail[n].kind != nothing {
		n++
	}
	return n
}

func (w *world) beatsOf(i int) int {
	n := 0
	for _, msg := range w.mail {
		if int(msg.owner) == i+1 && (msg.kind == beatRequest || msg.kind == beatAnswer) {
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

// normal gives worlds that behave alike one form, so that runs of any length stay within
// finitely many worlds: what can have no effect any more is taken out, and of the numbers of attempts and
// epochs only their order is kept.
func (m model) normal(w world) world {
	m.prune(&w)
	for i := range m.processes {
		w.renumberAttempts(int8(i + 1))
	}
	w.renumberEpochs()
	w.sortMail()
	return w
}

// sortMail puts messages in an order of their own; there is none between them.
func (w *world) sortMail() {
	var keys [maxMail]uint64
	n := 0
	for _, msg := range w.mail {
		if msg.kind == nothing {
			continue
		}
		key, i := msg.key(), n
		for ; i > 0 && keys[i-1] > key; i-- {
			keys[i], w.mail[i] = keys[i-1], w.mail[i-1]
		}
		keys[i], w.mail[i] = key, msg
		n++
	}
	clear(w.mail[n:])
}

func (msg message) key() uint64 {
	var key uint64
	for _, part := range [...]int8{int8(msg.kind), msg.owner, msg.attempt, msg.more, msg.age, msg.answer, msg.epoch} {
		key = key<<8 | uint64(uint8(part))
	}
	return key
}

// prune takes out what can have no effect any more.
func (m model) prune(w *world) {
	for i := range w.mail {
		if msg := &w.mail[i]; msg.kind != nothing {
			*msg = m.relevant(w, *msg)
		}
	}
	for i := range m.processes {
		p := &w.processes[i]
		if p.from != 0 && !w.holds(int8(i+1), p.from) && !w.sent(releaseRequest, int8(i+1), p.from) {
			p.from = 0 // it has been given back
		}
		switch state(p.state) {
		case idle:
			*p = process{attempt: p.attempt, deaf: p.deaf, dead: p.dead}
		case asking:
			p.left, p.epoch, p.n = 0, 0, 0
		case waiting:
			p.left, p.epoch, p.n, p.from = 0, 0, 0, 0
		case held:
			p.from, p.bound, p.try = 0, 0, false
		}
	}
}

// relevant is a message without what its reader will not look at, or none if nothing
// can come of it any more.
func (m model) relevant(w *world, msg message) message {
	p := w.processes[msg.owner-1]
	about := msg.attempt
	if msg.kind == releaseRequest || msg.kind == releaseAnswer {
		about = msg.more
	}
	current := state(p.state) != idle && p.attempt == about && !p.dead
	if !current && m.broken != pastBelieved {
		msg.age = 0
	}
	futile := false
	switch msg.kind {
	case acquireRequest:
		futile = !current && w.marks[msg.owner-1] >= about && m.broken != marksIgnored
	case releaseRequest:
		futile = !current && !w.holds(msg.owner, msg.attempt) && m.broken != releaseOfAnyHold
	case giveBackRequest:
		futile = !w.mayHold(msg.owner, about) && m.broken != releaseOfAnyHold
	case cancelRequest:
		futile = !w.mayHold(msg.owner, about) && !w.asksBefore(msg.owner, about) && m.broken != cancelOfAnyHold
	case beatRequest:
		futile = !current && !w.mayHold(msg.owner, about) && m.broken != beatQueues
	case acquireAnswer, releaseAnswer, beatAnswer:
		futile = !current && m.broken != pastBelieved
	case push:
		futile = p.dead || !current && !w.mayHold(msg.owner, about) && m.broken != pastBelieved
	}
	if futile {
		return message{}
	}
	switch msg.kind {
	case giveBackRequest, cancelRequest, push:
		msg.age = 0
	}
	return msg
}

func (w *world) sent(kind kind, owner, attempt int8) bool {
	return slices.ContainsFunc(w.mail[:], func(msg message) bool {
		return msg.kind == kind && msg.owner == owner && msg.attempt == attempt
	})
}

// mayHold says whether an attempt holds the lock or may still come to.
func (w *world) mayHold(owner, attempt int8) bool {
	q := w.waiting(owner)
	if w.holds(owner, attempt) || q != nil && q.attempt == attempt {
		return true
	}
	for _, msg := range w.mail {
		if msg.owner == owner && (msg.kind == acquireRequest && msg.attempt == attempt || msg.kind == releaseRequest && msg.more == attempt) {
			return true
		}
	}
	return false
}

// asksBefore says whether a request to queue under this attempt or an older one is under way.
func (w *world) asksBefore(owner, attempt int8) bool {
	for _, msg := range w.mail {
		if msg.owner == owner && (msg.kind == acquireRequest && msg.attempt <= attempt || msg.kind == releaseRequest && msg.more <= attempt) {
			return true
		}
	}
	return false
}

// ranks gives numbers of which only the order matters the smallest ones that have it. Zero
// means that there is none, and stays.
type ranks struct {
	fields [2*maxMail + 6]*int8
	n      int
}

func (r *ranks) add(field *int8) {
	if *field != 0 {
		r.fields[r.n] = field
		r.n++
	}
}

func (r *ranks) assign() {
	var there uint64 // bit by bit, which numbers there are
	for _, f := range r.fields[:r.n] {
		there |= 1 << *f
	}
	for _, f := range r.fields[:r.n] {
		*f = int8(bits.OnesCount64(there & (2<<*f - 1)))
	}
}

func (w *world) renumberAttempts(owner int8) {
	var r ranks
	p, mark, oldest := &w.processes[owner-1], &w.marks[owner-1], int8(0)
	for i := range w.mail {
		msg := &w.mail[i]
		if msg.owner != owner {
			continue
		}
		r.add(&msg.attempt)
		asked := msg.attempt
		if msg.kind == releaseRequest || msg.kind == releaseAnswer {
			r.add(&msg.more)
			asked = msg.more
		}
		// A mark is as good as one at the newest attempt that it keeps out.
		if (msg.kind == releaseRequest || msg.kind == acquireRequest) && asked <= *mark {
			oldest = max(oldest, asked)
		}
	}
	*mark = oldest
	r.add(mark)
	if w.owner == owner {
		r.add(&w.hold)
	}
	if q := w.waiting(owner); q != nil {
		r.add(&q.attempt)
	}
	r.add(&p.from)
	if state(p.state) == idle {
		p.attempt = 0
		for _, f := range r.fields[:r.n] {
			p.attempt = max(p.attempt, *f)
		}
	}
	r.add(&p.attempt)
	r.assign()
}

func (w *world) renumberEpochs() {
	var r ranks
	newest := int8(0)
	see := func(epoch *int8) {
		r.add(epoch)
		newest = max(newest, *epoch)
	}
	for i := range w.mail {
		see(&w.mail[i].epoch)
	}
	working := false
	begun, n := w.begun/2, w.begun%2
	for i := range w.processes {
		see(&w.processes[i].epoch)
		working = working || w.processes[i].epoch == begun
	}
	see(&w.epoch)
	if !working {
		n = 0
	}
	if newest < begun {
		newest = begun
	}
	// Of the last epoch it matters only that the next one is larger.
	lost := w.last < w.minted
	w.minted = max(newest, min(w.minted, 1))
	w.last = w.minted
	if lost {
		w.last = 0
	}
	r.add(&begun)
	r.add(&w.last)
	r.add(&w.minted)
	r.assign()
	w.begun = 2*begun + n
}
