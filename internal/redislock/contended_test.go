package redislock

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// TestAHolderThatBeginsToListenLetsOthersIn: another process began to wait before that, and was not heard.
func TestAHolderThatBeginsToListenLetsOthersIn(t *testing.T) {
	ctx, key := within(t), t.Name()
	holder, _ := newLocker(t, Options{Lease: time.Minute})
	other, _ := newLocker(t, Options{Lease: time.Minute})
	_, lease := acquire(t, holder, ctx, key)
	got := make(chan error, 1)
	go func() {
		_, lease, err := other.Acquire(ctx, key)
		if err == nil {
			lease.Release()
		}
		got <- err
	}()
	client, _ := newClient(t, shared.addr)
	for client.ZCard(ctx, keysOf(key)[1]).Val() == 0 {
		time.Sleep(time.Millisecond)
	}
	// From here on there is always a goroutine of the holder's process that waits.
	stop := make(chan struct{})
	var busy sync.WaitGroup
	for range 2 {
		busy.Go(func() {
			for {
				_, lease, err := holder.Acquire(ctx, key)
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(2 * longHold) // so that the hand-offs of one hold do not come to an end first
				lease.Release()
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	eventually(t, "both wait", func() bool {
		holder.mu.Lock()
		defer holder.mu.Unlock()
		return holder.names[key].waiters.Len() == 2
	})
	release(t, lease)
	begun := time.Now()
	if err := <-got; err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("the other process was let in after %s", took)
	}
	close(stop)
	busy.Wait()
}

// TestWhoBeginsToListenAssumesThatOthersWait: also when the answer with the grant is still under way.
func TestWhoBeginsToListenAssumesThatOthersWait(t *testing.T) {
	l, _ := newLocker(t, Options{})
	l.mu.Lock()
	n := l.name(t.Name())
	in := &inbox{ready: make(chan struct{})}
	for _, s := range []state{asking, held} {
		n.state, n.grant.others, n.contended, in.opened, in.ready = s, 0, false, time.Time{}, make(chan struct{})
		l.mu.Unlock()
		l.subscribed(in)
		l.mu.Lock()
		if s == asking && !n.contended || s == held && n.grant.others == 0 {
			t.Errorf("in state %d: contended %v, %d others", s, n.contended, n.grant.others)
		}
	}
	n.state = idle
	l.mu.Unlock()
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
