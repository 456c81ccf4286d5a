package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// What only a change of the lock can break, and no copy needs.

// TestAHeartbeatsErrorIsSaid. A renewal's is the holder's own: others of its process wait for its release.
func TestAHeartbeatsErrorIsSaid(t *testing.T) {
	withListening(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		var mu sync.Mutex
		var told []string
		l.opts.Hooks.NotServed = func(_ context.Context, e Event) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, e.Key)
		}
		_, lease := acquire(t, l, t.Context(), "held")
		f.answers(acquireScript, says(waitingReply))
		for key, want := range map[string]error{"held": ErrNotAcquired, "k": errDown, "for a moment": ErrNotAcquired} {
			f.answers(renewScript, map[bool]func(context.Context) (any, error){true: down}[key == "held"])
			f.answers(heartbeatScript, func(context.Context) (any, error) {
				if key == "for a moment" {
					f.answers(heartbeatScript, says(waitingReply))
				}
				return nil, errDown
			})
			if _, _, err := l.AcquireWith(t.Context(), key, AcquireOptions{Wait: fakeLease * 2 / 5}); !errors.Is(err, want) {
				t.Errorf("Acquire(%q) = %v, want %v", key, err, want)
			}
		}
		f.answers(acquireScript, noAnswer)
		if _, _, err := l.AcquireWith(t.Context(), "k", AcquireOptions{Wait: tellAfter / 2}); errors.Is(err, errDown) {
			t.Errorf("Acquire = %v, which was the last wait's", err)
		}
		f.answers(acquireScript, func(context.Context) (any, error) {
			time.Sleep(time.Millisecond)
			f.answers(acquireScript, says(waitingReply))
			return nil, redisError("READONLY a replica")
		})
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if _, _, err := l.AcquireWith(t.Context(), "then taken", AcquireOptions{Wait: time.Second}); !errors.Is(err, ErrNotAcquired) {
					t.Errorf("Acquire = %v after Redis had answered, want ErrNotAcquired", err)
				}
			})
		}
		both.Wait()
		if slices.Sort(told); !slices.Equal(told, []string{"for a moment", "k", "then taken", "then taken"}) {
			t.Errorf("of Redis' errors, these waits were told: %q", told)
		}
		release(t, lease)
	})
}

// TestLeavePassesNothingOn: the lock stays taken, also for those of its process, and for a millisecond at least.
func TestLeavePassesNothingOn(t *testing.T) {
	withListening(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		_, lease := acquire(t, l, t.Context(), "k")
		got := waits(t, t.Context(), l, "k")
		f.keepArgs = true
		err := lease.Leave(time.Microsecond)
		synctest.Wait()
		if err != nil || len(f.args) < 6 || f.args[5] != int64(1) || len(f.requests(acquireScript)) != 2 {
			t.Errorf("Leave = %v with %v; %d requests for the lock, want that the waiter asks anew", err, f.args, len(f.requests(acquireScript)))
		}
		release(t, <-got)
	})
}

// TestAGrantThatIsToldLateEndsNoLeave: a heartbeat was faster than its message. A grant that was no hold here is ended.
func TestAGrantThatIsToldLateEndsNoLeave(t *testing.T) {
	withListening(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		_, lease := acquire(t, l, t.Context(), "k")
		must(t, lease.Leave(time.Hour))
		for _, attempt := range []int{1, 2} {
			under(l, func() bool { delete(l.locks, tagged("k")); return true }) // as where there are many
			l.hear(fmt.Sprint("granted ", attempt, " 12345 0 ", tagged("k")))
			if settled(); len(f.requests(cancelScript)) != attempt-1 {
				t.Errorf("attempt %d is told: %d cancels", attempt, len(f.requests(cancelScript)))
			}
		}
	})
}

// TestATryDuringALeave, of a lock that others wait for, waits for nothing: the lease that is left may be long.
func TestATryDuringALeave(t *testing.T) {
	withListening(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		_, lease := acquire(t, l, t.Context(), "k")
		got := waits(t, t.Context(), l, "k")
		answer := make(chan struct{})
		f.answers(renewScript, func(context.Context) (any, error) { <-answer; return int64(12345), nil })
		left := make(chan error)
		go func() { left <- lease.Leave(time.Microsecond) }()
		synctest.Wait()
		for _, ctx := range []context.Context{t.Context(), context.WithoutCancel(t.Context())} {
			if _, _, err := l.TryAcquire(ctx, "k"); !errors.Is(err, ErrNotAcquired) {
				t.Errorf("TryAcquire = %v, want that others wait", err)
			}
		}
		time.Sleep(time.Second)
		f.keepArgs = true
		last := waits(t, context.WithoutCancel(t.Context()), l, "k")
		if waited := f.args[len(f.args)-1]; waited.(int64) < time.Second.Microseconds() {
			t.Errorf("whoever comes last asks as one that has waited for %v µs, want for the first", waited)
		}
		close(answer)
		if err := <-left; err != nil {
			t.Errorf("Leave = %v", err)
		}
		release(t, <-got)
		release(t, <-last)
	})
}

// TestTheContextsCauseStandsBesideAnError of Redis, once.
func TestTheContextsCauseStandsBesideAnError(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		ours := errors.New("ours")
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(ours)
		for i, ctx := range []context.Context{t.Context(), ended, ended} {
			w := &waiter{ctx: ctx, key: "k", begun: l.now(), answer: make(chan result, 1)}
			w.answer <- result{err: failed(ErrUnavailable, "acquire", "k", []error{errDown, errDown, ours}[i])}
			if _, _, err := l.await(newLock("{k}"), w); !errors.Is(err, ErrUnavailable) || strings.Count(err.Error(), "ours") != min(i, 1) || strings.Contains(err.Error(), "%!") {
				t.Errorf("Acquire = %v, want the cause, if there is one, beside that Redis is down", err)
			}
		}
	})
}

// TestAnErrorOfAPastAttemptIsNobodys: its asker has gone, and the next waiter has asked for a lease of its own.
func TestAnErrorOfAPastAttemptIsNobodys(t *testing.T) {
	for _, past := range []error{os.ErrDeadlineExceeded, redisError("READONLY a replica")} {
		withListening(t, func(t *testing.T, f *fakeRedis, l *Locker) {
			l.opts.Hooks.NotServed = func(_ context.Context, e Event) { t.Errorf("a waiter was told %v", e.Err) }
			over := make(chan struct{})
			f.answers(acquireScript, func(context.Context) (any, error) {
				<-over
				return nil, past
			})
			ctx, cancel := context.WithCancel(t.Context())
			go l.Acquire(ctx, "k")
			synctest.Wait()
			l.opts.Lease *= 2
			got := waits(t, t.Context(), l, "k")
			f.answers(acquireScript, says(waitingReply))
			cancel()
			synctest.Wait()
			close(over)
			synctest.Wait()
			l.mu.Lock()
			heartbeat := l.server.command(heartbeatScript, l.locks["{k}"], 1)
			heartbeat.SetErr(past)
			l.renewedLocked(heartbeat, l.now())
			l.unlock()
			time.Sleep(2 * tellAfter)
			l.hear("granted 2 777 0 {k}")
			release(t, <-got)
		})
	}
}

// TestAGrantIsNotServedWithAnotherLease: its waiter has gone, and the next one wants another lease.
func TestAGrantIsNotServedWithAnotherLease(t *testing.T) {
	withListening(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		f.answers(acquireScript, noAnswer)
		ctx, cancel := context.WithCancel(t.Context())
		go l.Acquire(ctx, "k")
		synctest.Wait()
		l.opts.Lease *= 2
		got := waits(t, t.Context(), l, "k")
		f.answers(acquireScript, nil)
		l.mu.Lock()
		n := l.locks["{k}"]
		cancel() // its goroutine has not noticed that
		l.settleLocked(n, n.answered(n.attempt, reply{kind: replyHeld, epoch: 1}, true, l.now(), l.now()), Free)
		l.unlock()
		lease := <-got
		if left := time.Until(lease.Deadline()); left < fakeLease {
			t.Errorf("%s are left of the lease, want those of the waiter's own", left)
		}
		settled()
		if n := len(f.requests(cancelScript)); n != 1 {
			t.Errorf("%d cancels, want that of the attempt that nobody wanted any more", n)
		}
		release(t, lease)
	})
}

// FuzzReply: what a script answers is understood, or an error.
func FuzzReply(f *testing.F) {
	f.Add(int64(replyHeld), int64(123), int64(0), uint8(3))
	f.Add(int64(replyHeld), int64(-1), int64(0), uint8(3))
	f.Add(int64(replyWaiting), int64(-2), int64(0), uint8(2))
	f.Add(int64(replyWaiting), int64(1)<<44, int64(0), uint8(2)) // more milliseconds than a time.Duration has
	f.Add(int64(replyHeld), int64(0), int64(0), uint8(1))
	f.Add(int64(replyHeld), int64(0), int64(0), uint8(0))
	f.Add(int64(1)<<50, int64(0), int64(0), uint8(0))
	f.Add(int64(-7), int64(0), int64(0), uint8(0))
	f.Add(int64(7), int64(0), int64(0), uint8(1)) // only an epoch by itself is a hold
	f.Fuzz(func(t *testing.T, a, b, c int64, length uint8) {
		var v any = a
		if length > 0 {
			v = []any{a, b, c, "x"}[:min(int(length), 4)]
		}
		r, err := parseReply(v, nil)
		if err == nil && (r.kind < replyDropped || r.kind > replyWaiting || r.kind == replyHeld && r.epoch < 0 || r.ttl < 0 || length > 0 && r.kind != a) {
			t.Errorf("%v was read as %+v", v, r)
		}
	})
}

// FuzzMessage: whatever comes over the channel, nobody holds because of it who did not ask.
func FuzzMessage(f *testing.F) {
	for _, message := range []string{"granted 1 2 0 stock:42", "contended stock:42", "granted 1 2 0", "granted", "", "granted -1 x 9 k", "granted 0 0 0 ", "lost k"} {
		f.Add(message)
	}
	l := closing(f, New(newFakeRedis(nil), Options{}))
	f.Fuzz(func(t *testing.T, message string) {
		l.hear(message)
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.locks) > 0 {
			t.Errorf("%q made the locker know %d locks", message, len(l.locks))
		}
	})
}

// TestInspectShowsTheQueue: who waits longest comes first, and a dead process is not alive.
func TestInspectShowsTheQueue(t *testing.T) {
	p := newPlay(t)
	p.does("A acquires 1: held", "B acquires 2: waiting", "C acquires 3 after 60s: waiting", "D acquires 4: waiting", "B dies")
	l, _ := newLocker(t, Options{})
	seen, err := l.Inspect(t.Context(), t.Name())
	if a := p.peers["A"]; err != nil || len(seen.Waiters) != 3 || seen.Holder != (Process{ID: a.id, Attempt: 1, Alive: true}) || seen.Left <= 0 || seen.Left > a.lease {
		t.Fatalf("Inspect = %+v, %v", seen, err)
	}
	last := 2 * time.Minute
	for i, name := range []string{"C", "B", "D"} {
		w := seen.Waiters[i]
		if w.ID != p.peers[name].id || w.Alive != (name != "B") || w.Waited >= last || w.Waited < 0 || (w.Waited >= time.Minute) != (name == "C") || w.Attempt != []uint64{3, 1, 4}[i] {
			t.Errorf("%+v is at place %d, want %s", w, i, name)
		}
		last = w.Waited
	}
}

// TestTheLossOfAnOuterLockBehindItsContext: the caller has left, and the work under an inner lock goes on until the outer
// one is lost. Nobody looks. A hold that was acquired under that work ends with it.
func TestTheLossOfAnOuterLockBehindItsContext(t *testing.T) {
	withFake(t, func(t *testing.T, _ *fakeRedis, l *Locker) {
		ctx, cancel := context.WithCancel(t.Context())
		heldA, a, err := l.AcquireWith(ctx, "a", AcquireOptions{MaxHold: time.Second})
		must(t, err)
		heldB, b := acquire(t, l, heldA, "b")
		heldC, c := acquire(t, l, heldB, "c")
		commit, entry := acquire(t, l, context.WithoutCancel(heldC), "c")
		heldD, d := acquire(t, l, commit, "d")
		release(t, b) // a hold between them that is over
		cancel()
		synctest.Wait()
		if heldC.Err() == nil || commit.Err() != nil || heldD.Err() != nil {
			t.Errorf("the caller has left: %v; its commit has %v, %v", heldC.Err(), commit.Err(), heldD.Err())
		}
		time.Sleep(2 * time.Second)
		for name, done := range map[string]<-chan struct{}{"the commit": commit.Done(), "a lock under it": heldD.Done()} {
			select {
			case <-done:
			default:
				t.Errorf("the outer lock is lost: %v; %s goes on", a.hold.loss(), name)
			}
		}
		if cause := context.Cause(heldD); !errors.Is(cause, ErrHeldTooLong) {
			t.Errorf("it has ended with %v", cause)
		}
		_, _, _ = d.Release(), entry.Release(), c.Release()
		for _, h := range []*hold{a.hold, c.hold} {
			h.inner.Range(func(any, any) bool { t.Error("a hold keeps an entry that is over"); return true })
		}
	})
}

// TestALostMessageDoesNotKeepOthersWaiting: a process that passes the lock on, and was not told that others wait, asks
// Redis after a third of the lease. The answer says how many they are. It asks no more often than that.
func TestALostMessageDoesNotKeepOthersWaiting(t *testing.T) {
	for others, most := range map[int64]int{0: 4, 1: 10} {
		withListening(t, func(t *testing.T, f *fakeRedis, l *Locker) {
			f.answers(releaseScript, says([]any{int64(replyHeld), int64(12345), others}))
			begun := time.Now()
			const hold = time.Second // beside other processes, it is not passed on
			var busy sync.WaitGroup
			for range 2 {
				busy.Go(func() {
					for time.Since(begun) < 12*hold {
						_, lease := acquire(t, l, t.Context(), "k")
						time.Sleep(hold)
						release(t, lease)
					}
				})
			}
			busy.Wait()
			asked := f.requests(releaseScript) // the last one by a goroutine that nobody waits behind
			if first := asked[0].at.Sub(begun); first > third(fakeLease)+hold || len(asked) < most-1 || len(asked) > most {
				t.Errorf("%d others wait: Redis was asked first after %s, and %d times", others, first, len(asked))
			}
		})
	}
}

// TestAnOutageBeforeTheFirstSubscription: who begins to wait while no connection can be made waits for Redis, as one
// whose Locker listens does. A client that is closed does not come back.
func TestAnOutageBeforeTheFirstSubscription(t *testing.T) {
	const wait = 20 * time.Second
	for name, c := range map[string]struct {
		outage, took time.Duration
		want         error
	}{
		"it is over in time":    {wait / 4, wait / 2, nil},
		"it is not":             {2 * wait, wait, ErrNotAcquired},
		"the client was closed": {0, 2 * silence, ErrUnavailable},
	} {
		withPushes(t, func(t *testing.T, p *pushes, l *Locker) {
			p.answers(releaseScript, says(heldReply))
			_, first := acquire(t, l, t.Context(), "k")
			if p.refuse = 1 << 30; c.outage == 0 {
				p.client.Close()
			}
			begun := time.Now()
			time.AfterFunc(c.outage, func() { p.set(func() { p.refuse = 0 }) })
			time.AfterFunc(wait/2, func() {
				if c.want == nil {
					release(t, first)
				}
			})
			_, lease, err := l.AcquireWith(t.Context(), "k", AcquireOptions{Wait: wait})
			if took := time.Since(begun); !errors.Is(err, c.want) || took > c.took {
				t.Errorf("%s: Acquire = %v after %s", name, err, took)
			}
			if err == nil {
				release(t, lease)
			}
		})
	}
}

// TestTheLockersOwnRequestsEnd: the handshake of its subscription, and INFO. A client without a ReadTimeout ends them
// with their deadline alone, and Close waits for them. In virtual time, nobody may close a connection that is being made.
func TestTheLockersOwnRequestsEnd(t *testing.T) {
	withPushes(t, func(t *testing.T, p *pushes, l *Locker) {
		o := p.client.Options()
		o.ContextTimeoutEnabled, o.ReadTimeout, p.mute = true, 0, true
		p.answers(acquireScript, says(waitingReply))
		p.answers(heartbeatScript, says(waitingReply))
		begun := time.Now()
		if _, _, err := l.AcquireWith(t.Context(), "k", AcquireOptions{Wait: 10 * silence}); !errors.Is(err, ErrUnavailable) || time.Since(begun) > 3*silence {
			t.Errorf("Acquire = %v after %s, want that the subscription was not confirmed", err, time.Since(begun))
		}
	})
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		l.opts.Hooks.Evicts = func(string) {}
		f.answers(nil, func(ctx context.Context) (any, error) {
			end, ok := ctx.Deadline()
			if !ok || time.Until(end) > fakeLease {
				t.Errorf("INFO has the deadline %v, %v", end, ok)
			}
			return noAnswer(bounded{context.Background(), end}) // a connection does not end with a cancel
		})
		_, lease := acquire(t, l, t.Context(), "k")
		release(t, lease)
	})
}

// TestALongWaitIsToldOfAnOutage: it has waited for others by then. Those that came later do not keep it from being told.
func TestALongWaitIsToldOfAnOutage(t *testing.T) {
	for name, answer := range map[string]func(context.Context) (any, error){
		"silent": noAnswer,
		"silent, and refuses": func(context.Context) (any, error) {
			time.Sleep(tellAfter * 5 / 4)
			return nil, redisError("READONLY a replica")
		},
	} {
		for others := range 2 {
			withListening(t, func(t *testing.T, f *fakeRedis, l *Locker) {
				told := map[string]int{}
				l.opts.Hooks.NotServed = func(_ context.Context, e Event) {
					l.mu.Lock()
					defer l.mu.Unlock()
					told[map[bool]string{true: "long", false: "short"}[e.Took > fakeLease/2]]++
				}
				f.answers(acquireScript, says(waitingReply))
				f.answers(heartbeatScript, says(waitingReply))
				long := fails(t, l, AcquireOptions{Wait: 2 * fakeLease})
				time.Sleep(fakeLease)
				f.answers(acquireScript, answer)
				f.answers(heartbeatScript, says(droppedReply)) // Redis has lost its data
				for len(f.requests(acquireScript)) < 2 {
					time.Sleep(time.Millisecond)
				}
				for range others {
					defer func(failed <-chan error) { <-failed }(fails(t, l, AcquireOptions{Wait: fakeLease / 4}))
				}
				time.Sleep(tellAfter * 9 / 8)
				for range others {
					if n := under(l, func() int { return told["long"] }); n != 1 {
						t.Errorf("%s: the long wait was told %d times, by the time at which a short one is", name, n)
					}
				}
				if <-long; told["long"] != 1 || told["short"] != others {
					t.Errorf("%s, %d others: told %v", name, others, told)
				}
			})
		}
	}
}

// TestAQueueThatIsNeverEmptyLives: waits that are shorter than an interval send no heartbeat. Where it was lost, a
// heartbeat makes no place whose arrival is forgotten, and what the others have noted goes with the marks.
func TestAQueueThatIsNeverEmptyLives(t *testing.T) {
	p := newPlay(t)
	keys, ctx := keysOf(p.n.name), t.Context()
	p.does("A acquires 1: held", "B acquires 1: waiting")
	for _, key := range []string{keys.Queue, keys.Waiters} {
		p.client.PExpire(ctx, key, 10*time.Second)
	}
	p.does("C acquires 1: waiting")
	for _, key := range []string{keys.Queue, keys.Waiters} {
		if left := p.client.PTTL(ctx, key).Val(); left < 50*time.Second {
			t.Errorf("%s is kept for %s, want a minute", key, left)
		}
	}
	p.client.ZRem(ctx, keys.Queue, p.peers["B"].id)
	p.does("B beats 1: dropped", "B acquires 2 after 60s: waiting", "A releases 1: waiting", "B has 2")
	p.client.HSet(ctx, keys.Waiters, "somebody", "1:1:60000:0")
	for range 150 {
		_, err := newPeer(p.client, time.Second).send(ctx, cancelScript, p.n, 1)
		must(t, err)
	}
	if p.client.HExists(ctx, keys.Waiters, "somebody").Val() {
		t.Error("somebody is noted who has no place")
	}
}

// TestTheNodeOfALockIsNotAskedFor: nobody else gets a lock meanwhile.
func TestTheNodeOfALockIsNotAskedFor(t *testing.T) {
	dials := 0
	client := toClose(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, Dialer: func(context.Context, string, string) (net.Conn, error) {
		dials++
		return nil, errDown
	}}))
	if node := newServer(client, "").node(lockOn("k")); node != "" || dials > 0 {
		t.Errorf("the node is %q, by %d dials, want none, as no slots are known", node, dials)
	}
}

// TestASubscriptionThatMissesItsGrantIsOpenedAgain: it may have stayed with a server that is not the primary any
// more. So may that of a waiter that has lost its place. It is read until the new one is there: other locks would lose
// their turn without.
func TestASubscriptionThatMissesItsGrantIsOpenedAgain(t *testing.T) {
	for name, answer := range map[string]any{"grant": heldReply, "place": droppedReply} {
		t.Run(name, func(t *testing.T) {
			withPushes(t, func(t *testing.T, p *pushes, l *Locker) {
				for _, script := range []*script{acquireScript, heartbeatScript} {
					p.answers(script, says(waitingReply))
				}
				got := asks(t, t.Context(), l, "k")
				time.Sleep(2 * time.Second)
				begin := make(chan struct{})
				p.set(func() { p.wait = begin })
				p.answers(acquireScript, nil)
				p.answers(heartbeatScript, says(answer))
				release(t, <-got)
				for over := range 2 {
					synctest.Wait()
					p.set(func() {
						if p.commands["subscribe"] != 2 || p.over != over {
							t.Errorf("%d subscriptions, of which %d are over, want another one, and %d", p.commands["subscribe"], p.over, over)
						}
					})
					if over == 0 {
						close(begin)
					}
				}
			})
		})
	}
}
