package redislock

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// This half of the model is Redis: the shipped scripts on keys that are made of a world.

// The clock there, and how numbers of the model are written there: an epoch of the model is so many
// microseconds after firstEpoch, and each place in the queue is a millisecond after the one before it. A tick
// is long compared with the time that Redis takes: the lock's expiry goes by its own clock.
const (
	modelNow   = int64(2_000_000_000_000_000)
	firstEpoch = modelNow - 1000
	modelTick  = time.Minute
	modelName  = "{k}"
)

var modelKeys = keysOf(modelName)

// redisState is what Redis has, and so what a request's effect depends on, and what it changes. A lock whose lease is
// over is gone, so that its owner is nobody.
type redisState struct {
	owner, hold, left int8 // a process + 1, its attempt, ticks until the lease is over
	epoch, last       int8 // of the lock, and the last one, which lingers
	queue             [maxProcesses]place
	marks             [maxProcesses]int8 // the newest attempt that each process has cancelled
	minted            int8               // the largest epoch that was ever given, which only the checks know
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
	lease   int8
	state   redisState
	uncount [maxProcesses]bool
	r       message
	ahead   int
}

// engine runs scripts for searches, on a Redis of its own. Searches share it one after another.
type engine struct {
	client *redis.Client
	hashes map[*script]string // of the scripts with inModel around them
	known  map[carried]effect
}

// inModel runs a script at the model's time, and beside the model's subscribers. It returns what was published, too.
const inModel = `
local seconds, counted, published = ARGV[1], ARGV[2], {}
local function on(call)
	return function(name, ...)
		local first, second = ...
		if name == 'TIME' then return { seconds, '0' } end
		if name == 'PUBSUB' then return { second, string.find(counted, second, 1, true) and 1 or 0 } end
		if name == 'PUBLISH' then published[#published + 1] = first .. ' ' .. second end
		return call(name, ...)
	end
end
local function run(redis, KEYS, ARGV)
%s
end
return { run({ call = on(redis.call), pcall = on(redis.pcall) }, KEYS, { unpack(ARGV, 3) }), published }`

func newEngine(t *testing.T) *engine {
	e := &engine{hashes: map[*script]string{}, known: map[carried]effect{}}
	_, e.client = ownServer(t)
	for _, s := range allScripts {
		hash, err := e.client.ScriptLoad(t.Context(), strings.Replace(inModel, "%s", s.source, 1)).Result()
		must(t, err)
		e.hashes[s] = hash
	}
	return e
}

// carryOut runs the script of one request. What it queues comes before those from ahead on, who
// have waited for less.
func (m model) carryOut(w *world, r message, ahead int) {
	before := *w
	m.ahead = ahead
	in := carried{lease: m.lease, state: w.redisState, r: r, ahead: ahead}
	in.r.age = 0
	for i, p := range w.processes {
		in.uncount[i] = p.uncount
	}
	e, is := m.engine.known[in]
	if !is {
		e = m.engine.carryOut(in)
		m.engine.known[in] = e
	}
	w.redisState = e.after
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
	ctx, p, st, r := context.Background(), e.client.Pipeline(), in.state, in.r
	lease := time.Duration(in.lease) * modelTick
	p.Del(ctx, modelKeys.all()...)
	if st.owner != 0 {
		p.Set(ctx, modelKeys.Lock, fmt.Sprint(modelID(st.owner), " ", st.hold, " ", firstEpoch+int64(st.epoch)), time.Duration(st.left)*modelTick)
	}
	if st.last != 0 {
		p.Set(ctx, modelKeys.Epoch, firstEpoch+int64(st.last), lease)
	}
	came := func(i int) int64 { return modelNow - 1e6 + int64(i)*1000 }
	places := 0
	for i, q := range st.queue {
		if q.owner == 0 {
			break
		}
		places++
		p.ZAdd(ctx, modelKeys.Queue, redis.Z{Score: float64(came(i)), Member: modelID(q.owner)})
		heartbeat := modelNow + (time.Duration(q.alive)*modelTick - lease).Microseconds()
		if q.alive == 0 {
			heartbeat--
		}
		visible := map[bool]int{true: 1}[q.visible]
		p.HSet(ctx, modelKeys.Waiters, modelID(q.owner), fmt.Sprintf("%d:%d:%d:%d", q.attempt, heartbeat, lease.Milliseconds(), visible))
	}
	counted := ""
	for i, mark := range st.marks {
		if mark != 0 {
			p.HSet(ctx, modelKeys.Waiters, "c:"+modelID(int8(i+1)), mark)
		}
		if !in.uncount[i] {
			counted += server{id: modelID(int8(i + 1))}.channel()
		}
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
	args := server{id: modelID(r.owner)}.command(script, newLock(modelName), uint64(r.attempt), more...).Args()[3+script.keys:]
	said := p.EvalSha(ctx, e.hashes[script], modelKeys.all()[:script.keys], append([]any{modelNow / 1e6, counted}, args...)...)
	values, left := p.MGet(ctx, modelKeys.Lock, modelKeys.Epoch), p.PTTL(ctx, modelKeys.Lock)
	queue, waiters := p.ZRange(ctx, modelKeys.Queue, 0, -1), p.HGetAll(ctx, modelKeys.Waiters)
	if _, err := p.Exec(ctx); err != nil {
		panic(fmt.Sprintf("%+v: %v", in, err))
	}

	v := said.Val().([]any)
	answer, err := parseReply(v[0], nil)
	if err != nil {
		panic(fmt.Sprintf("%+v: %v", in, err))
	}
	done := effect{answer: int8(answer.kind), after: redisState{minted: st.minted}}
	if answer.kind == replyHeld && script != renewScript {
		done.epoch = modelEpoch(answer.epoch, st.minted)
	}
	for _, text := range v[1].([]any) {
		channel, granted, _ := strings.Cut(text.(string), " ")
		to := ownerOf(strings.TrimPrefix(channel, "redislock:"))
		var attempt, epoch int64
		if n, _ := fmt.Sscanf(granted, "granted %d %d", &attempt, &epoch); n == 2 {
			done.push[to-1] = message{kind: push, owner: to, attempt: int8(attempt), epoch: modelEpoch(epoch, st.minted)}
		}
	}
	after := &done.after
	if value, is := values.Val()[0].(string); is {
		var id string
		var hold, epoch int64
		fmt.Sscan(value, &id, &hold, &epoch)
		after.owner, after.hold, after.left = ownerOf(id), int8(hold), int8(left.Val().Round(modelTick)/modelTick)
		after.epoch = modelEpoch(epoch, st.minted)
	}
	if value, is := values.Val()[1].(string); is {
		epoch, _ := strconv.ParseInt(value, 10, 64)
		after.last = modelEpoch(epoch, st.minted)
	}
	after.minted = max(st.minted, after.epoch, after.last)
	for i, id := range queue.Val() {
		var attempt, heartbeat, lease, visible int64
		fmt.Sscanf(waiters.Val()[id], "%d:%d:%d:%d", &attempt, &heartbeat, &lease, &visible)
		after.queue[i] = place{ownerOf(id), int8(attempt), int8(max(heartbeat+lease*1000-modelNow, 0) / modelTick.Microseconds()), visible == 1}
	}
	for i := range after.marks {
		mark, _ := strconv.ParseInt(waiters.Val()["c:"+modelID(int8(i+1))], 10, 8)
		after.marks[i] = int8(mark)
	}
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
