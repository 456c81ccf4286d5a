package redislock

import (
	"sync"
	"testing"
	"time"
)

// TestFirstComeFirstServedInAProcess is about goroutines, of which Redis knows nothing.
func TestFirstComeFirstServedInAProcess(t *testing.T) {
	l, _ := newLocker(t, Options{})
	_, lease := acquire(t, l, within(t), t.Name())
	const waiters = 5
	order := make(chan int, waiters)
	var all sync.WaitGroup
	for i := range waiters {
		all.Go(func() {
			_, lease := acquire(t, l, within(t), t.Name())
			order <- i
			release(t, lease)
		})
		eventually(t, "a goroutine waits", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.names[t.Name()].waiters.Len() == i+1
		})
	}
	release(t, lease)
	all.Wait()
	for want := range waiters {
		if got := <-order; got != want {
			t.Errorf("served %d, want %d", got, want)
		}
	}
}

// TestSilentWaiterIsSkippedWhereReceiversAreNotCounted is about a Cluster, where a message that reaches nobody
// proves nothing: there the end of a waiter's heartbeat tells that it is gone.
func TestSilentWaiterIsSkippedWhereReceiversAreNotCounted(t *testing.T) {
	holder, gone := newScripted(t), newScripted(t)
	holder.trusted, gone.trusted = "0", "0"
	gone.lease = "50"
	holder.acquires(1, true, replyHeld)
	gone.acquires(1, true, replyWaiting)
	time.Sleep(100 * time.Millisecond)
	holder.releases(1, 0, replyWaiting)
	holder.owns("")
}
