package redislock

import (
	"strings"
	"testing"
	"time"
)

// TestAHolderThatDidNotListenIsToldAgain: a holder that begins to listen after another process began to
// wait must hear of it soon, and not at the next third of a lease.
func TestAHolderThatDidNotListenIsToldAgain(t *testing.T) {
	ctx, n := within(t), &name{key: t.Name(), keys: keysOf(t.Name())}
	client, _ := newClient(t, shared.addr)
	holder := newServer(client, time.Minute)
	if r, err := holder.acquire(ctx, n, 1, true, 0); err != nil || r.kind != replyHeld {
		t.Fatalf("acquire = %+v, %v", r, err)
	}
	waiter, count := newLocker(t, Options{Lease: time.Minute})
	got := make(chan error, 1)
	go func() {
		_, lease, err := waiter.Acquire(ctx, n.key)
		if err == nil {
			lease.Release()
		}
		got <- err
	}()
	for client.ZCard(ctx, n.keys[1]).Val() == 0 {
		time.Sleep(time.Millisecond)
	}
	inbox := client.Subscribe(ctx, holder.channel())
	defer inbox.Close()
	if _, err := inbox.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	message, err := inbox.ReceiveMessage(ctx)
	if err != nil || message.Payload != "contended "+n.key {
		t.Fatalf("the holder heard %v, %v", message, err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("the holder was told again after %s", took)
	}
	time.Sleep(200 * time.Millisecond)
	before := count.n.Load()
	time.Sleep(500 * time.Millisecond)
	if n := count.n.Load() - before; n > 1 {
		t.Errorf("a waiter whose holder has heard went on to ask, %d times in half a second", n)
	}
	if _, err := holder.release(ctx, n, 1, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// TestANewHeadTellsTheHolder: who was at the head until then tells it no more.
func TestANewHeadTellsTheHolder(t *testing.T) {
	first, second := newScripted(t), newScripted(t)
	client, _ := newClient(t, shared.addr)
	holder := newServer(client, time.Minute) // does not listen
	if r, err := holder.acquire(t.Context(), first.n, 1, true, 0); err != nil || r.kind != replyHeld {
		t.Fatalf("acquire = %+v, %v", r, err)
	}
	for i, waiter := range []scripted{second, first} {
		if r, err := waiter.acquire(t.Context(), first.n, 1, true, time.Duration(i)*time.Minute); err != nil || !r.unread {
			t.Errorf("acquire = %+v, %v, want to hear that the holder does not listen", r, err)
		}
	}
}

// TestContentionIsNotedBeforeTheGrantIs: the answer with the grant and the message that others wait come
// on two connections, and the message may be first.
func TestContentionIsNotedBeforeTheGrantIs(t *testing.T) {
	l, _ := newLocker(t, Options{})
	w := &waiter{ctx: t.Context(), turn: make(chan turn, 1)}
	l.mu.Lock()
	n := l.name(t.Name())
	w.place = n.waiters.PushBack(w)
	n.state, n.attempt = asking, l.nextAttempt()
	l.mu.Unlock()
	l.read("contended " + t.Name())
	l.mu.Lock()
	l.granted(n, time.Now().UnixMicro(), 0, time.Now(), Free)
	others := n.grant.others
	l.mu.Unlock()
	if others == 0 {
		t.Error("the holder does not know that another process waits")
	}
	if err := (<-w.turn).hold.leave(); err == nil || !strings.Contains(err.Error(), "not held") {
		t.Errorf("the release of a lock that Redis never gave: %v", err)
	}
}
