package redislock

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"
)

// lostWithin wants a held context to end with ErrLost before d is over.
func lostWithin(t *testing.T, held context.Context, d time.Duration) {
	t.Helper()
	select {
	case <-held.Done():
	case <-time.After(d):
		t.Fatalf("the hold did not end within %s", d)
	}
	if cause := context.Cause(held); !errors.Is(cause, ErrLost) {
		t.Errorf("the hold ended with %v, want ErrLost", cause)
	}
}

func TestWatchdogKeepsALock(t *testing.T) {
	t.Parallel()
	l, _ := newLocker(t, Options{Lease: 3 * time.Second})
	held, lease := acquire(t, l, within(t), t.Name())
	for range 6 { // two leases
		isRenewed(t, lease)
	}
	if held.Err() != nil || !lease.Valid() {
		t.Errorf("after two leases: %v, valid %v", context.Cause(held), lease.Valid())
	}
	release(t, lease)
}

// TestStaleReleaseLeavesTheNewHoldAlone lets Redis lose the lock and give it to
// somebody else.
func TestStaleReleaseLeavesTheNewHoldAlone(t *testing.T) {
	client, _ := newClient(t, shared.addr)
	l, _ := newLocker(t, Options{Lease: time.Second})
	other, _ := newLocker(t, Options{Lease: time.Second})
	held, lease := acquire(t, l, within(t), t.Name())
	client.Del(t.Context(), Keys("", t.Name()).Lock)
	_, theirs := acquire(t, other, within(t), t.Name())
	if theirs.Token() <= lease.Token() {
		t.Errorf("token %d after %d", theirs.Token(), lease.Token())
	}
	lostWithin(t, held, 10*time.Second)
	if err := lease.Release(); !errors.Is(err, ErrNotHeld) {
		t.Errorf("Release of a lost lock = %v, want ErrNotHeld", err)
	}
	if _, _, err := l.Acquire(held, t.Name()); !errors.Is(err, ErrLost) {
		t.Errorf("re-entry into a lost lock = %v, want ErrLost", err)
	}
	time.Sleep(50 * time.Millisecond)
	if !theirs.Valid() || holderIn(t, client, Keys("", t.Name()).Lock).owner != other.server.id {
		t.Error("the stale release touched the new hold")
	}
	release(t, theirs)
}

// TestHoldEndsBeforeItsLeaseWhenRedisGoesSilent cuts the holder off without a
// reset: its context must end while the lock still lives in Redis.
func TestHoldEndsBeforeItsLeaseWhenRedisGoesSilent(t *testing.T) {
	t.Parallel()
	const length = 2 * time.Second
	w := newWire(t, shared.addr)
	client, _ := newClient(t, shared.addr)
	l, _ := newLockerAt(t, w.addr, Options{Lease: length})
	held, lease := acquire(t, l, within(t), t.Name())
	w.cut()
	asked := time.Now()
	end := asked.Add(client.PTTL(t.Context(), Keys("", t.Name()).Lock).Val())
	if deadline := lease.Deadline(); !deadline.Before(end) {
		t.Errorf("the hold ends %s after the lock can end in Redis", deadline.Sub(end))
	}
	lostWithin(t, held, 2*length)
	if err := lease.Release(); !errors.Is(err, ErrNotHeld) {
		t.Errorf("Release = %v, want ErrNotHeld", err)
	}
	w.cutUp.Store(false)
	w.cutDown.Store(false)
}

// TestUnconfirmedSubscriptionIsATimeout lets requests through and messages not: the caller must
// be able to tell it from a defect.
func TestUnconfirmedSubscriptionIsATimeout(t *testing.T) {
	t.Parallel()
	w := newWire(t, shared.addr)
	w.cut()
	direct, _ := newClient(t, shared.addr)
	mute := defaults(t, w.addr, time.Second)
	holder, _ := newLocker(t, Options{})
	_, lease := acquire(t, holder, within(t), t.Name())
	defer lease.Release()
	l := New(apart{direct, mute}, Options{Lease: time.Second})
	defer l.Close(context.Background())
	_, _, err := l.Acquire(within(t), t.Name())
	if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() {
		t.Errorf("Acquire = %v, want a timeout", err)
	}
}

func TestTransientErrorsDoNotEndAHold(t *testing.T) {
	t.Parallel()
	w := newWire(t, shared.addr)
	l, _ := newLockerAt(t, w.addr, Options{Lease: 6 * time.Second})
	held, lease := acquire(t, l, within(t), t.Name())
	for range 3 {
		w.mu.Lock()
		for _, c := range w.conns {
			c.Close()
		}
		w.mu.Unlock()
		isRenewed(t, lease)
	}
	if held.Err() != nil {
		t.Errorf("the hold ended with %v", context.Cause(held))
	}
	release(t, lease)
}

// TestLostAnswerToAcquireLeavesNoOrphan lets the server take the lock and the
// client never hear of it.
func TestLostAnswerToAcquireLeavesNoOrphan(t *testing.T) {
	const length = 3 * time.Second
	w := newWire(t, shared.addr)
	l, _ := newLockerAt(t, w.addr, Options{Lease: length})
	_, lease := acquire(t, l, within(t), t.Name()+"warm")
	release(t, lease)
	w.cutDown.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, _, err := l.Acquire(ctx, t.Name()); !errors.Is(err, ErrNotAcquired) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Acquire without an answer = %v, want ErrNotAcquired and the deadline", err)
	}
	client, _ := newClient(t, shared.addr)
	if client.Exists(t.Context(), Keys("", t.Name()).Lock).Val() == 0 {
		t.Log("the request was lost too: nothing to clean up")
	}
	w.cutDown.Store(false)
	begun := time.Now()
	other, _ := newLocker(t, Options{})
	_, lease = acquire(t, other, within(t), t.Name())
	if waited := time.Since(begun); waited > length {
		t.Errorf("the orphan blocked others for %s", waited)
	}
	release(t, lease)
}

// TestDeadHolderCostsItsLease stops renewing without a word, as a kill does.
func TestDeadHolderCostsItsLease(t *testing.T) {
	t.Parallel()
	const length = 4 * time.Second
	w := newWire(t, shared.addr)
	dead, _ := newLockerAt(t, w.addr, Options{Lease: length})
	acquire(t, dead, within(t), t.Name())
	w.cut()
	waiter, _ := newLocker(t, Options{Lease: length})
	begun := time.Now()
	_, lease := acquire(t, waiter, within(t), t.Name())
	if waited := time.Since(begun); waited > 2*length {
		t.Errorf("a dead holder cost %s, its lease was %s", waited, length)
	}
	release(t, lease)
	w.cutUp.Store(false)
	w.cutDown.Store(false)
}

// TestDeadWaiterIsSkipped puts a waiter in front that never sends a heartbeat.
func TestDeadWaiterIsSkipped(t *testing.T) {
	ctx, n := within(t), lockOn(t.Name())
	client, _ := newClient(t, shared.addr)
	const length = time.Minute // a heartbeat is far away
	holder, _ := newLocker(t, Options{Lease: length})
	_, lease := acquire(t, holder, ctx, n.name)
	dead := newPeer(client, length)
	channel := client.Subscribe(ctx, dead.channel())
	if _, err := channel.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	if r, err := dead.acquire(ctx, n, 1, true, 0); err != nil || r.kind != replyWaiting {
		t.Fatalf("acquire = %+v, %v", r, err)
	}
	waiter, _ := newLocker(t, Options{Lease: length})
	got := make(chan *Lease, 1)
	go func() {
		_, lease, _ := waiter.Acquire(ctx, n.name)
		got <- lease
	}()
	for client.ZCard(ctx, keysOf(n.name).Queue).Val() < 2 {
		time.Sleep(time.Millisecond)
	}
	channel.Close()
	eventually(t, "Redis sees that nobody listens", func() bool {
		return client.PubSubNumSub(ctx, dead.channel()).Val()[dead.channel()] == 0
	})
	begun := time.Now()
	release(t, lease)
	next := <-got
	if next == nil {
		t.Fatal("the waiter behind the dead one got nothing")
	}
	// Redis has seen it listen, and sees that it does not any more: so it costs nothing at all.
	if waited := time.Since(begun); waited > length/6 {
		t.Errorf("the dead waiter cost %s", waited)
	}
	release(t, next)
}

// TestLostPushIsFoundByTheHeartbeat drops the waiter's subscription messages: it must
// find its grant by asking.
func TestLostPushIsFoundByTheHeartbeat(t *testing.T) {
	const length = 3 * time.Second
	holder, _ := newLocker(t, Options{Lease: length})
	w := newWire(t, shared.addr)
	waiter, _ := newLockerAt(t, w.addr, Options{Lease: length})
	_, lease := acquire(t, holder, within(t), t.Name())
	got := make(chan *Lease, 1)
	go func() {
		_, lease, _ := waiter.Acquire(within(t), t.Name())
		got <- lease
	}()
	queued := func() bool {
		waiter.mu.Lock()
		defer waiter.mu.Unlock()
		n := waiter.locks[tagged(t.Name())]
		return n != nil && n.state == waiting
	}
	eventually(t, "it waits, and listens", func() bool { return queued() && waiter.hears() })
	w.cutDown.Store(true)
	begun := time.Now()
	release(t, lease)
	time.Sleep(20 * time.Millisecond) // the push is sent, and lost
	w.cutDown.Store(false)
	next := <-got
	if next == nil {
		t.Fatal("the waiter whose push was lost got nothing")
	}
	if waited := time.Since(begun); waited > length/3+length/3 {
		t.Errorf("a lost push cost %s of a lease of %s, want about a third", waited, length)
	}
	release(t, next)
}

func TestKilledConnectionsAndFlushedScripts(t *testing.T) {
	client, _ := newClient(t, shared.addr)
	a, _ := newLocker(t, Options{Lease: 2 * time.Second})
	b, _ := newLocker(t, Options{Lease: 2 * time.Second})
	var last int64
	for i := range 20 {
		l := []*Locker{a, b}[i%2]
		ctx := within(t)
		_, lease, err := l.Acquire(ctx, t.Name())
		for err != nil && ctx.Err() == nil { // a connection that was killed under a request: its outcome is unknown
			_, lease, err = l.Acquire(ctx, t.Name())
		}
		if lease == nil {
			t.Fatalf("Acquire: %v", err)
		}
		if lease.Token() <= last {
			t.Errorf("token %d after %d", lease.Token(), last)
		}
		last = lease.Token()
		switch i % 4 {
		case 0:
			client.Do(ctx, "CLIENT", "KILL", "TYPE", "pubsub")
		case 1:
			client.Do(ctx, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		case 2:
			client.ScriptFlush(ctx)
		}
		lease.Release() // may have met a killed connection: then it is cleaned up behind us
	}
}

func TestTokensGrowAfterDataLoss(t *testing.T) {
	server, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.stop)
	client, _ := newClient(t, server.addr)
	l, _ := newLockerAt(t, server.addr, Options{Lease: time.Second})
	var last int64
	next := func(after string) {
		t.Helper()
		_, lease := acquire(t, l, within(t), t.Name())
		if lease.Token() <= last {
			t.Errorf("after %s: token %d after %d", after, lease.Token(), last)
		}
		last = lease.Token()
		release(t, lease)
	}
	next("nothing")
	next("a release")
	client.FlushAll(t.Context())
	next("FLUSHALL")
	client.Del(t.Context(), Keys("", t.Name()).Epoch)
	next("the epoch's end")
}
