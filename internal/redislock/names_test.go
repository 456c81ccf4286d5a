package redislock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestOneLockUnderOneName: "a" and "{a}" are spellings of one lock, and "" and ":" are two.
func TestOneLockUnderOneName(t *testing.T) {
	const lease = time.Minute // a heartbeat is far away
	l, count := newLocker(t, Options{Lease: lease})
	held, outer := acquire(t, l, within(t), t.Name())
	before := count.n.Load()
	_, inner := acquire(t, l, held, "{"+t.Name()+"}")
	if n := count.n.Load() - before; n != 0 || inner.Token() != outer.Token() {
		t.Errorf("re-entry under another spelling sent %d requests, token %d after %d", n, inner.Token(), outer.Token())
	}
	if got := inner.Key(); got != "{"+t.Name()+"}" {
		t.Errorf("Key = %q, want it as it was spelled", got)
	}
	got := asks(t, within(t), l, "{"+t.Name()+"}") // they queue together, in one process
	eventually(t, "it waits", func() bool { return l.waitersOf(t.Name()) == 1 })
	release(t, inner)
	release(t, outer)
	release(t, soon(t, got, lease/6))

	_, one := acquire(t, l, within(t), "")
	_, two, err := l.TryAcquire(t.Context(), ":")
	if err != nil {
		t.Fatalf("the locks %q and %q are one: %v", "", ":", err)
	}
	release(t, one)
	release(t, two)
}

func TestPrefixAndLabel(t *testing.T) {
	l, _ := newLocker(t, Options{Prefix: "shop:", Label: "worker-7"})
	plain, _ := newLocker(t, Options{})
	client, _ := newClient(t, shared.addr)
	_, lease := acquire(t, l, within(t), t.Name())
	if lock := "shop:{" + t.Name() + "}:v2:lock"; client.Exists(t.Context(), lock).Val() != 1 || Keys("shop:", t.Name()).Lock != lock {
		t.Errorf("there is no %s", lock)
	}
	_, other, err := plain.TryAcquire(t.Context(), t.Name())
	if err != nil {
		t.Fatalf("another prefix is another lock: %v", err)
	}
	release(t, other)

	waiter, _ := newLocker(t, Options{Prefix: "shop:", Label: "worker-8", Lease: time.Minute}) // a heartbeat is far away
	ctx, cancel := context.WithCancel(t.Context())
	got := asks(t, ctx, waiter, t.Name())
	var seen Inspection
	see := func(what string, is func() bool) {
		t.Helper()
		eventually(t, what, func() bool {
			seen, err = l.Inspect(t.Context(), t.Name())
			must(t, err)
			return is()
		})
	}
	see("the waiter", func() bool { return len(seen.Waiters) == 1 && seen.Waiters[0].Waited > 0 })
	if seen.Holder.Label != "worker-7" || seen.Token != lease.Token() || seen.Left <= 0 || seen.Left > DefaultLease {
		t.Errorf("Inspect = %+v, want the holder worker-7 with token %d", seen, lease.Token())
	}
	if w := seen.Waiters[0]; w.Label != "worker-8" || !w.Alive {
		t.Errorf("Inspect = %+v, want the waiter worker-8", w)
	}
	cancel()
	<-got
	next := asks(t, within(t), waiter, t.Name())
	see("the next one", func() bool { return len(seen.Waiters) == 1 })
	if was, err := plain.ForceRelease(t.Context(), t.Name()); err != nil || was.Holder != (Process{}) {
		t.Errorf("ForceRelease of a free lock = %+v, %v", was, err)
	}
	if was, err := l.ForceRelease(t.Context(), t.Name()); err != nil || was.Holder.Label != "worker-7" {
		t.Errorf("ForceRelease = %+v, %v, want that worker-7 had it", was, err)
	}
	release(t, soon(t, next, 5*time.Second))
	if renew(lease); !errors.Is(lease.hold.loss(), ErrTaken) {
		t.Errorf("its holder has %v, want ErrTaken", lease.hold.loss())
	}
	see("nobody", func() bool { return seen.Holder == (Process{}) && len(seen.Waiters) == 0 })
	client.Set(t.Context(), Keys("shop:", t.Name()).Lock, "something else", time.Minute)
	defer client.Del(t.Context(), Keys("shop:", t.Name()).Lock)
	if _, err := l.Inspect(t.Context(), t.Name()); err == nil {
		t.Error("Inspect takes something else for a lock")
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	client, _ := newClient(t, shared.addr)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": shared.addr}})
	defer ring.Close()
	l, _ := newLocker(t, Options{})
	long := strings.Repeat("x", 65)
	for want, do := range map[string]func(){
		"Wait is -1ns and":        func() { New(client, Options{Wait: -1}) },
		"and MaxHold is -1ns":     func() { New(client, Options{MaxHold: -1}) },
		"Options.Grace":           func() { New(client, Options{Grace: -1}) },
		`Label is "two words"`:    func() { New(client, Options{Label: "two words"}) },
		`Label is "ä"`:            func() { New(client, Options{Label: "ä"}) },
		`Label is "` + long + `"`: func() { New(client, Options{Label: long}) },
		"Options.Prefix":          func() { New(client, Options{Prefix: "{"}) },
		"the lease is 1ms":        func() { New(client, Options{Lease: time.Millisecond}) },
		"the lease is 1h0m0.001s": func() { New(client, Options{Lease: time.Hour + time.Millisecond}) },
		"the lease is 1µs":        func() { l.AcquireWith(t.Context(), "k", AcquireOptions{Lease: time.Microsecond}) },
		"MaxHold is -1ns":         func() { l.TryAcquireWith(t.Context(), "k", AcquireOptions{MaxHold: -1}) },
		"Wait is -1ns":            func() { l.AcquireWith(t.Context(), "k", AcquireOptions{Wait: -1}) },
		"one shard":               func() { New(ring, Options{}) },
	} {
		if said, _ := panicOf(do).(string); !strings.Contains(said, want) {
			t.Errorf("panic %q, want one about %s", said, want)
		}
	}
}

func TestAcquireWithSettingsOfItsOwn(t *testing.T) {
	t.Parallel()
	l, _ := newLocker(t, Options{Lease: time.Minute})
	client, _ := newClient(t, shared.addr)
	held, lease, err := l.AcquireWith(within(t), t.Name(), AcquireOptions{Lease: 3 * time.Second})
	must(t, err)
	ttl := func() time.Duration { return client.PTTL(t.Context(), Keys("", t.Name()).Lock).Val() }
	if left := ttl(); left > 3*time.Second {
		t.Errorf("the lock lives for %s, want the lease of the call", left)
	}
	if isRenewed(t, lease); held.Err() != nil {
		t.Fatalf("a hold with a short lease is not renewed: %v", context.Cause(held))
	}
	// A goroutine that wants another lease gets the lock from Redis, with that.
	got := asks(t, within(t), l, t.Name())
	eventually(t, "it waits", func() bool { return l.waitersOf(t.Name()) == 1 })
	release(t, lease)
	next := <-got
	if left := ttl(); left < 30*time.Second {
		t.Errorf("the lock lives for %s, want the Locker's lease", left)
	}
	release(t, next)
}
