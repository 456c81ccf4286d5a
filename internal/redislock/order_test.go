package redislock

import (
	"context"
	"sync"
	"testing"
	"time"
)

// TestFirstComeFirstServedInAProcess is about goroutines, of which Redis knows nothing. Some cannot give up.
func TestFirstComeFirstServedInAProcess(t *testing.T) {
	l, _ := newLocker(t, Options{})
	_, lease := acquire(t, l, within(t), t.Name())
	const waiters = 5
	order := make(chan int, waiters)
	var all sync.WaitGroup
	for i := range waiters {
		all.Go(func() {
			ctx := within(t)
			if i%2 == 1 {
				ctx = context.Background()
			}
			_, lease := acquire(t, l, ctx, t.Name())
			order <- i
			release(t, lease)
		})
		eventually(t, "a goroutine waits", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.locks[tagged(t.Name())].waiters.Len() == i+1
		})
	}
	before := lease.Deadline()
	if renew(lease); !lease.Deadline().After(before) {
		t.Error("the lock is not renewed while they wait")
	}
	release(t, lease)
	all.Wait()
	for want := range waiters {
		if got := <-order; got != want {
			t.Errorf("served %d, want %d", got, want)
		}
	}
}

// TestFirstComeFirstServedByAllGoroutines has two processes with goroutines that came in turn, and
// no order among their processes that would serve them so. They hold for so long that none is
// passed on inside.
func TestFirstComeFirstServedByAllGoroutines(t *testing.T) {
	a, _ := newLocker(t, Options{})
	b, _ := newLocker(t, Options{})
	_, lease := acquire(t, a, within(t), t.Name())
	came := []*Locker{a, a, a, b, b, a}
	order := make(chan int, len(came))
	waiting := map[*Locker]int{}
	var all sync.WaitGroup
	for i, l := range came {
		all.Go(func() {
			_, lease := acquire(t, l, within(t), t.Name())
			order <- i
			time.Sleep(2 * longHold)
			release(t, lease)
		})
		waiting[l]++
		eventually(t, "a goroutine waits", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			n := l.locks[tagged(t.Name())]
			return n != nil && n.state != asking && n.waiters.Len() == waiting[l]
		})
		time.Sleep(100 * time.Millisecond) // far longer than a request takes to Redis, by which the order can be wrong
	}
	release(t, lease)
	all.Wait()
	for want := range came {
		if got := <-order; got != want {
			t.Errorf("served %d, want %d", got, want)
		}
	}
}

// TestWhoAsksLateKeepsItsPlace: the request that queues a waiter can be sent long after it came.
func TestWhoAsksLateKeepsItsPlace(t *testing.T) {
	holder, first, second := newScripted(t), newScripted(t), newScripted(t)
	holder.acquires(1, true, replyHeld)
	second.acquires(1, true, replyWaiting)
	if r, err := first.acquire(t.Context(), first.n, 1, true, time.Minute); err != nil || r.kind != replyWaiting {
		t.Fatalf("acquire = %+v, %v", r, err)
	}
	holder.releases(1, 0, replyWaiting)
	first.owns("1")
	first.isTold("1")
	first.releases(1, 0, replyWaiting)
	second.releases(1, 0, replyWaiting)
}

// TestWaiterWithoutHeartbeatIsSkipped: also one that Redis has never seen listen.
func TestWaiterWithoutHeartbeatIsSkipped(t *testing.T) {
	holder, gone := newScripted(t), newScripted(t)
	gone.lease = 50 * time.Millisecond
	holder.acquires(1, true, replyHeld)
	gone.acquires(1, true, replyWaiting)
	time.Sleep(100 * time.Millisecond)
	holder.releases(1, 0, replyWaiting)
	holder.owns("")
}
