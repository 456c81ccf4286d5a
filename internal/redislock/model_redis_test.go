package redislock

// This half of the model is Redis: what each script does, as in its .lua file.

// carryOut runs the script of one request. What it queues comes before those from ahead on, who have waited for less.
func (m model) carryOut(w *world, r message, ahead int) {
	before := *w
	m.ahead = ahead
	switch r.kind {
	case acquireRequest:
		m.acquire(w, r)
	case releaseRequest:
		m.release(w, r)
	case giveBackRequest:
		m.giveBack(w, r)
	case cancelRequest:
		m.cancel(w, r)
	case beatRequest:
		m.beat(w, r)
	}
	m.checkGrant(&before, w, r.owner)
}

// queues says whether a request may queue its sender.
func (r message) queues() bool {
	return r.kind == releaseRequest || r.kind == acquireRequest && r.more == 1
}

func (w *world) holds(owner, attempt int8) bool { return w.owner == owner && w.hold == attempt }

func (w *world) free() { w.owner, w.hold, w.left, w.epoch = 0, 0, 0, 0 }

// waiting returns the place of a process in the queue, or nil.
func (w *world) waiting(owner int8) *place {
	for i := range w.queue {
		if w.queue[i].owner == owner {
			return &w.queue[i]
		}
	}
	return nil
}

func (w *world) length() int {
	n := 0
	for n < len(w.queue) && w.queue[n].owner != 0 {
		n++
	}
	return n
}

func (w *world) leaveQueue(owner int8) {
	left := 0
	for _, q := range w.queue {
		if q.owner != 0 && q.owner != owner {
			w.queue[left] = q
			left++
		}
	}
	for ; left < len(w.queue); left++ {
		w.queue[left] = place{}
	}
}

// join is the function of the same name in common.lua.
func (m model) join(w *world, owner, attempt int8) {
	w.leaveQueue(owner)
	end := w.length()
	at := min(m.ahead, end)
	copy(w.queue[at+1:end+1], w.queue[at:end])
	w.queue[at] = place{owner, attempt, m.lease}
}

func (m model) take(w *world, owner, attempt int8) {
	w.owner, w.hold, w.left = owner, attempt, m.lease
	// The server's clock has moved on since the last grant, and is not set back.
	clock := w.minted + 1
	w.epoch = max(w.last+1, clock)
	if m.broken == epochByCounter {
		w.epoch = w.last + 1
	}
	w.last = w.epoch
	if w.epoch <= w.minted && m.looksFor(epochNotNew) {
		w.wrong = epochNotNew
	}
	w.minted = max(w.minted, w.epoch)
}

// over is the function of the same name in common.lua.
func (m model) over(w *world, owner, attempt int8) bool {
	mine := w.waiting(owner)
	return mine != nil && mine.attempt > attempt || w.marks[owner-1] >= attempt && m.broken != marksIgnored
}

// grant is the function of the same name in common.lua.
func (m model) grant(w *world, caller int8) {
	for w.queue[0].owner != 0 {
		q := w.queue[0]
		if q.alive == 0 && m.broken == deadHeadStays {
			return
		}
		w.leaveQueue(q.owner)
		if q.alive == 0 {
			continue
		}
		m.take(w, q.owner, q.attempt)
		if q.owner == caller {
			return
		}
		if to := &w.processes[q.owner-1]; !to.deaf {
			w.send(message{kind: push, owner: q.owner, attempt: q.attempt, epoch: w.epoch})
			return
		}
		w.free()
	}
}

// answer sends the reply to a request of which the reader still wants to know.
func (w *world) answer(r message, kind kind, answer int8) {
	r.kind, r.answer, r.epoch = kind, answer, 0
	if answer == replyHeld {
		r.epoch = w.epoch
	}
	w.send(r)
}

func (m model) acquire(w *world, r message) {
	id, attempt := r.owner, r.attempt
	if w.holds(id, attempt) {
		w.left = m.lease
		w.answer(r, acquireAnswer, replyHeld)
		return
	}
	if m.over(w, id, attempt) {
		w.answer(r, acquireAnswer, replyDropped)
		return
	}
	if r.more == 0 {
		w.leaveQueue(id)
	}
	free := w.owner == 0
	if free && (w.queue[0].owner == 0 || w.queue[0].owner == id || m.broken == barging) {
		w.leaveQueue(id)
		m.take(w, id, attempt)
		w.answer(r, acquireAnswer, replyHeld)
		return
	}
	if r.more == 1 {
		m.join(w, id, attempt)
	}
	if free {
		m.grant(w, id)
		if !w.holds(id, attempt) && w.owner == 0 && m.broken != deadHeadStays {
			m.take(w, id, attempt)
		}
		if w.holds(id, attempt) {
			w.answer(r, acquireAnswer, replyHeld)
			return
		}
	}
	w.answer(r, acquireAnswer, replyWaiting)
}

func (m model) release(w *world, r message) {
	id, next := r.owner, r.more
	if !w.holds(id, r.attempt) && !(m.broken == releaseOfAnyHold && w.owner == id) {
		w.answer(r, releaseAnswer, replyNotHeld)
		return
	}
	w.free()
	caller := int8(0)
	if !m.over(w, id, next) || m.broken == cancelledNextQueues {
		m.join(w, id, next)
		caller = id
	}
	m.grant(w, caller)
	if w.holds(id, next) {
		w.answer(r, releaseAnswer, replyHeld)
	} else {
		w.answer(r, releaseAnswer, replyWaiting)
	}
}

func (m model) giveBack(w *world, r message) {
	if w.holds(r.owner, r.attempt) || m.broken == releaseOfAnyHold && w.owner == r.owner {
		w.free()
		m.grant(w, m.silent(r.owner))
	}
}

// silent is who is not told of a grant: nobody, as these answers are not looked at.
func (m model) silent(caller int8) int8 {
	if m.broken == callerUntold {
		return caller
	}
	return 0
}

func (m model) cancel(w *world, r message) {
	if mine := w.waiting(r.owner); mine != nil && mine.attempt == r.attempt {
		w.leaveQueue(r.owner)
	}
	w.marks[r.owner-1] = max(w.marks[r.owner-1], r.attempt)
	if w.holds(r.owner, r.attempt) || m.broken == cancelOfAnyHold && w.owner == r.owner {
		w.free()
		m.grant(w, m.silent(r.owner))
	}
}

func (m model) beat(w *world, r message) {
	answer := int8(replyDropped)
	mine := w.waiting(r.owner)
	queued := mine != nil && mine.attempt == r.attempt
	if m.broken == beatQueues && r.more == 0 && !w.holds(r.owner, r.attempt) {
		queued = true
	}
	if r.more == 0 && queued {
		if mine == nil {
			m.join(w, r.owner, r.attempt)
		} else {
			*mine = place{r.owner, r.attempt, m.lease}
		}
		if w.owner == 0 && m.broken != beatGrantsNothing {
			m.grant(w, r.owner)
		}
		answer = replyWaiting
	}
	if w.holds(r.owner, r.attempt) {
		w.left = m.lease
		answer = replyHeld
	}
	w.answer(r, beatAnswer, answer)
}
