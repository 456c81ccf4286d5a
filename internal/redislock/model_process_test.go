package redislock

import (
	"fmt"
	"time"
)

// This half of the model is the Locker: the shipped state machine, and what a process does by
// itself.

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
				do("asks", func(w *world, _ *process) { m.ask(w, i, false) })
				if m.tries {
					do("tries", func(w *world, _ *process) { m.ask(w, i, true) })
				}
			}
		case asking:
			if room {
				do("gets no answer and gives up", func(w *world, _ *process) { m.unanswered(w, i) })
			}
		case waiting:
			if room {
				do("waits no longer", func(w *world, _ *process) { m.unanswered(w, i) })
			}
		case held:
			if p.left == 0 && room {
				do("is at its deadline: the hold ends", func(w *world, p *process) {
					machine := m.machine(p)
					next, _ := machine.look(modelStart)
					m.settle(w, i, &machine, next, false)
				})
			}
			if p.left > 0 && room {
				do("releases", func(w *world, _ *process) { m.release(w, i) })
				do("releases, and asks for its next waiter", func(w *world, p *process) {
					machine, over, next := m.machine(p), p.attempt, p.attempt+1
					machine.stop()
					machine.ask(modelStart, uint64(next), machine.lease)
					w.send(message{kind: releaseRequest, owner: int8(i + 1), attempt: over, more: next})
					m.settle(w, i, &machine, todo{}, false)
					p.from = over
				})
			}
			if machine := m.machine(p); p.n == 0 && machine.mayPass(machine.lease, modelStart) {
				do("passes the lock on to its next waiter", func(w *world, p *process) {
					machine := m.machine(p)
					next := machine.pass()
					m.settle(w, i, &machine, next, false)
				})
			}
		}
		if st := state(p.state); room && w.heartbeatsOf(i) < m.heartbeats && (st == held || st == waiting) {
			do("sends a renewal", func(w *world, _ *process) { w.sendRenewal(i) })
		}
		if p.deaf || p.uncount {
			do("subscribes", func(_ *world, p *process) { m.subscribe(p) })
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
		if msg.kind <= renewalRequest {
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
	for i, msg := range w.mail {
		if msg.kind == nothing {
			break
		}
		// What cleans up is sent again until it is answered, so it may arrive twice but is not
		// lost.
		if msg.kind == endRequest || msg.kind == cancelRequest {
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
			after.processes[i].deaf, after.processes[i].uncount = true, true
			for j, msg := range after.mail {
				if msg.kind == push && int(msg.owner) == i+1 {
					after.mail[j] = message{}
				}
			}
			then(after, event{what: "is cut off from its messages", process: i})
		}
		if !p.uncount {
			after := faulty
			after.processes[i].uncount = true
			then(after, event{what: "is not counted any more, and hears", process: i})
		}
		if m.crashes {
			after := faulty
			after.processes[i] = process{attempt: p.attempt, deaf: true, uncount: true, dead: true}
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

// modelStart is the time on each process's clock. It is always now: what a process remembers is so
// many ticks ago.
const modelStart = instant(time.Hour)

// machine is the shipped state machine of a process.
func (m model) machine(p *process) machine {
	lease := time.Duration(m.lease) * modelTick
	x := machine{state: state(p.state), attempt: uint64(p.attempt), lease: lease, bound: modelStart - time.Duration(p.bound)*modelTick}
	switch x.state {
	case idle:
		x.attempt = 0
	case waiting:
		x.due = modelStart + third(lease)
	case held:
		x.epoch, x.passes, x.given, x.due, x.ends = int64(p.epoch), int64(p.n), modelStart, modelStart+third(lease), never
		x.deadline = modelStart + time.Duration(p.left)*modelTick - margin(lease)
	}
	if p.due {
		x.due = modelStart
	}
	return x
}

// settle takes over what a transition made of a machine, and does what it left to be done, as
// Locker.settleLocked does. Somebody may wait still.
func (m model) settle(w *world, i int, x *machine, next todo, waits bool) {
	p := &w.processes[i]
	if next.over != 0 {
		w.send(message{kind: cancelRequest, owner: int8(i + 1), attempt: int8(next.over)})
	}
	p.state, p.due = int8(x.state), m.fresh && x.due == modelStart
	switch x.state {
	case asking, waiting:
		p.attempt, p.bound = int8(x.attempt), min(int8((modelStart-x.bound)/modelTick), m.lease)
	case held:
		p.had, p.epoch, p.n = int8(x.attempt), int8(x.epoch), int8(x.passes)
		p.left = int8(max((x.deadline-modelStart+margin(x.lease))/modelTick, 0))
	}
	switch {
	case next.serve:
		m.begin(w, p)
	case x.state == idle && waits:
		m.ask(w, i, false)
	}
}

func (m model) ask(w *world, i int, try bool) {
	p := &w.processes[i]
	x, attempt := m.machine(p), p.attempt+1
	x.ask(modelStart, uint64(attempt), x.lease)
	m.settle(w, i, &x, todo{}, false)
	p.from, p.try = 0, try
	queue := int8(1)
	if try {
		queue = 0
	}
	w.send(message{kind: acquireRequest, owner: int8(i + 1), attempt: attempt, more: queue})
}

func (m model) release(w *world, i int) {
	machine := m.machine(&w.processes[i])
	machine.stop()
	w.send(message{kind: endRequest, owner: int8(i + 1), attempt: w.processes[i].attempt})
	m.settle(w, i, &machine, todo{}, false)
}

// subscribe is a subscription that is confirmed.
func (m model) subscribe(p *process) {
	x := m.machine(p)
	p.deaf, p.uncount = false, false
	x.resume(modelStart)
	p.due = m.fresh && x.due == modelStart
}

func (w *world) sendRenewal(i int) {
	p := &w.processes[i]
	p.due = false
	hold := int8(0)
	if state(p.state) == held {
		hold = 1
	}
	w.send(message{kind: renewalRequest, owner: int8(i + 1), attempt: p.attempt, more: hold})
}

// unanswered is a request without an answer: whatever became of it is ended, and so is what it was
// to release.
func (m model) unanswered(w *world, i int) {
	p := &w.processes[i]
	x, from := m.machine(p), p.from
	m.settle(w, i, &x, x.giveUp(), false)
	if from != 0 {
		w.send(message{kind: cancelRequest, owner: int8(i + 1), attempt: from})
	}
}

// read is what a process does with an answer or a push.
func (m model) read(w *world, msg message) {
	i := int(msg.owner - 1)
	p := &w.processes[i]
	x, was := m.machine(p), state(p.state)
	sent := modelStart - time.Duration(msg.age)*modelTick
	r := reply{kind: int64(msg.answer), epoch: int64(msg.epoch)}
	var next todo
	switch msg.kind {
	case push:
		r.kind = replyHeld
		next = x.pushed(uint64(msg.attempt), uint64(p.had), r, modelStart)
	case renewalAnswer:
		next = x.renewed(uint64(msg.attempt), msg.more == 1, r, sent, modelStart)
	default:
		next = x.answered(uint64(msg.about()), r, msg.kind == releaseAnswer || msg.more == 1, sent, modelStart)
	}
	m.settle(w, i, &x, next, was != held && was != idle && !p.try)
}

// fairly is the one next step of a run without faults in which nobody is late: what was sent
// arrives, who holds releases, who waits sends a heartbeat once a tick, and nobody new asks.
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
		case p.deaf || p.uncount:
			m.subscribe(&after.processes[i])
			then(after, event{what: "subscribes", process: i})
		case st == held:
			m.release(&after, i)
			then(after, event{what: "releases", process: i})
		case st == asking:
			m.unanswered(&after, i)
			then(after, event{what: "gets no answer and gives up", process: i})
		case st == waiting && (p.bound > 0 || p.due):
			after.sendRenewal(i)
			then(after, event{what: "sends a renewal", process: i})
		}
	}
	if first == nil {
		m.pass(&w)
		first = &event{what: tick}
	}
	return w, *first
}
