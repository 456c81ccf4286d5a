package redislock

import "fmt"

// This half of the model is the Locker: what a process does by itself, and with what it is told.

// successors says what may happen next.
func (m model) successors(w *world, then func(world, event)) {
	room := w.underWay() < m.mail
	for i := range m.processes {
		p := &w.processes[i]
		if p.dead {
			continue
		}
		do := func(what string, act func(*world, *process)) {
			after := *w
			act(&after, &after.processes[i])
			then(after, event{what: what, process: i})
		}
		switch state(p.state) {
		case idle:
			if room {
				do("asks", func(w *world, _ *process) { w.ask(i, false) })
				if m.tries {
					do("tries", func(w *world, _ *process) { w.ask(i, true) })
				}
			}
		case asking:
			if room {
				do("gets no answer and gives up", func(w *world, _ *process) { m.giveUp(w, i) })
			}
		case waiting:
			if room {
				do("waits no longer", func(w *world, _ *process) { m.giveUp(w, i) })
			}
		case held:
			if p.left == 0 && room {
				do("is at its deadline: the hold ends", func(w *world, _ *process) { m.lose(w, i) })
			}
			if p.left > 0 && room {
				do("releases", func(w *world, _ *process) { m.lose(w, i) })
				do("releases, and asks for its next waiter", func(w *world, p *process) {
					p.from, p.state, p.attempt, p.bound = p.attempt, int8(asking), p.attempt+1, 0
					w.send(message{kind: releaseRequest, owner: int8(i + 1), attempt: p.from, more: p.attempt})
				})
			}
			if p.n == 0 && p.left >= m.third() {
				do("passes the lock on to its next waiter", func(w *world, p *process) {
					if m.broken != passKeepsToken {
						p.n++
					}
					m.begin(w, p)
				})
			}
		}
		if st := state(p.state); room && w.beatsOf(i) < m.beats && (st == held || st == waiting && m.broken != waitsWithoutBeats) {
			do("beats", func(w *world, _ *process) { w.sendBeat(i) })
		}
		if p.deaf {
			do("subscribes again", func(_ *world, p *process) { p.deaf = false })
		}
	}
	m.deliveries(w, then)
	if w.faults < m.faults {
		m.mishaps(w, then)
	}
	after := *w
	m.pass(&after)
	then(after, event{what: tick})
}

// deliveries has each message arrive.
func (m model) deliveries(w *world, then func(world, event)) {
	for i, msg := range w.mail {
		if msg.kind == nothing {
			return
		}
		after := *w
		after.mail[i] = message{}
		what := "is read"
		if msg.kind <= beatRequest {
			what = "is carried out"
			end := w.length()
			m.carryOut(&after, msg, end)
			for ahead := range end {
				if msg.queues() {
					earlier := *w
					earlier.mail[i] = message{}
					m.carryOut(&earlier, msg, ahead)
					then(earlier, event{what: fmt.Sprintf("is carried out, ahead of %d", end-ahead), message: msg})
				}
			}
		} else {
			m.read(&after, msg)
		}
		then(after, event{what: what, message: msg})
	}
}

// mishaps are the faults.
func (m model) mishaps(w *world, then func(world, event)) {
	faulty := *w
	faulty.faults++
	if m.broken == sendsAgain {
		m.sendAgain(&faulty, then)
		return
	}
	for i, msg := range w.mail {
		if msg.kind == nothing {
			break
		}
		// What cleans up is sent again until it is answered, so it may arrive twice but is not lost.
		if msg.kind == giveBackRequest || msg.kind == cancelRequest {
			after := faulty
			m.carryOut(&after, msg, w.length())
			then(after, event{what: "is carried out, and its answer is lost", message: msg})
			continue
		}
		after := faulty
		after.mail[i] = message{}
		then(after, event{what: "is lost", message: msg})
	}
	for i := range m.processes {
		p := &w.processes[i]
		if p.dead {
			continue
		}
		if !p.deaf {
			after := faulty
			after.processes[i].deaf = true
			for j, msg := range after.mail {
				if msg.kind == push && int(msg.owner) == i+1 {
					after.mail[j] = message{}
				}
			}
			then(after, event{what: "is cut off from its messages", process: i})
		}
		if m.crashes {
			after := faulty
			after.processes[i] = process{attempt: p.attempt, deaf: p.deaf, dead: true}
			then(after, event{what: "dies", process: i})
		}
	}
	if m.wipes {
		after := faulty
		after.free()
		after.last, after.queue, after.marks = 0, [maxProcesses]place{}, [maxProcesses]int8{}
		then(after, event{what: "and all others: Redis loses its data"})
	}
}

// sendAgain has a client retry what it got no answer to.
func (m model) sendAgain(w *world, then func(world, event)) {
	for i, p := range w.processes[:m.processes] {
		if state(p.state) == asking && p.from == 0 {
			after := *w
			after.send(message{kind: acquireRequest, owner: int8(i + 1), attempt: p.attempt, more: 1, age: p.bound})
			then(after, event{what: "sends acquire again", process: i})
		}
	}
}

// pass lets one tick pass.
func (m model) pass(w *world) {
	older := func(age *int8) { *age = min(*age+1, m.lease) }
	less := func(left *int8) { *left = max(*left-1, 0) }
	if less(&w.left); w.left == 0 {
		w.free()
	}
	for i := range w.queue {
		less(&w.queue[i].alive)
	}
	for i := range m.processes {
		older(&w.processes[i].bound)
		less(&w.processes[i].left)
	}
	for i := range w.underWay() {
		older(&w.mail[i].age)
	}
}

// third is that of a lease, and one tick at least.
func (m model) third() int8 { return max(m.lease/3, 1) }

func (w *world) ask(i int, try bool) {
	p := &w.processes[i]
	p.state, p.attempt, p.from, p.bound, p.try = int8(asking), p.attempt+1, 0, 0, try
	queue := int8(1)
	if try {
		queue = 0
	}
	w.send(message{kind: acquireRequest, owner: int8(i + 1), attempt: p.attempt, more: queue})
}

func (w *world) sendBeat(i int) {
	p := &w.processes[i]
	hold := int8(0)
	if state(p.state) == held {
		hold = 1
	}
	w.send(message{kind: beatRequest, owner: int8(i + 1), attempt: p.attempt, more: hold})
}

// giveUp is a request without an answer, or a waiter that leaves: whatever became of it is taken back.
func (m model) giveUp(w *world, i int) {
	p := &w.processes[i]
	if m.broken != unknownKept {
		w.send(message{kind: cancelRequest, owner: int8(i + 1), attempt: p.attempt})
	}
	if p.from != 0 && m.broken != unknownReleaseKept {
		w.send(message{kind: giveBackRequest, owner: int8(i + 1), attempt: p.from})
	}
	p.state = int8(idle)
}

// lose ends a hold, by a release or at its deadline.
func (m model) lose(w *world, i int) {
	p := &w.processes[i]
	w.send(message{kind: giveBackRequest, owner: int8(i + 1), attempt: p.attempt})
	p.state = int8(idle)
}

// granted begins a hold. The grant was made so many ticks ago at most.
func (m model) granted(w *world, i int, epoch, ago int8) {
	p := &w.processes[i]
	if ago >= m.lease { // too late
		w.send(message{kind: giveBackRequest, owner: int8(i + 1), attempt: p.attempt})
		w.ask(i, false)
		return
	}
	p.state, p.left, p.epoch, p.n = int8(held), m.lease-ago, epoch, 0
	m.begin(w, p)
}

// read is what a process does with an answer or a push.
func (m model) read(w *world, msg message) {
	i := int(msg.owner - 1)
	p := &w.processes[i]
	st := state(p.state)
	about := msg.attempt
	if msg.kind == releaseAnswer {
		about = msg.more
	}
	current := st != idle && about == p.attempt || st != idle && m.broken == pastBelieved
	if msg.kind == push {
		m.pushed(w, i, msg, current)
		return
	}
	if !current {
		return
	}
	ago := msg.age
	if m.broken == deadlineFromAnswer && st != held || m.broken == renewalFromAnswer && st == held {
		ago = 0
	}
	switch {
	case msg.kind != beatAnswer && st != asking:
	case st == held && msg.answer == replyHeld:
		p.left = max(p.left, m.lease-ago)
	case st == held && msg.more == 1 && msg.answer == replyDropped:
		m.lose(w, i)
	case st == held:
	case msg.answer == replyHeld:
		m.granted(w, i, msg.epoch, ago)
	case p.try:
		p.state = int8(idle)
	case msg.answer == replyWaiting && st == asking:
		p.state = int8(waiting)
	case msg.answer == replyWaiting:
		p.bound = min(p.bound, ago)
	case m.broken != droppedWaits:
		w.ask(i, false)
	}
}

func (m model) pushed(w *world, i int, msg message, current bool) {
	p := &w.processes[i]
	ago := p.bound
	if m.broken == deadlineFromPush {
		ago = 0
	}
	switch {
	case !current:
		w.send(message{kind: giveBackRequest, owner: msg.owner, attempt: msg.attempt})
	case state(p.state) == held: // told twice
	case m.lease-ago < m.third(): // the next beat confirms it
	default:
		m.granted(w, i, msg.epoch, ago)
	}
}

// fairly is the one next step of a run without faults in which nobody is late: what was sent arrives, who holds
// releases, who waits beats once a tick, and nobody new asks.
func (m model) fairly(from *world) (world, event) {
	w := *from
	var first *event
	then := func(after world, e event) {
		if first == nil {
			first = &e
			w = after
		}
	}
	m.deliveries(&w, then)
	for i := range m.processes {
		p := &w.processes[i]
		if first != nil {
			break
		}
		after := w
		switch st := state(p.state); {
		case p.dead:
		case p.deaf:
			after.processes[i].deaf = false
			then(after, event{what: "subscribes again", process: i})
		case st == held:
			m.lose(&after, i)
			then(after, event{what: "releases", process: i})
		case st == asking:
			m.giveUp(&after, i)
			then(after, event{what: "gets no answer and gives up", process: i})
		case st == waiting && p.bound > 0 && m.broken != waitsWithoutBeats:
			after.sendBeat(i)
			then(after, event{what: "beats", process: i})
		}
	}
	if first == nil {
		m.pass(&w)
		first = &event{what: tick}
	}
	return w, *first
}
