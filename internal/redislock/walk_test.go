package redislock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestRandomRequests sends the scripts in any order, also such as a Locker would not, with leases
// and heartbeats that end and data that is lost, and wants after each that what it answers is so,
// and that nothing is left half done.
func TestRandomRequests(t *testing.T) {
	t.Parallel()
	const lockers, deaf, requests = 4, 3, 4000
	seed := rand.Uint64()
	w := walk{T: t, rand: rand.New(rand.NewPCG(seed, 0)), n: lockOn(t.Name())}
	w.redis, _ = newClient(t, shared.addr)
	t.Cleanup(func() { w.redis.Del(context.Background(), keysOf(w.n.name).all()...) })
	for i := range lockers {
		s := newPeer(w.redis, time.Minute)
		w.servers = append(w.servers, s)
		if i == deaf {
			continue
		}
		subscription := w.redis.Subscribe(t.Context(), s.channel())
		defer subscription.Close()
		if _, err := subscription.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		go func() {
			for range subscription.Channel() {
			}
		}()
	}
	w.attempts = make([]uint64, lockers)
	for range requests {
		if w.step(); t.Failed() {
			t.Fatalf("seed %d; the last requests:\n%s", seed, strings.Join(w.trail[max(0, len(w.trail)-12):], "\n"))
		}
	}
}

// walk is a random way through what can be asked of Redis for one lock.
type walk struct {
	*testing.T
	rand      *rand.Rand
	redis     *redis.Client
	n         *lock
	servers   []peer
	attempts  []uint64 // the last one of each
	lastEpoch int64
	trail     []string
}

func (w *walk) step() {
	i := w.rand.IntN(len(w.servers))
	s, ctx := w.servers[i], w.Context()
	before := w.holder()
	fresh := func() uint64 { w.attempts[i]++; return w.attempts[i] }
	known := w.attempts[i] - min(w.attempts[i], w.rand.Uint64N(2)) // the last one, or the one before
	if before.owner == s.id && w.rand.IntN(4) > 0 {
		known, _ = strconv.ParseUint(before.attempt, 10, 64)
	}
	waited := time.Duration(w.rand.IntN(3)) * time.Second
	var r reply
	var err error
	var what string
	switch w.rand.IntN(10) {
	case 0, 1, 2, 3:
		attempt, queueUp := fresh(), w.rand.IntN(3) > 0
		what = fmt.Sprintf("acquire %d, queue %v after %s", attempt, queueUp, waited)
		r, err = s.acquire(ctx, w.n, attempt, queueUp, waited)
	case 4, 5, 6:
		next := uint64(0)
		if w.rand.IntN(2) == 0 {
			next = fresh()
		}
		what = fmt.Sprintf("release %d, next %d after %s", known, next, waited)
		r, err = s.release(ctx, w.n, known, next, waited)
	case 7:
		what = fmt.Sprintf("cancel %d", known)
		err = s.cancel(ctx, w.n, known)
	case 8:
		what = fmt.Sprintf("heartbeat %d", w.attempts[i])
		r, err = s.heartbeat(ctx, w.n, w.attempts[i])
	case 9:
		what = fmt.Sprintf("renew %d", w.attempts[i])
		r, err = s.renew(ctx, w.n, w.attempts[i])
	}
	w.trail = append(w.trail, fmt.Sprintf("%d: %s = %+v, %v", i, what, r, err))
	w.check(s, what, before, r, err)
	w.befall(s)
}

// check is what holds after every request.
func (w *walk) check(s peer, what string, before holder, r reply, err error) {
	ctx, now := w.Context(), w.holder()
	queue := w.redis.ZRange(ctx, keysOf(w.n.name).Queue, 0, -1).Val()
	switch asked := strings.HasPrefix(what, "acquire ") || strings.HasPrefix(what, "heartbeat"); {
	case err != nil:
		w.Error("a script failed")
	case r.kind == replyHeld && (now.owner != s.id || now.epoch != r.epoch && !strings.HasPrefix(what, "renew")):
		w.Errorf("it has the lock and was notified; Redis has %+v", now)
	case r.kind == replyWaiting && asked && now.owner == "":
		w.Error("it is to wait for a lock that nobody has")
	case now.owner == "" && before != (holder{}) && len(queue) > 0:
		w.Errorf("the lock became free, and %v wait", queue)
	}
	if now != (holder{}) && now != before {
		if now.epoch <= w.lastEpoch {
			w.Errorf("epoch %d after %d", now.epoch, w.lastEpoch)
		}
		w.lastEpoch = now.epoch
	}
	waiters := w.redis.HGetAll(ctx, keysOf(w.n.name).Waiters).Val()
	for _, id := range queue {
		if waiters[id] == "" {
			w.Errorf("%s is in the queue, and nothing is known of it", id)
		}
		delete(waiters, id)
	}
	for field := range waiters {
		if !strings.HasPrefix(field, "c:") {
			w.Errorf("%s is known, and not in the queue", field)
		}
	}
	for _, key := range keysOf(w.n.name).all() {
		if w.redis.PTTL(ctx, key).Val() == -1 {
			w.Errorf("%s stays for ever", key)
		}
	}
}

// befall ends a lease or a heartbeat at times, or loses everything.
func (w *walk) befall(s peer) {
	ctx := w.Context()
	switch w.rand.IntN(200) {
	case 0, 1, 2, 3, 4:
		w.redis.Del(ctx, keysOf(w.n.name).Lock)
		w.trail = append(w.trail, "the lease is over")
	case 5, 6, 7, 8, 9:
		if attempt, _, ok := strings.Cut(w.redis.HGet(ctx, keysOf(w.n.name).Waiters, s.id).Val(), ":"); ok {
			w.redis.HSet(ctx, keysOf(w.n.name).Waiters, s.id, attempt+":1:60000:0")
			w.trail = append(w.trail, "a heartbeat is over")
		}
	case 10:
		w.redis.Del(ctx, keysOf(w.n.name).all()...)
		w.trail = append(w.trail, "all is lost")
	}
}

func (w *walk) holder() holder { return holderIn(w.T, w.redis, keysOf(w.n.name).Lock) }
