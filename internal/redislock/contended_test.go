package redislock

import (
	"context"
	"sync"
	"testing"
	"time"
)

// TestABusyProcessLetsAnotherIn: it passes the lock on among its goroutines without a pause. It hears of another
// process that waits at once, not at its renewal, also if that began to wait before it listened.
func TestABusyProcessLetsAnotherIn(t *testing.T) {
	for _, before := range []bool{false, true} {
		holder, _ := newLocker(t, Options{Lease: time.Minute})
		other, _ := newLocker(t, Options{Lease: time.Minute})
		_, lease := acquire(t, holder, within(t), t.Name())
		var got <-chan *Lease
		if before {
			got = queues(t, other, t.Name(), 1)
		}
		ctx, stop := context.WithCancel(within(t))
		var busy sync.WaitGroup
		for range 2 {
			busy.Go(func() {
				for ctx.Err() == nil {
					if _, lease, err := holder.Acquire(ctx, t.Name()); err == nil {
						time.Sleep(3 * longHold) // the passes of one hold would take half a minute
						lease.Release()
					}
				}
			})
		}
		eventually(t, "both wait", func() bool { return holder.waitersOf(t.Name()) == 2 })
		release(t, lease)
		if !before {
			eventually(t, "it is passed on", func() bool {
				holder.mu.Lock()
				defer holder.mu.Unlock()
				return holder.locks[tagged(t.Name())].passes > 2
			})
			got = asks(t, within(t), other, t.Name())
		}
		release(t, soon(t, got, 10*time.Second))
		stop()
		busy.Wait()
	}
}

// TestWhoBeginsToListenAssumesThatOthersWait: also when the answer with the grant is still under
// way, or a message overtakes it on the other connection.
func TestWhoBeginsToListenAssumesThatOthersWait(t *testing.T) {
	for name, note := range map[string]func(*machine){"a message": (*machine).contend, "a subscription": func(m *machine) { m.resume(2) }} {
		var m machine
		m.ask(1, 7, time.Second)
		note(&m)
		m.granted(reply{kind: replyHeld, epoch: 1}, 1, 2)
		before := m.others
		m.others = 0
		if note(&m); before == 0 || m.others == 0 {
			t.Errorf("%s: of others that wait, the holder knows %d from before its answer, and %d while it holds", name, before, m.others)
		}
	}
}

// TestAGrantSaysHowManyWait: a message does, too. A process that did not know would keep the lock among its own
// goroutines.
func TestAGrantSaysHowManyWait(t *testing.T) {
	holder, _ := newLocker(t, Options{Lease: time.Minute})
	_, lease := acquire(t, holder, within(t), t.Name())
	var lockers []*Locker
	var got []<-chan *Lease
	const waiting = 3
	for n := range int64(waiting) {
		l, _ := newLocker(t, Options{Lease: time.Minute})
		lockers, got = append(lockers, l), append(got, queues(t, l, t.Name(), n+1))
		eventually(t, "it listens", l.hears)
	}
	for n, l := range lockers {
		release(t, lease)
		lease = <-got[n]
		l.mu.Lock()
		know := l.locks[tagged(t.Name())].others
		l.mu.Unlock()
		if want := int64(max(waiting-1-n, 1)); know != want { // who begins to listen assumes that one waits
			t.Errorf("the next one knows of %d others that wait, want %d", know, want)
		}
	}
	release(t, lease)
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
		{1, fewPasses - 1, maxTurn - 1, true},
		{1, fewPasses - 1, maxTurn, false},
		{1, fewPasses, shortTurn, false},
		{1, maxPasses - 1, shortTurn - 1, true},
		{1, maxPasses, 0, false},
		{1, 0, longHold, false},
		{1, 1, longHold, true},
		{2 * manyOthers, fewPasses/2 - 1, maxTurn/2 - 1, true},
		{2 * manyOthers, fewPasses/2 - 1, maxTurn / 2, false},
		{2 * manyOthers, fewPasses / 2, shortTurn / 2, false},
		{2 * manyOthers, maxPasses / 2, 0, false},
	} {
		m := machine{state: held, lease: lease, others: c.others, given: 1, deadline: lease, passes: c.passes}
		if got := m.mayPass(lease, 1+c.since); got != c.want {
			t.Errorf("%d others, %d passes, %s after the grant: may pass %v, want %v", c.others, c.passes, c.since, got, c.want)
		}
	}
}

// TestFirstComeFirstServed has two processes with goroutines that came in turn, and no order among their
// processes that would serve them so. They hold for so long that none is passed on inside. Some cannot give up.
func TestFirstComeFirstServed(t *testing.T) {
	a, _ := newLocker(t, Options{})
	b, _ := newLocker(t, Options{})
	_, lease := acquire(t, a, within(t), t.Name())
	came := []*Locker{a, a, a, b, b, a}
	order := make(chan int, len(came))
	waiting := map[*Locker]int{}
	var all sync.WaitGroup
	for i, l := range came {
		all.Go(func() {
			ctx := within(t)
			if i%2 == 1 {
				ctx = context.Background()
			}
			_, lease := acquire(t, l, ctx, t.Name())
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
		time.Sleep(50 * time.Millisecond) // far longer than a request takes to Redis, by which the order can be wrong
	}
	before := lease.Deadline()
	if renew(lease); !lease.Deadline().After(before) {
		t.Error("the lock is not renewed while they wait")
	}
	release(t, lease)
	all.Wait()
	for want := range came {
		if got := <-order; got != want {
			t.Errorf("served %d, want %d", got, want)
		}
	}
}
