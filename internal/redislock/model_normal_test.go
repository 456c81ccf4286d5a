package redislock

import (
	"math/bits"
	"slices"
)

// normal gives worlds that behave alike one form, so that runs of any length stay within finitely
// many worlds: what can have no effect any more is taken out, and of the numbers of attempts and
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
			*p = process{attempt: p.attempt, had: p.had, deaf: p.deaf, uncount: p.uncount, dead: p.dead}
		case asking:
			p.left, p.epoch, p.n = 0, 0, 0
		case waiting:
			p.left, p.epoch, p.n, p.from = 0, 0, 0, 0
		case held:
			p.from, p.bound, p.try, p.due = 0, 0, false, false
		}
	}
}

// relevant is a message without what its reader will not look at, or none if nothing
// can come of it any more.
func (m model) relevant(w *world, msg message) message {
	p, about := w.processes[msg.owner-1], msg.about()
	current := state(p.state) != idle && p.attempt == about && !p.dead
	if !current {
		msg.age = 0
	}
	futile := false
	switch msg.kind {
	case acquireRequest:
		futile = !current && w.marks[msg.owner-1] >= about
	case releaseRequest:
		futile = !current && !w.holds(msg.owner, msg.attempt)
	case endRequest:
		futile = !w.mayHold(msg.owner, about)
	case cancelRequest:
		futile = !w.mayHold(msg.owner, about) && !w.asks(msg.owner, 0, about)
	case renewalRequest:
		futile = !current && !w.mayHold(msg.owner, about)
	case acquireAnswer, releaseAnswer, renewalAnswer:
		futile = !current
	case push:
		futile = p.dead || !current && !w.mayHold(msg.owner, about)
	}
	if futile {
		return message{}
	}
	switch msg.kind {
	case endRequest, cancelRequest, push:
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
	return w.asks(owner, attempt, attempt)
}

// asks says whether a request to queue under one of these attempts is under way.
func (w *world) asks(owner, from, to int8) bool {
	for _, msg := range w.mail {
		if a := msg.about(); msg.owner == owner && (msg.kind == acquireRequest || msg.kind == releaseRequest) && from <= a && a <= to {
			return true
		}
	}
	return false
}

// ranks gives numbers of which only the order matters the smallest ones that have it. Zero
// means that there is none, and stays.
type ranks struct {
	fields [2*maxMail + 7]*int8
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
		// A mark is as good as one at the newest attempt that it keeps out.
		if a := msg.about(); (msg.kind == releaseRequest || msg.kind == acquireRequest) && a <= *mark {
			oldest = max(oldest, a)
		}
		r.add(&msg.attempt)
		if msg.kind == releaseRequest || msg.kind == releaseAnswer {
			r.add(&msg.more)
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
	// Of the attempts that can be told, those that were a hold are not heard again.
	had := p.had
	if p.had = 0; had == p.attempt && state(p.state) == held {
		p.had = had
	}
	for _, f := range r.fields[:r.n] {
		if *f <= had {
			p.had = max(p.had, *f)
		}
	}
	if state(p.state) == idle {
		p.attempt = 0
		for _, f := range r.fields[:r.n] {
			p.attempt = max(p.attempt, *f)
		}
	}
	r.add(&p.attempt)
	r.add(&p.had)
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
