package redislock

import (
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
