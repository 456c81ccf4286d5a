package redislock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// What single requests do that arrive late or out of order. The model found some of these.

// play is a lock with the Lockers A to D, which are ways to Redis without a Locker.
type play struct {
	t      *testing.T
	n      *lock
	client *redis.Client
	peers  map[string]*peer
	heard  map[string]<-chan *redis.Message
}

func newPlay(t *testing.T) *play {
	t.Helper()
	p := &play{t: t, n: lockOn(t.Name()), peers: map[string]*peer{}, heard: map[string]<-chan *redis.Message{}}
	p.client, _ = newClient(t, shared.addr)
	remove := func() { p.client.Del(context.Background(), keysOf(p.n.name).all()...) } // for another run of the same test
	remove()
	t.Cleanup(remove)
	for _, name := range []string{"A", "B", "C", "D"} {
		who := newPeer(p.client, time.Minute)
		subscription := toClose(t, p.client.Subscribe(t.Context(), who.channel()))
		_, err := subscription.Receive(t.Context())
		must(t, err)
		p.peers[name], p.heard[name] = &who, subscription.Channel()
	}
	return p
}

var kinds = []string{replyDropped: "dropped", replyHeld: "held", replyWaiting: "waiting"}

// does plays steps, which are one of these:
//
//	A acquires 1: held           "A tries 1" does not queue; "A acquires 1 after 60s" has waited for so long
//	A releases 1: waiting        "A releases 1 for 2" queues attempt 2
//	A beats 1: waiting           a heartbeat; A renews 1: held
//	A cancels 1
//	A has 1                      and nobody has
//	A hears 1                    it was granted, by a message
//	A dies                       its heartbeat is over
//	nobody renews                the lease is over
func (p *play) does(steps ...string) {
	p.t.Helper()
	for _, step := range steps {
		what, want, _ := strings.Cut(step, ": ")
		f := strings.Fields(what + " 0 0 0 0")
		who := p.peers[f[0]]
		attempt, _ := strconv.ParseUint(f[2], 10, 64)
		next, _ := strconv.ParseUint(f[4], 10, 64)
		waited, _ := time.ParseDuration(f[4])
		var r reply
		var err error
		got := ""
		switch keys := keysOf(p.n.name); f[1] {
		case "acquires":
			r, err = who.send(p.t.Context(), acquireScript, p.n, attempt, waited.Microseconds())
		case "releases":
			args := []any{next, who.lease.Milliseconds(), 0}
			r, err = who.do(p.t.Context(), releaseScript, p.n, attempt, args[:3*min(next, 1)]...)
		case "tries", "beats", "renews", "cancels":
			if who == nil {
				err = p.client.Del(p.t.Context(), keys.Lock).Err()
				break
			}
			script := map[string]*script{"tries": acquireScript, "beats": heartbeatScript, "renews": renewScript, "cancels": cancelScript}[f[1]]
			r, err = who.send(p.t.Context(), script, p.n, attempt)
		case "dies":
			err = p.client.HSet(p.t.Context(), keys.Waiters, who.id, "1:1:60000:0").Err()
		case "has":
			h := holderIn(p.t, p.client, keys.Lock)
			if who == nil && h != (holder{}) || who != nil && (h.owner != who.id || h.attempt != f[2]) {
				p.t.Fatalf("%s, of %q: the lock is with %+v", step, steps, h)
			}
		case "hears":
			for got != "granted "+f[2] {
				select {
				case m := <-p.heard[f[0]]:
					got = strings.Join(strings.Fields(m.Payload)[:2], " ")
				case <-time.After(10 * time.Second):
					p.t.Fatalf("%s, of %q: it was not notified", step, steps)
				}
			}
		default:
			p.t.Fatalf("what is %q?", step)
		}
		if err != nil || want != "" && kinds[r.kind] != want {
			p.t.Fatalf("%s, of %q: %+v, %v", step, steps, r, err)
		}
	}
}

// The names are those of the rules in docs/lock-protocol.md.
func TestScripts(t *testing.T) {
	for name, steps := range map[string][]string{
		"a cancelled attempt that arrives later is ignored": {
			"A cancels 1", "A acquires 1: dropped", "A cancels 2", "A cancels 1", "A acquires 2: dropped", "nobody has", "A cancels 3", "B cancels 1", "A tries 3: dropped", "nobody has"},
		"a release does not queue a cancelled attempt": {"A acquires 1: held", "A cancels 2", "A releases 1 for 2: waiting", "nobody has"},
		"a release does not queue an older attempt": {
			"A acquires 1: held", "A acquires 3: waiting", "A releases 1 for 2: waiting", "A has 3", "A hears 3"},
		"a cancel tells the next attempt":          {"A acquires 1: held", "A acquires 2: waiting", "A cancels 1", "A has 2", "A hears 2"},
		"a background release tells the next one":  {"A acquires 1: held", "A acquires 2: waiting", "A releases 1: waiting", "A has 2", "A hears 2"},
		"a late release and cancel end no newer":   {"A acquires 2: held", "A releases 1: dropped", "A has 2", "A cancels 1", "A has 2"},
		"a renewal is of its own hold":             {"A acquires 1: held", "B renews 1: dropped", "A renews 2: dropped", "A renews 1: held", "nobody renews", "A renews 1: dropped"},
		"a heartbeat never queues":                 {"A acquires 1: held", "B beats 1: dropped", "A releases 1: waiting", "nobody has"},
		"a heartbeat passes a dead holder's on":    {"A acquires 1: held", "B acquires 1: waiting", "C acquires 1: waiting", "nobody renews", "C beats 1: waiting", "B has 1", "B hears 1"},
		"who asks late keeps its place":            {"A acquires 1: held", "B acquires 1: waiting", "C acquires 1 after 60s: waiting", "A releases 1: waiting", "C has 1", "C hears 1"},
		"a new head of a free lock gets it":        {"A acquires 1: held", "B acquires 1: waiting", "nobody renews", "C acquires 1 after 60s: held", "C releases 1: waiting", "B has 1"},
		"a dead waiter is skipped":                 {"A acquires 1: held", "B acquires 1: waiting", "C acquires 1: waiting", "B dies", "A releases 1: waiting", "C has 1", "C releases 1: waiting", "nobody has"},
		"a try gets no place of an older attempt":  {"A acquires 1: held", "B acquires 1: waiting", "A acquires 2: waiting", "B dies", "nobody renews", "A tries 3: held", "A has 3"},
		"nobody takes a free lock past a queue":    {"A acquires 1: held", "B acquires 1: waiting", "nobody renews", "C tries 1: waiting", "B has 1", "B hears 1"},
		"a release queues who waits in its stead":  {"A tries 1: held", "A releases 1 for 2: held", "A has 2", "B acquires 1: waiting", "A releases 2 for 3: waiting", "B hears 1", "B releases 1: waiting", "A hears 3"},
		"shortcuts leave what is taken or not one": {"A tries 1: held", "A tries 2: waiting", "A has 1", "A releases 2: dropped", "A has 1", "A releases 1: waiting", "nobody has", "A releases 1: dropped"},
	} {
		t.Run(name, func(t *testing.T) { newPlay(t).does(steps...) })
	}
}

// TestReplies say until when the lock lives, to those who wait, and who else waits, to the holder.
func TestReplies(t *testing.T) {
	p := newPlay(t)
	p.does("A acquires 1: held")
	for name, ask := range map[string]func() (reply, error){
		"acquire":   func() (reply, error) { return p.peers["B"].send(t.Context(), acquireScript, p.n, 1, 0) },
		"heartbeat": func() (reply, error) { return p.peers["B"].send(t.Context(), heartbeatScript, p.n, 1) },
	} {
		p.does("B acquires 1: waiting")
		if r, err := ask(); err != nil || r.kind != replyWaiting || r.ttl < 30*time.Second || r.ttl > time.Minute {
			t.Errorf("%s = %+v, %v, want what is left of the holder's lease", name, r, err)
		}
	}
	for attempt, want := range map[uint64]int64{1: replyHeld, 2: replyDropped} {
		r, err := p.peers["A"].send(t.Context(), renewScript, p.n, attempt)
		if off := time.Since(time.Unix(0, r.epoch*1000)); err != nil || r.kind != want || off < 0 || off > time.Minute {
			t.Errorf("the renewal of attempt %d = %+v, %v, want the server's time", attempt, r, err)
		}
	}
	p.does("nobody renews", "B releases 1: dropped", "B cancels 1", "A acquires 2: held", "A acquires 3: waiting", "nobody renews")
	if r, err := p.peers["A"].send(t.Context(), acquireScript, p.n, 4, 0); err != nil || r.kind != replyHeld || r.others != 0 {
		t.Errorf("acquire = %+v, %v, want it held: its own older attempt is none of the others", r, err)
	}
}

// TestClockSetBackCostsNoPlace: who waits since before it was must not wait until the clock is
// there again.
func TestClockSetBackCostsNoPlace(t *testing.T) {
	p := newPlay(t)
	p.does("A acquires 1: held", "B acquires 1: waiting")
	future := float64(time.Now().Add(time.Hour).UnixMicro())
	p.client.ZAdd(t.Context(), keysOf(p.n.name).Queue, redis.Z{Score: future, Member: p.peers["B"].id})
	p.does("B beats 1: waiting", "C acquires 1: waiting", "A releases 1: waiting", "B has 1", "B hears 1")
}

// TestLeave keeps the lock taken after its release, from goroutines of its process, too. An inner entry leaves nothing.
func TestLeave(t *testing.T) {
	l, _ := newLocker(t, Options{})
	const stays = 1500 * time.Millisecond
	held, outer := acquire(t, l, within(t), t.Name())
	_, inner := acquire(t, l, held, t.Name())
	if err := inner.Leave(time.Hour); err != nil || !outer.Valid() {
		t.Errorf("Leave of an inner entry = %v; the outer one is valid: %v", err, outer.Valid())
	}
	got := asks(t, within(t), l, t.Name())
	eventually(t, "it waits", func() bool { return l.waitersOf(t.Name()) == 1 })
	begun := time.Now()
	if err := outer.Leave(stays); err != nil || held.Err() == nil || outer.Valid() {
		t.Errorf("Leave = %v; it is held still: %v", err, outer.Valid())
	}
	if _, _, err := l.TryAcquire(t.Context(), t.Name()); !errors.Is(err, ErrNotAcquired) {
		t.Errorf("TryAcquire = %v, want ErrNotAcquired", err)
	}
	next := <-got
	if after := time.Since(begun); after < stays || next == nil {
		t.Errorf("the lock was free after %s, want %s", after, stays)
	}
	if err := next.Leave(0); err != nil || outer.Leave(stays) == nil {
		t.Errorf("Leave for no time = %v", err)
	}
	free(t, l)
}

// TestWhatIsNotALockIsNotTaken: somebody else's value in the key of a lock is neither overwritten nor
// deleted, also where others wait.
func TestWhatIsNotALockIsNotTaken(t *testing.T) {
	p := newPlay(t)
	keys, a := keysOf(p.n.name), p.peers["A"]
	for attempt, value := range []string{"something else", "", "something else"} {
		if attempt == 2 {
			p.client.HSet(t.Context(), keys.Waiters, "somebody", "1:1:60000:0") // no shortcut
			p.client.ZAdd(t.Context(), keys.Queue, redis.Z{Score: 1, Member: "somebody"})
		}
		p.client.Set(t.Context(), keys.Lock, value, 0)
		if r, err := a.send(t.Context(), acquireScript, p.n, uint64(attempt), []any{0}[:attempt/2]...); err == nil {
			t.Errorf("acquire where the key is %q = %+v, want an error", value, r)
		}
		p.does("A releases 1: dropped")
		if got := p.client.Get(t.Context(), keys.Lock).Val(); got != value {
			t.Errorf("the key is %q, was %q", got, value)
		}
	}
}

// TestMarksOfCancelledAttemptsDoNotPileUp: who waits meanwhile keeps its place, also with a label that looks
// like a mark.
func TestMarksOfCancelledAttemptsDoNotPileUp(t *testing.T) {
	p := newPlay(t)
	labelled := newPeer(p.client, time.Minute)
	labelled.server = newServer(p.client, "c:worker")
	p.peers["L"] = &labelled
	p.does("A acquires 1: held", "B acquires 1: waiting", "L acquires 1: waiting")
	for range 300 {
		_, err := newPeer(p.client, time.Second).send(t.Context(), cancelScript, p.n, 1)
		must(t, err)
	}
	if left := p.client.HLen(t.Context(), keysOf(p.n.name).Waiters).Val(); left > 110 {
		t.Errorf("%d marks are kept, want about a hundred at most", left)
	}
	p.does("L beats 1: waiting", "A releases 1: waiting", "B has 1", "B hears 1", "B releases 1: waiting", "L has 1")
}

// TestTokensGrowWhereTheClockIsBehind: a replica that is promoted may have a clock that is some seconds behind.
// The last epoch outlives that. It is not needed where the clock goes on: data may be lost.
func TestTokensGrowWhereTheClockIsBehind(t *testing.T) {
	p := newPlay(t)
	keys, ctx := keysOf(p.n.name), t.Context()
	var epochs []int64
	for attempt := range uint64(5) {
		switch attempt {
		case 2:
			p.client.Del(ctx, keys.all()...)
		case 3: // for a clock that is five seconds behind, the last epoch is five seconds ahead
			epochs = append(epochs, time.Now().Add(5*time.Second).UnixMicro())
			p.client.Set(ctx, keys.Epoch, epochs[len(epochs)-1], redis.KeepTTL)
		}
		p.does(fmt.Sprintf("A acquires %d: held", attempt+1))
		epochs = append(epochs, holderIn(t, p.client, keys.Lock).epoch)
		p.does(fmt.Sprintf("A releases %d: waiting", attempt+1))
	}
	if !slices.IsSorted(epochs) || len(slices.Compact(slices.Clone(epochs))) != len(epochs) {
		t.Errorf("epochs %d, want that they grow", epochs)
	}
	if left := p.client.PTTL(ctx, keys.Epoch).Val(); left < 50*time.Second || left > time.Minute {
		t.Errorf("the epoch is kept for %s, want a minute", left)
	}
	l := closing(t, New(p.client, Options{Lease: 2 * time.Minute}))
	_, lease := acquire(t, l, ctx, t.Name()+" long")
	defer release(t, lease)
	if left := p.client.PTTL(ctx, keysOf(tagged(t.Name()+" long")).Epoch).Val(); left <= time.Minute {
		t.Errorf("the epoch of a longer lease is kept for %s, want that lease", left)
	}
}
