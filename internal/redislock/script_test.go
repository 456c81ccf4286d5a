package redislock

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// What single requests do that arrive late or out of order. The model found each of these.

// scripted is a Locker's way to Redis without the Locker, and the messages to it.
type scripted struct {
	peer
	t        *testing.T
	n        *lock
	messages <-chan string
}

func newScripted(t *testing.T) scripted {
	t.Helper()
	needsServer(t)
	client, _ := newClient(t, shared.addr)
	s := scripted{newPeer(client, time.Minute), t, lockOn(t.Name()), nil}
	subscription := client.Subscribe(t.Context(), s.channel())
	t.Cleanup(func() {
		subscription.Close()
		client.Del(context.Background(), keysOf(s.n.name).all()...) // for another run of the same test
	})
	if _, err := subscription.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	messages := make(chan string, 8)
	s.messages = messages
	go func() {
		for m := range subscription.Channel() {
			messages <- m.Payload
		}
	}()
	return s
}

func (s scripted) acquires(attempt uint64, queueUp bool, want int64) {
	s.t.Helper()
	if r, err := s.acquire(s.t.Context(), s.n, attempt, queueUp, 0); err != nil || r.kind != want {
		s.t.Fatalf("acquire of attempt %d = %+v, %v, want kind %d", attempt, r, err, want)
	}
}

func (s scripted) releases(attempt, next uint64, want int64) {
	s.t.Helper()
	if r, err := s.release(s.t.Context(), s.n, attempt, next, 0); err != nil || r.kind != want {
		s.t.Fatalf("release of attempt %d = %+v, %v, want kind %d", attempt, r, err, want)
	}
}

func (s scripted) cancels(attempt uint64) {
	s.t.Helper()
	if err := s.cancel(s.t.Context(), s.n, attempt); err != nil {
		s.t.Fatalf("cancel of attempt %d: %v", attempt, err)
	}
}

// owns wants the lock to be with an attempt, or with nobody.
func (s scripted) owns(attempt string) {
	s.t.Helper()
	client, _ := newClient(s.t, shared.addr)
	if got := holderIn(s.t, client, keysOf(s.n.name).Lock).attempt; got != attempt {
		s.t.Errorf("the lock is with attempt %q, want %q", got, attempt)
	}
}

// isTold wants a message that grants an attempt.
func (s scripted) isTold(attempt string) {
	s.t.Helper()
	patience := time.After(10 * time.Second)
	for {
		select {
		case message := <-s.messages:
			if strings.HasPrefix(message, "granted "+attempt+" ") {
				return
			}
		case <-patience:
			s.t.Errorf("attempt %s was granted the lock and not notified", attempt)
			return
		}
	}
}

func TestCancelledAttemptThatArrivesLaterIsIgnored(t *testing.T) {
	s := newScripted(t)
	s.cancels(1)
	s.acquires(1, true, replyDropped)
	s.cancels(2)
	s.cancels(1) // again, in the background
	s.acquires(2, true, replyDropped)
	s.owns("")
	other := newScripted(t)
	s.cancels(3)
	other.cancels(1) // leaves the marks of others
	s.acquires(3, true, replyDropped)
	s.owns("")
}

// TestWhoWaitsIsToldUntilWhen: its heartbeat is due when the lock would expire.
func TestWhoWaitsIsToldUntilWhen(t *testing.T) {
	holder, waiter := newScripted(t), newScripted(t)
	holder.acquires(1, true, replyHeld)
	if r, err := waiter.acquire(t.Context(), waiter.n, 1, true, 0); err != nil || r.kind != replyWaiting || r.ttl < holder.lease/2 || r.ttl > holder.lease {
		t.Errorf("acquire = %+v, %v, want what is left of the holder's lease", r, err)
	}
	if r, err := waiter.heartbeat(t.Context(), waiter.n, 1); err != nil || r.kind != replyWaiting || r.ttl < holder.lease/2 || r.ttl > holder.lease {
		t.Errorf("heartbeat = %+v, %v, want what is left of the holder's lease", r, err)
	}
}

func TestReleaseDoesNotQueueACancelledAttempt(t *testing.T) {
	s := newScripted(t)
	s.acquires(1, true, replyHeld)
	s.cancels(2)
	s.releases(1, 2, replyWaiting)
	s.owns("")
}

// TestReleaseDoesNotQueueAnOlderAttempt has a release arrive after its answer was given up and the
// next attempt was queued.
func TestReleaseDoesNotQueueAnOlderAttempt(t *testing.T) {
	s := newScripted(t)
	s.acquires(1, true, replyHeld)
	s.acquires(3, true, replyWaiting)
	s.releases(1, 2, replyWaiting)
	s.owns("3")
	s.isTold("3")
}

// TestOwnCancelTellsTheNextAttempt and the next one: nobody looks at the answer to what
// cleans up, so the waiter must be notified on its channel.
func TestOwnCancelTellsTheNextAttempt(t *testing.T) {
	s := newScripted(t)
	s.acquires(1, true, replyHeld) // an answer that comes too late
	s.acquires(2, true, replyWaiting)
	s.cancels(1)
	s.owns("2")
	s.isTold("2")
}

func TestOwnReleaseInTheBackgroundTellsTheNextAttempt(t *testing.T) {
	s := newScripted(t)
	s.acquires(1, true, replyHeld)
	s.acquires(2, true, replyWaiting)
	s.releases(1, 0, replyWaiting)
	s.owns("2")
	s.isTold("2")
}

// TestTryDoesNotGetThePlaceOfAnOlderAttempt has a wait that is over stand in the queue still.
func TestTryDoesNotGetThePlaceOfAnOlderAttempt(t *testing.T) {
	s := newScripted(t)
	client, _ := newClient(t, shared.addr)
	dead := newScripted(t)
	s.acquires(1, true, replyHeld)
	dead.acquires(1, true, replyWaiting)
	s.acquires(2, true, replyWaiting)
	client.HSet(t.Context(), keysOf(s.n.name).Waiters, dead.id, "1:1:60000:0") // its heartbeat has ended
	client.Del(t.Context(), keysOf(s.n.name).Lock)                             // and so has the lease
	s.acquires(3, false, replyHeld)
	s.owns("3")
}

// TestWhoHasItDoesNotWait: an older attempt, whose cancel is still under way, is not one of the others.
func TestWhoHasItDoesNotWait(t *testing.T) {
	s := newScripted(t)
	client, _ := newClient(t, shared.addr)
	s.acquires(1, true, replyHeld)
	s.acquires(2, true, replyWaiting)
	client.Del(t.Context(), keysOf(s.n.name).Lock) // the lease is over
	if r, err := s.acquire(t.Context(), s.n, 3, true, 0); err != nil || r.kind != replyHeld || r.others != 0 {
		t.Errorf("acquire = %+v, %v, want it held while nobody waits", r, err)
	}
}

// TestShortcutsLeaveWhatOthersWant: the beginnings of acquire and release decide only where nobody
// else wants the lock.
func TestShortcutsLeaveWhatOthersWant(t *testing.T) {
	s, other := newScripted(t), newScripted(t)
	other.n = s.n
	client, _ := newClient(t, shared.addr)
	s.acquires(1, false, replyHeld)
	s.acquires(2, false, replyWaiting) // it is taken
	s.owns("1")
	s.releases(2, 0, replyDropped)
	s.owns("1")
	s.releases(1, 0, replyWaiting)
	s.owns("")

	s.acquires(3, false, replyHeld)
	other.acquires(1, true, replyWaiting)
	s.releases(3, 0, replyWaiting) // somebody waits
	other.owns("1")
	other.isTold("1")

	s.acquires(4, true, replyWaiting)
	client.Del(t.Context(), keysOf(s.n.name).Lock) // the lease is over
	other.acquires(2, false, replyWaiting)         // somebody waits: the lock is theirs
	s.owns("4")
	s.isTold("4")
	s.releases(4, 0, replyWaiting)
	s.cancels(5)
	s.acquires(5, false, replyDropped) // it was cancelled
	s.owns("")

	s.acquires(6, false, replyHeld)
	s.releases(6, 7, replyHeld) // another goroutine of the process wants it
	s.owns("7")
}

// TestANewHeadOfAFreeLockGetsIt: who has waited for longer than all in the queue, and asks when the
// lease is over.
func TestANewHeadOfAFreeLockGetsIt(t *testing.T) {
	holder, waiter, late := newScripted(t), newScripted(t), newScripted(t)
	holder.acquires(1, true, replyHeld)
	waiter.acquires(1, true, replyWaiting)
	client, _ := newClient(t, shared.addr)
	client.Del(t.Context(), keysOf(holder.n.name).Lock) // the lease is over
	if r, err := late.acquire(t.Context(), late.n, 1, true, time.Minute); err != nil || r.kind != replyHeld {
		t.Errorf("acquire = %+v, %v, want it held", r, err)
	}
	late.releases(1, 0, replyWaiting)
	waiter.owns("1")
}

// TestClockSetBackCostsNoPlace: who waits since before it was must not wait until the clock is
// there again.
func TestClockSetBackCostsNoPlace(t *testing.T) {
	holder, waiter, other := newScripted(t), newScripted(t), newScripted(t)
	holder.acquires(1, true, replyHeld)
	waiter.acquires(1, true, replyWaiting)
	client, _ := newClient(t, shared.addr)
	future := float64(time.Now().Add(time.Hour).UnixMicro())
	client.ZAdd(t.Context(), keysOf(holder.n.name).Queue, redis.Z{Score: future, Member: waiter.id})
	if r, err := waiter.heartbeat(t.Context(), waiter.n, 1); err != nil || r.kind != replyWaiting {
		t.Fatalf("heartbeat = %+v, %v", r, err)
	}
	other.acquires(1, true, replyWaiting)
	holder.releases(1, 0, replyWaiting)
	waiter.owns("1")
	waiter.isTold("1")
}

// TestOneLocksErrorLeavesTheOthersRenewed: what is renewed together must not be lost together.
func TestOneLocksErrorLeavesTheOthersRenewed(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	s.acquires(1, true, replyHeld)
	client, _ := newClient(t, shared.addr)
	spoilt := lockOn(t.Name() + "spoilt")
	defer client.Del(context.WithoutCancel(t.Context()), keysOf(spoilt.name).all()...)
	client.LPush(t.Context(), keysOf(spoilt.name).Lock, "a list")
	if r, err := s.renew(t.Context(), spoilt, 1); err == nil {
		t.Errorf("the renewal of what is not a lock = %+v", r)
	}
	l, _ := newLocker(t, Options{Lease: time.Second})
	held, lease := acquire(t, l, within(t), t.Name()+"held")
	lost, spoiltLease := acquire(t, l, within(t), t.Name()+"lost")
	client.Del(t.Context(), Keys("", spoiltLease.Key()).Lock)
	client.LPush(t.Context(), Keys("", spoiltLease.Key()).Lock, "a list")
	defer client.Del(context.WithoutCancel(t.Context()), Keys("", spoiltLease.Key()).Lock)
	lostWithin(t, lost, 10*time.Second)
	if cause := context.Cause(lost); !strings.Contains(cause.Error(), "WRONGTYPE") {
		t.Errorf("the cause is %v, want it to say why it was not renewed", cause)
	}
	if held.Err() != nil {
		t.Errorf("the other hold ended with %v", context.Cause(held))
	}
	release(t, lease)
}

// TestWhatIsNotALockIsNotTaken: somebody else's value in the key of a lock is neither overwritten nor
// deleted. What has expired is not released.
func TestWhatIsNotALockIsNotTaken(t *testing.T) {
	s := newScripted(t)
	client, _ := newClient(t, shared.addr)
	for _, value := range []string{"something else", ""} {
		client.Set(t.Context(), keysOf(s.n.name).Lock, value, 0)
		if r, err := s.acquire(t.Context(), s.n, 1, false, 0); err == nil {
			t.Errorf("acquire where the key is %q = %+v, want an error", value, r)
		}
		if r, err := s.release(t.Context(), s.n, 1, 0, 0); err != nil || r.kind != replyDropped {
			t.Errorf("release where the key is %q = %+v, %v, want that it is not held", value, r, err)
		}
		if got := client.Get(t.Context(), keysOf(s.n.name).Lock).Val(); got != value {
			t.Errorf("the key is %q, was %q", got, value)
		}
	}
	client.Set(t.Context(), keysOf(s.n.name).Lock, "something else", 0)
	client.HSet(t.Context(), keysOf(s.n.name).Waiters, "somebody", "1:1:60000:0")
	client.ZAdd(t.Context(), keysOf(s.n.name).Queue, redis.Z{Score: 1, Member: "somebody"})
	if r, err := s.acquire(t.Context(), s.n, 2, true, 0); err == nil {
		t.Errorf("acquire where others wait for something else = %+v, want an error", r)
	}
	client.Del(t.Context(), keysOf(s.n.name).all()...)
	if r, err := s.release(t.Context(), s.n, 1, 0, 0); err != nil || r.kind != replyDropped {
		t.Errorf("release of a lock that has expired = %+v, %v, want that it is not held", r, err)
	}
}

// TestALabelThatLooksLikeAMarkKeepsItsPlace, when marks of cancelled attempts are cleared away.
func TestALabelThatLooksLikeAMarkKeepsItsPlace(t *testing.T) {
	s := newScripted(t)
	s.acquires(1, true, replyHeld)
	waiter := s
	waiter.server = newServer(s.client, "c:worker")
	waiter.acquires(1, true, replyWaiting)
	const gone = 130
	for range gone {
		other := s
		other.server = newServer(s.client, "")
		other.cancels(1)
	}
	if marks := s.client.(*redis.Client).HLen(t.Context(), keysOf(s.n.name).Waiters).Val(); marks >= gone {
		t.Errorf("%d marks are left of %d", marks, gone)
	}
	if r, err := waiter.heartbeat(t.Context(), waiter.n, 1); err != nil || r.kind != replyWaiting {
		t.Errorf("its heartbeat = %+v, %v, want that it waits", r, err)
	}
}

// TestRenewalsSayTheTime of the server, also where the lock is not the caller's.
func TestRenewalsSayTheTime(t *testing.T) {
	s := newScripted(t)
	s.acquires(1, false, replyHeld)
	for attempt, want := range map[uint64]int64{1: replyHeld, 2: replyDropped} {
		r, err := s.renew(t.Context(), s.n, attempt)
		if off := time.Since(time.Unix(0, r.epoch*1000)); err != nil || r.kind != want || off < 0 || off > time.Minute {
			t.Errorf("the renewal of attempt %d = %+v, %v", attempt, r, err)
		}
	}
}
