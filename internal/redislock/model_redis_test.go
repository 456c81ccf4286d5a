package redislock

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// This half of the model is Redis: the shipped scripts on a store that is made of a world.

// The store's clock, and how numbers of the model are written there: a tick is a second, an epoch
// of the model is so many microseconds after firstEpoch, and each place in the queue is a
// millisecond after the one before it.
const (
	modelNow   = int64(2_000_000_000_000_000)
	firstEpoch = modelNow - 1000
	modelTick  = time.Second
	modelName  = "{k}"
)

var modelKeys = keysOf(modelName)

// redisState is what a request's effect depends on, and what it changes.
type redisState struct {
	owner, hold, left int8
	epoch, last       int8
	queue             [maxProcesses]place
	marks             [maxProcesses]int8
	uncount           [maxProcesses]bool
	minted            int8
}

// effect is what a request does.
type effect struct {
	after  redisState
	answer int8
	epoch  int8
	push   [maxProcesses]message // by the process that is notified
}

// carried is a request with what its effect depends on, for what was carried out before.
type carried struct {
	lease int8
	state redisState
	r     message
	ahead int
}

// engine runs scripts for searches. Searches share it one after another.
type engine struct {
	interpreter *interpreter
	known       map[carried]effect
}

func newEngine() *engine { return &engine{newInterpreter(), map[carried]effect{}} }

// carryOut runs the script of one request. What it queues comes before those from ahead on, who
// have waited for less.
func (m model) carryOut(w *world, r message, ahead int) {
	before := *w
	m.ahead = ahead
	in := carried{m.lease, redisState{owner: w.owner, hold: w.hold, left: w.left, epoch: w.epoch, last: w.last, queue: w.queue, marks: w.marks, minted: w.minted}, r, ahead}
	in.r.age = 0
	for i, p := range w.processes {
		in.state.uncount[i] = p.uncount
	}
	e, is := m.engine.known[in]
	if !is {
		e = m.engine.carryOut(in)
		m.engine.known[in] = e
	}
	a := e.after
	w.owner, w.hold, w.left, w.epoch, w.last, w.queue, w.marks, w.minted = a.owner, a.hold, a.left, a.epoch, a.last, a.queue, a.marks, a.minted
	if w.minted > before.minted && w.epoch <= before.minted && w.epoch != before.epoch {
		w.wrong = epochNotNew
	}
	if w.owner != 0 && (w.owner != before.owner || w.epoch != before.epoch) && w.epoch <= before.minted {
		w.wrong = epochNotNew
	}
	for i, push := range e.push {
		if push.kind != nothing && !w.processes[i].deaf && !w.processes[i].dead {
			w.send(push)
		}
	}
	switch r.kind {
	case acquireRequest, releaseRequest, renewalRequest:
		r.kind += acquireAnswer - acquireRequest
		if in.r.kind == renewalRequest {
			r.kind = renewalAnswer
		}
		r.answer, r.epoch = e.answer, e.epoch
		w.send(r)
	}
	m.checkGrant(&before, w, r.owner)
}

func modelID(owner int8) string { return "P" + strconv.Itoa(int(owner)) }

func ownerOf(id string) int8 { return int8(id[1] - '0') }

// carryOut runs a script.
func (e *engine) carryOut(in carried) effect {
	s, st, r := newStore(modelNow), in.state, in.r
	lease := time.Duration(in.lease) * modelTick
	ticks := func(n int8) int64 { return int64(n) * modelTick.Milliseconds() }
	if st.owner != 0 {
		s.do("SET", modelKeys.Lock, fmt.Sprint(modelID(st.owner), " ", st.hold, " ", firstEpoch+int64(st.epoch)), "PX", fmt.Sprint(ticks(st.left)))
	}
	if st.last != 0 {
		s.do("SET", modelKeys.Epoch, fmt.Sprint(firstEpoch+int64(st.last)), "PX", "60000")
	}
	came := func(i int) int64 { return modelNow - 1e6 + int64(i)*1000 }
	places := 0
	for i, q := range st.queue {
		if q.owner == 0 {
			break
		}
		places++
		s.do("ZADD", modelKeys.Queue, fmt.Sprint(came(i)), modelID(q.owner))
		heartbeat := modelNow + ticks(q.alive)*1000 - lease.Microseconds()
		if q.alive == 0 {
			heartbeat--
		}
		s.do("HSET", modelKeys.Waiters, modelID(q.owner), fmt.Sprintf("%d:%d:%d:%d", q.attempt, heartbeat, lease.Milliseconds(), asInt(q.visible)))
	}
	for i, mark := range st.marks {
		if mark != 0 {
			s.do("HSET", modelKeys.Waiters, "c:"+modelID(int8(i+1)), fmt.Sprint(mark))
		}
	}
	s.counted = func(channel string) int64 {
		return asInt(!st.uncount[ownerOf(strings.TrimPrefix(channel, "redislock:"))-1])
	}
	var done effect
	s.published = func(channel, text string) int64 {
		to := ownerOf(strings.TrimPrefix(channel, "redislock:"))
		var attempt, epoch int64
		if n, _ := fmt.Sscanf(text, "granted %d %d", &attempt, &epoch); n == 2 {
			done.push[to-1] = message{kind: push, owner: to, attempt: int8(attempt), epoch: modelEpoch(epoch, st.minted)}
		}
		return s.counted(channel)
	}

	waited := time.Duration(0)
	if in.ahead < places {
		waited = time.Duration(modelNow-came(in.ahead)+500) * time.Microsecond
	}
	var script *script
	more := []any{lease.Milliseconds()}
	switch r.kind {
	case acquireRequest:
		script = acquireScript
		if r.more == 1 {
			more = append(more, waited.Microseconds())
		}
	case releaseRequest:
		script, more = releaseScript, []any{r.more, lease.Milliseconds(), waited.Microseconds()}
	case endRequest:
		script, more = releaseScript, nil
	case cancelRequest:
		script = cancelScript
	case renewalRequest:
		script = heartbeatScript
		if r.more == 1 {
			script = renewScript
		}
	}
	args := server{id: modelID(r.owner)}.command(script, newLock(modelName), uint64(r.attempt), more...).Args()[2:]
	v, err := e.interpreter.run(s, script.source, args)
	if err != nil {
		panic(fmt.Sprintf("%+v: %v", in, err))
	}
	answer, err := parseReply(v, nil)
	if err != nil {
		panic(fmt.Sprintf("%+v: %v", in, err))
	}
	done.answer = int8(answer.kind)
	if answer.kind == replyHeld && script != renewScript {
		done.epoch = modelEpoch(answer.epoch, st.minted)
	}
	done.after = stateOf(s, in)
	return done
}

// modelEpoch is an epoch of the model: those that are made now are new.
func modelEpoch(epoch int64, minted int8) int8 {
	switch {
	case epoch >= modelNow:
		return minted + 1 + int8(epoch-modelNow)
	case epoch < firstEpoch:
		return int8(epoch)
	}
	return int8(epoch - firstEpoch)
}

// stateOf is what a store has.
func stateOf(s *store, in carried) redisState {
	st := redisState{uncount: in.state.uncount, minted: in.state.minted}
	if value, is := s.strings[modelKeys.Lock]; is {
		var id string
		var hold, epoch int64
		fmt.Sscan(value, &id, &hold, &epoch)
		st.owner, st.hold, st.left = ownerOf(id), int8(hold), int8(s.ttls[modelKeys.Lock]/modelTick.Milliseconds())
		st.epoch = modelEpoch(epoch, st.minted)
	}
	if value, is := s.strings[modelKeys.Epoch]; is {
		epoch, _ := strconv.ParseInt(value, 10, 64)
		st.last = modelEpoch(epoch, st.minted)
	}
	st.minted = max(st.minted, st.epoch, st.last)
	for i, id := range s.order(modelKeys.Queue) {
		w := s.hashes[modelKeys.Waiters][id]
		var attempt, heartbeat, lease, visible int64
		fmt.Sscanf(w, "%d:%d:%d:%d", &attempt, &heartbeat, &lease, &visible)
		st.queue[i] = place{ownerOf(id), int8(attempt), int8(max(heartbeat+lease*1000-modelNow, 0) / modelTick.Microseconds()), visible == 1}
	}
	for i := range st.marks {
		mark, _ := strconv.ParseInt(s.hashes[modelKeys.Waiters]["c:"+modelID(int8(i+1))], 10, 8)
		st.marks[i] = int8(mark)
	}
	return st
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
