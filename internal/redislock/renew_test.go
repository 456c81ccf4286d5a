package redislock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// acquireMany acquires so many locks, which are called "0", "1" and so on.
func acquireMany(t *testing.T, l *Locker, locks int) (leases []*Lease) {
	t.Helper()
	for k := range locks {
		_, lease := acquire(t, l, t.Context(), fmt.Sprint(k))
		leases = append(leases, lease)
	}
	return leases
}

// makeDue has every lock's renewal fall due now, and returns how many were sent until nothing moves.
func makeDue(f *fakeRedis, l *Locker) int {
	before := len(f.requests(renewScript))
	l.mu.Lock()
	for _, n := range l.locks {
		n.due = l.now()
		l.scheduleLocked(n)
	}
	l.unlock()
	settled()
	return len(f.requests(renewScript)) - before
}

// TestABurstOfRenewals: what falls due at once goes out in a few pipelines, the nearest deadline first. A few of
// these are under way at a time, whatever is overdue.
func TestABurstOfRenewals(t *testing.T) {
	const batch = 50
	const locks = maxPipelines*batch + 2*batch
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		l.maxBatch = batch
		leases := acquireMany(t, l, locks)
		if n := makeDue(f, l); n != locks || len(f.pipelines) != locks/batch || slices.Max(f.pipelines) != batch || f.mostUnderWay > maxPipelines {
			t.Errorf("%d renewals of %d were sent, in %d pipelines of up to %d, up to %d at a time", n, locks, len(f.pipelines), slices.Max(f.pipelines), f.mostUnderWay)
		}
		first := leases[locks-batch]
		var sent atomic.Bool
		f.refuse = func(cmd redis.Cmder) error {
			if cmd.(*onceCmd).lock == first.hold.lock {
				sent.Store(true)
			}
			return nil
		}
		first.hold.lock.deadline -= time.Second
		f.answers(renewScript, noAnswer)
		makeDue(f, l)
		if n := goroutinesOfLockers(); f.underWay != maxPipelines || n != maxPipelines || !sent.Load() {
			t.Errorf("%d pipelines and %d goroutines are under way, want %d; the nearest deadline among them: %v", f.underWay, n, maxPipelines, sent.Load())
		}
		f.answers(renewScript, nil)
		time.Sleep(fakeLease) // what was under way is over, and sent again
		if n := makeDue(f, l); n != locks || l.queued() > 0 {
			t.Errorf("%d renewals of %d were sent after the silence, and %d are left", n, locks, l.queued())
		}
	})
}

// goroutinesOfLockers counts those of this bubble that Lockers started, or that are in one. Those of
// earlier tests can still be about to end.
func goroutinesOfLockers() (n int) {
	stacks := make([]byte, 1<<22)
	all := strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n")
	bubble := regexp.MustCompile(`synctest bubble \d+\b`).FindString(all[0]) // the caller's own stack is the first
	for _, stack := range all {
		header, _, _ := strings.Cut(stack, "\n")
		if strings.Contains(header, bubble+"]") && strings.Contains(stack, ".(*Locker)") {
			n++
		}
	}
	return n
}

// TestRenewalsGoOutTogether: those of many locks, in the ordinary course of a lease.
func TestRenewalsGoOutTogether(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		const locks = 1000
		acquireMany(t, l, locks)
		time.Sleep(third(fakeLease))
		synctest.Wait()
		together := 0
		for _, n := range f.pipelines {
			together += n
		}
		if together < locks*9/10 || len(f.pipelines) > 30 {
			t.Errorf("%d renewals in %d pipelines in a third of the lease, want %d in 30", together, len(f.pipelines), locks)
		}
		before := len(f.requests(renewScript))
		time.Sleep(fakeLease)
		n := len(f.requests(renewScript)) - before
		if n < 3*locks || n > 4*locks*11/10 { // at a third, or up to a quarter of that earlier
			t.Errorf("%d locks were renewed %d times in a lease, want three to four times each", locks, n)
		}
	})
}

// TestARenewalsErrorIsItsOwn: in a pipeline. A script that Redis does not know is sent for those
// whose hash was refused, once, and nothing is sent again by the client.
func TestARenewalsErrorIsItsOwn(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		leases := acquireMany(t, l, 10)
		time.Sleep(time.Second)
		var whole []string
		f.refuse = func(cmd redis.Cmder) error {
			if once, ok := cmd.(interface{ NoRetry() bool }); !ok || !once.NoRetry() {
				t.Errorf("the client may send %v again", cmd.Args()[0])
			}
			switch key := cmd.Args()[3].(string); {
			case cmd.Args()[0] == "eval":
				whole = append(whole, key)
			case strings.HasPrefix(key, "{3}"):
				return redisError("OOM command not allowed")
			case len(whole) == 0 && key >= "{5}":
				return redisError("NOSCRIPT No matching script")
			}
			return nil
		}
		makeDue(f, l)
		for k, lease := range leases {
			failed := lease.hold.failed.Load()
			if renewed := lease.hold.lock.deadline == l.now()+fakeValidity; renewed != (k != 3) || (failed == nil) != (k != 3) {
				t.Errorf("lock %d: renewed %v, %v", k, renewed, failed)
			}
		}
		if len(whole) != 1 {
			t.Errorf("the script was sent for %q, want once for those whose hash was refused", whole)
		}
		f.refuse = func(redis.Cmder) error { return redisError("NOSCRIPT whatever is sent") }
		before := len(f.requests(acquireScript))
		if _, _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, ErrUnavailable) || len(f.requests(acquireScript)) != before+2 {
			t.Errorf("TryAcquire = %v after %d requests, want the hash and the source once", err, len(f.requests(acquireScript))-before)
		}
		f.refuse, f.before = nil, func(redis.Cmder) error { panic("on purpose") }
		makeDue(f, l)
		for k, lease := range leases {
			if failed := lease.hold.failed.Load(); failed == nil || !strings.Contains((*failed).Error(), "on purpose") {
				t.Errorf("lock %d: %v, want the panic of the client's hook", k, failed)
			}
		}
		f.before = nil
		for answer, kept := range map[error]error{nil: errDown, errDown: nil} { // the error of a hook, and one that it keeps to itself
			f.refuse, f.hook = func(redis.Cmder) error { return answer }, func(error) error { return kept }
			if _, _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, errDown) {
				t.Errorf("TryAcquire = %v, want %v", err, errDown)
			}
		}
		f.refuse, f.hook = nil, nil
	})
}

// TestLongLeases are renewed each ten seconds, too. They do not keep short ones waiting: a pipeline ends with the
// shortest lease in it, and where the client does not end it, it counts no more.
func TestLongLeases(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		l.maxBatch = 3
		const locks = 14 // so that one of the first pipelines has both
		for k := range locks {
			lease := maxLease
			if k%2 == 1 {
				lease = fakeLease
			}
			_, mine, err := l.AcquireWith(t.Context(), fmt.Sprint(k), AcquireOptions{Lease: lease})
			must(t, err)
			if next := under(l, func() instant { return mine.hold.lock.due - l.now() }); next > 10*time.Second {
				t.Errorf("the first renewal of a lease of %s is after %s", lease, next)
			}
			defer release(t, mine)
		}
		time.Sleep(time.Minute)
		if n := len(f.requests(renewScript)); n < 6*locks/2+15*locks/2 {
			t.Errorf("%d renewals of %d locks in a minute, want each of the long ones each ten seconds", n, locks)
		}
		stuck := make(chan bool)
		var mu sync.Mutex
		var ends []time.Duration
		f.answers(renewScript, func(ctx context.Context) (any, error) {
			end, _ := ctx.Deadline()
			mu.Lock()
			ends = append(ends, time.Until(end))
			mu.Unlock()
			<-stuck
			return heldReply, nil
		})
		makeDue(f, l)
		mu.Lock()
		first := slices.Sorted(slices.Values(ends)) // the third one has both
		mu.Unlock()
		time.Sleep(2 * interval(fakeLease))
		mu.Lock()
		defer mu.Unlock()
		if len(first) != maxPipelines || len(ends) <= maxPipelines || first[2] > interval(fakeLease) || slices.Max(ends) > interval(maxLease) {
			t.Errorf("pipelines have the deadlines %s, want more than %d, three of them short", ends, maxPipelines)
		}
		f.answers(renewScript, nil)
		close(stuck)
		time.Sleep(fakeLease)
	})
}

// TestASilentNodeDelaysNoOther: in a Cluster, each node has its own pipelines.
func TestASilentNodeDelaysNoOther(t *testing.T) {
	var nodes [2]*redis.Client // which nobody asks
	nodes[0], _ = newClient(t, "a")
	nodes[1], _ = newClient(t, "b")
	synctest.Test(t, func(t *testing.T) {
		f := fakeCluster{newFakeRedis(t), nodes}
		l := New(f, Options{Lease: fakeLease})
		l.maxBatch = 50
		const silent, others = maxPipelines*50 + 100, 100
		lost := [2]int{}
		l.opts.Hooks.Lost = func(_ context.Context, e Event) { lost[nodeOf(Keys("", e.Key).Lock)]++ }
		for k := range silent + others { // by the length of its name, a lock is at the one node or the other
			acquire(t, l, t.Context(), strings.Repeat("a", 1+min(k/silent, 1))+fmt.Sprintf("%05d", k))
		}
		f.refuses(func(cmd redis.Cmder) error {
			if nodeOf(cmd.Args()[3].(string)) == 0 {
				time.Sleep(time.Second)
				return context.DeadlineExceeded
			}
			return nil
		})
		time.Sleep(3 * fakeLease)
		synctest.Wait() // for the hook, too
		if lost[0] != silent || lost[1] != 0 {
			t.Errorf("%d of %d holds at the silent node were lost, and %d at the other", lost[0], silent, lost[1])
		}
		f.refuses(nil)
		closes(t, l)
	})
}

// TestARenewalThatFailedIsSaid by a hook, and as the reason of the loss. So is a want of connections.
func TestARenewalThatFailedIsSaid(t *testing.T) {
	for want, fails := range map[string]func(cmd redis.Cmder, blocked <-chan bool) error{
		errDown.Error():          func(redis.Cmder, <-chan bool) error { return errDown },
		"no answer":              func(cmd redis.Cmder, blocked <-chan bool) error { cmd.Args(); <-blocked; return nil },
		"waits for a connection": func(_ redis.Cmder, blocked <-chan bool) error { <-blocked; return nil }, // the pool is in use elsewhere
	} {
		withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
			blocked := make(chan bool)
			failures := make(chan Event, 99)
			l.opts.Hooks.NotRenewed = func(_ context.Context, e Event) { failures <- e }
			f.before = func(cmd redis.Cmder) error {
				if cmd.(*onceCmd).script == renewScript {
					return fails(cmd, blocked)
				}
				return nil
			}
			held, lease := acquire(t, l, t.Context(), "k")
			<-held.Done()
			synctest.Wait()
			if text := context.Cause(held).Error(); !strings.Contains(text, want) {
				t.Errorf("the hold ended with %q, want %q", text, want)
			}
			if n := len(failures); want == errDown.Error() {
				if e := <-failures; n < 3 || e.Key != "k" || e.Token != lease.Token() || !errors.Is(e.Err, errDown) {
					t.Errorf("the hook was called %d times, with %+v", n, e)
				}
			}
			close(blocked)
		})
	}
}

// TestAClockThatIsSetForwardIsSeen by the answers to renewals, less their round trip. Then all holds are
// renewed at once, and go on.
func TestAClockThatIsSetForwardIsSeen(t *testing.T) {
	for name, c := range map[string]struct {
		forward, roundTrip time.Duration
		refused            bool
	}{
		"same":                          {},
		"slow answers":                  {roundTrip: 1500 * time.Millisecond},
		"set back":                      {forward: -12 * time.Second},
		"set forward":                   {forward: 3 * time.Second},
		"set forward, slow answers":     {forward: 3 * time.Second, roundTrip: time.Second},
		"set forward, by a whole lease": {forward: 12 * time.Second, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
				l.maxBatch = 1 // of a batch, the fake answers one after the other: its round trips would add up
				var forward, underWay atomic.Int64
				clock := func(kind int64) func(context.Context) (any, error) {
					return func(context.Context) (any, error) {
						underWay.Add(1)
						defer underWay.Add(-1)
						time.Sleep(c.roundTrip / 2)
						now := time.Now().Add(time.Duration(forward.Load())).UnixMicro()
						time.Sleep(c.roundTrip / 2)
						if kind == replyHeld {
							return now, nil
						}
						return []any{kind, now}, nil
					}
				}
				f.answers(acquireScript, clock(replyHeld))
				f.answers(renewScript, clock(replyHeld))
				var seen []time.Duration
				l.opts.Hooks.ClockJumped = func(by time.Duration) { seen = append(seen, by) }
				_, first := acquire(t, l, t.Context(), "first")
				time.Sleep(third(fakeLease) / 2)
				held, second := acquire(t, l, t.Context(), "second")
				time.Sleep(3 * fakeLease)
				for underWay.Load() > 0 { // the round trip of a renewal across the jump would hide a part of it
					time.Sleep(time.Millisecond)
				}
				forward.Store(int64(c.forward))
				if c.refused {
					f.answers(renewScript, clock(replyDropped))
				}
				l.mu.Lock()
				first.hold.lock.due = l.now()
				second.hold.lock.due = l.now() + third(fakeLease)
				l.scheduleLocked(first.hold.lock)
				l.unlock()
				before := len(f.requests(renewScript))
				time.Sleep(c.roundTrip*3/2 + time.Millisecond)
				synctest.Wait()
				sent := len(f.requests(renewScript)) - before
				time.Sleep(3 * fakeLease)
				synctest.Wait()
				if c.forward <= 0 && (c.roundTrip == 0 && sent != 1 || len(seen) > 0) ||
					c.forward > 0 && (sent < 2 || len(seen) != 1 || seen[0] > c.forward || seen[0] < c.forward-c.roundTrip-time.Second/2) {
					t.Errorf("%d renewals, and the hook was called with %s", sent, seen)
				}
				if (held.Err() == nil) == c.refused {
					t.Errorf("the other hold: %v", context.Cause(held))
				}
			})
		})
	}
	// A heartbeat's answer that comes after the grant has that grant's epoch, and no time.
	m := machine{state: held, lease: fakeLease, ahead: time.Hour}
	if by := m.jumped(false, reply{kind: replyHeld, epoch: 12345}, 1, 2); by != 0 || m.ahead != time.Hour {
		t.Errorf("the clock is ahead by %s, and jumped by %s", m.ahead, by)
	}
	// A grant that a heartbeat finds can have an epoch of an earlier time.
	const at = 100 * time.Second
	m = machine{state: waiting, attempt: 1, lease: fakeLease}
	m.renewed(1, false, reply{kind: replyHeld, epoch: (at - fakeLease/3).Microseconds()}, at, at)
	clock := func(later, ahead time.Duration) time.Duration {
		return m.jumped(true, reply{kind: replyHeld, epoch: (at + later + ahead).Microseconds()}, at+later, at+later)
	}
	if by := clock(time.Second, 0); m.state != held || by > 0 {
		t.Errorf("the clock has jumped by %s when a hold was found, want not", by)
	}
	if by := clock(2*time.Second, time.Minute); by < 50*time.Second {
		t.Errorf("the clock has jumped by %s, want a minute", by)
	}
}

// TestNothingIsSentForNobody: renewals that waited for their turn, and whose locks were released meanwhile.
func TestNothingIsSentForNobody(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		l.maxBatch = 1
		leases := acquireMany(t, l, maxPipelines+2)
		f.answers(renewScript, noAnswer)
		if n := makeDue(f, l); n != maxPipelines || l.queued() != maxPipelines+2 {
			t.Errorf("%d renewals are under way, and %d with those that wait", n, l.queued())
		}
		for _, lease := range leases {
			release(t, lease)
		}
		time.Sleep(fakeLease)
		synctest.Wait()
		if l.queued() != 0 || slices.Contains(f.pipelines, 0) {
			t.Errorf("%d renewals wait, and pipelines had %d commands", l.queued(), f.pipelines)
		}
	})
}

// TestLooksLetGoOfTheMutex: however many locks are due, others get the mutex after some of them. The first
// hook is called then, while most of the holds have not been looked at.
func TestLooksLetGoOfTheMutex(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		const locks = maxLooks + maxLooks/2
		acquireMany(t, l, locks)
		looked, most := 0, 0
		l.opts.Hooks.Lost = func(context.Context, Event) {
			l.mu.Lock()
			defer l.unlock()
			ended := locks
			for _, n := range l.locks {
				if n.hold != nil {
					ended--
				}
			}
			looked, most = max(looked, ended), max(most, ended-looked)
		}
		l.mu.Lock()
		for _, n := range l.locks {
			n.deadline = l.now()
			l.scheduleLocked(n)
		}
		l.unlock()
		time.Sleep(10 * time.Nanosecond) // the next turn is a nanosecond later
		synctest.Wait()
		if looked != locks || most > maxLooks {
			t.Errorf("%d of %d holds were ended, up to %d at once, want %d at most", looked, locks, most, maxLooks)
		}
	})
}

// TestTheAgendaHasEachLockOnce, wherever others were put in and out.
func TestTheAgendaHasEachLockOnce(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		leases := map[string]*Lease{}
		for i := 0; i < 3000 && !t.Failed(); i++ {
			key := fmt.Sprint(rand.N(200))
			if lease := leases[key]; lease != nil {
				release(t, lease)
				delete(leases, key)
			} else {
				_, leases[key] = acquire(t, l, t.Context(), key)
			}
			l.mu.Lock()
			for i, s := range l.agenda {
				if s.lock.place != i+1 || s.at != s.lock.nextLook() || s.at < l.next {
					t.Errorf("in place %d is a lock of place %d, to be looked at in %s instead of %s, by a timer of %s", i+1, s.lock.place, s.at, s.lock.nextLook(), l.next)
				}
			}
			if len(l.agenda) != len(leases) {
				t.Errorf("after %d steps, the agenda has %d locks of %d", i, len(l.agenda), len(leases))
			}
			l.unlock()
		}
		for _, lease := range leases {
			release(t, lease)
		}
	})
}
