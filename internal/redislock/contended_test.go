package redislock

import (
	"sync"
	"testing"
	"time"
)

// TestAHolderThatBeginsToListenLetsOthersIn: another process began to wait before that, and was not
// heard.
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
	for client.ZCard(ctx, Keys("", key).Queue).Val() == 0 {
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
		return holder.locks[tagged(key)].waiters.Len() == 2
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

// TestWhoBeginsToListenAssumesThatOthersWait: also when the answer with the grant is still under
// way, or a message overtakes it on the other connection.
func TestWhoBeginsToListenAssumesThatOthersWait(t *testing.T) {
	for name, note := range map[string]func(*machine){"a message": (*machine).contend, "a subscription": func(m *machine) { m.resume(2) }} {
		var m machine
		m.ask(1, 7, time.Second)
		note(&m)
		if m.granted(reply{kind: replyHeld, epoch: 1}, 1, 2); m.state != held || m.others == 0 {
			t.Errorf("%s before the answer: the holder does not know that another process may wait: %+v", name, m)
		}
		m.others = 0
		if note(&m); m.others == 0 {
			t.Errorf("%s while held: the holder does not know that another process may wait: %+v", name, m)
		}
	}
}

// TestAGrantSaysHowManyWait: a message does, too. A process that did not know would keep the lock among its own
// goroutines.
func TestAGrantSaysHowManyWait(t *testing.T) {
	ctx, key := within(t), t.Name()
	client, _ := newClient(t, shared.addr)
	holder, _ := newLocker(t, Options{Lease: time.Minute})
	_, lease := acquire(t, holder, ctx, key)
	others := make(chan int64)
	const waiting = 3
	for n := range waiting {
		l, _ := newLocker(t, Options{Lease: time.Minute})
		go func() {
			_, lease, err := l.Acquire(ctx, key)
			if err != nil {
				t.Error(err)
				others <- -1
				return
			}
			l.mu.Lock()
			know := l.locks[tagged(key)].others
			l.mu.Unlock()
			others <- know
			lease.Release()
		}()
		for client.ZCard(ctx, Keys("", key).Queue).Val() <= int64(n) && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
	}
	release(t, lease)
	for n := range waiting {
		want := int64(max(waiting-1-n, 1)) // who begins to listen assumes that one waits
		if got := <-others; got != want {
			t.Errorf("the next one knows of %d others that wait, want %d", got, want)
		}
	}
}

// TestTurnsAreShorterWhereManyWait: and end with the passes, with time, and with long holds.
func TestTurnsAreShorterWhereManyWait(t *testing.T) {
	const lease = time.Minute
	for _, c := range []struct {
		others, passes int64
		since          time.Duration
		want           bool
	}{
		{0, 1<<tokenBits - 2, lease / 2, true}, // nobody is kept waiting
		{0, 1<<tokenBits - 1, 0, false},        // the tokens of the epoch are used up
		{1, maxPasses - 1, maxTurn - 1, true},
		{1, maxPasses, 0, false},
		{1, maxPasses - 1, maxTurn, false},
		{1, 0, longHold, false},
		{1, 1, longHold, true},
		{2 * manyOthers, maxPasses/2 - 1, maxTurn/2 - 1, true},
		{2 * manyOthers, maxPasses / 2, 0, false},
		{2 * manyOthers, maxPasses/2 - 1, maxTurn / 2, false},
	} {
		m := machine{state: held, lease: lease, others: c.others, given: 1, deadline: lease, passes: c.passes}
		if got := m.mayPass(lease, 1+c.since); got != c.want {
			t.Errorf("%d others, %d passes, %s after the grant: may pass %v, want %v", c.others, c.passes, c.since, got, c.want)
		}
	}
}
