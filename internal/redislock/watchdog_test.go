package redislock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestDeadlineCountsFromBeforeTheRequest(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		slow := func(v any) func(context.Context) (any, error) {
			return func(context.Context) (any, error) {
				time.Sleep(time.Second)
				return v, nil
			}
		}
		f.answers(acquireScript, slow(heldReply))
		begun := time.Now()
		held, lease := acquire(t, l, t.Context(), "k")
		if got := lease.Deadline().Sub(begun); got != fakeValidity {
			t.Errorf("the deadline is %s after the request, want %s", got, fakeValidity)
		}
		f.answers(renewScript, slow(heldReply))
		time.Sleep(fakeLease)
		renewals := f.requests(renewScript)
		for range 2 { // the last one may be under way
			if want := renewals[len(renewals)-1].at.Add(fakeValidity); lease.Deadline().Equal(want) {
				renewals = nil
				break
			}
			renewals = renewals[:len(renewals)-1]
		}
		if renewals != nil {
			t.Errorf("the deadline %s does not count from before a renewal", lease.Deadline().Sub(begun))
		}
		if held.Err() != nil {
			t.Errorf("a renewed hold ended: %v", context.Cause(held))
		}
		release(t, lease)
	})
}

// TestHeldEndsAtTheDeadline has every renewal fail in one way or another: the hold ends at its
// deadline, and not a moment earlier or later.
func TestHeldEndsAtTheDeadline(t *testing.T) {
	for name, answer := range map[string]func(context.Context) (any, error){"down": down, "silent": noAnswer} {
		t.Run(name, func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
				f.answers(renewScript, answer)
				f.answers(releaseScript, answer)
				begun := time.Now()
				held, lease := acquire(t, l, t.Context(), "k")
				<-held.Done()
				if after := time.Since(begun); after != fakeValidity {
					t.Errorf("the hold ended after %s, want %s", after, fakeValidity)
				}
				if cause := context.Cause(held); !errors.Is(cause, ErrLost) {
					t.Errorf("the hold ended with %v, want ErrLost", cause)
				}
				if err := lease.Release(); !errors.Is(err, ErrNotHeld) {
					t.Errorf("Release = %v, want ErrNotHeld", err)
				}
			})
		})
	}
}

func TestWatchdogTriesAgainUntilTheDeadline(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		f.answers(renewScript, down)
		held, lease := acquire(t, l, t.Context(), "k")
		time.Sleep(fakeValidity - time.Second)
		if n := len(f.requests(renewScript)); n < 14 || n > 18 {
			t.Errorf("%d renewals in %s of errors, want one every twenty-fourth of a lease", n, fakeValidity-time.Second)
		}
		f.answers(renewScript, nil) // Redis is back, at the last moment
		time.Sleep(5 * fakeLease)
		if held.Err() != nil {
			t.Errorf("the hold ended with %v, although Redis was back before its deadline", context.Cause(held))
		}
		release(t, lease)
	})
}

func TestNotYoursEndsTheHoldAtOnce(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		held, lease := acquire(t, l, t.Context(), "k")
		f.answers(renewScript, func(context.Context) (any, error) { return droppedReply, nil })
		<-held.Done()
		if renewals := f.requests(renewScript); len(renewals) != 1 || !renewals[0].at.Equal(time.Now()) {
			t.Errorf("the hold ended after %d renewals, %s after the last one", len(renewals), time.Since(renewals[len(renewals)-1].at))
		}
		if err := lease.Release(); !errors.Is(err, ErrNotHeld) {
			t.Errorf("Release = %v, want ErrNotHeld", err)
		}
	})
}

func TestWatchdogEndsWithItsLock(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		_, lease := acquire(t, l, t.Context(), "k")
		time.Sleep(fakeLease)
		release(t, lease)
		renewals := len(f.requests(renewScript))
		time.Sleep(10 * fakeLease)
		if now := len(f.requests(renewScript)); now != renewals || renewals == 0 {
			t.Errorf("%d renewals, and %d after the release, want none", renewals, now-renewals)
		}
		synctest.Wait()
		l.mu.Lock()
		defer l.mu.Unlock()
		if n := l.locks["{k}"]; n == nil || n.place != 0 {
			t.Error("the timer runs on, with nothing to look after")
		}
	})
}

// TestCleanupOutlivesTheCallersContext has a caller give up on a request without an answer. The
// attempt is cancelled under a context of its own, again and again, and for no longer than a lease.
func TestCleanupOutlivesTheCallersContext(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		f.answers(acquireScript, noAnswer)
		f.answers(cancelScript, down)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := l.Acquire(ctx, "k"); !errors.Is(err, ErrNotAcquired) {
			t.Errorf("Acquire = %v, want ErrNotAcquired", err)
		}
		begun := time.Now()
		time.Sleep(3 * fakeLease)
		cancels := f.requests(cancelScript)
		if len(cancels) < 10 {
			t.Fatalf("%d cancels, want many", len(cancels))
		}
		for _, c := range cancels {
			if c.ctx != nil || c.at.Sub(begun) > fakeLease {
				t.Errorf("a cancel after %s under a context with %v", c.at.Sub(begun), c.ctx)
			}
		}
	})
}

// TestALockThatComesTooLateIsReleased has a caller's context end as it learns that it has the lock:
// it takes the one or the other by chance.
func TestALockThatComesTooLateIsReleased(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		const rounds = 100
		late := 0
		for range rounds {
			_, lease := acquire(t, l, t.Context(), "k")
			w := &waiter{AcquireOptions: AcquireOptions{Wait: never}, ctx: gone, key: "k", answer: make(chan result, 1)}
			w.answer <- result{hold: lease.hold}
			if _, got, err := l.await(lease.hold.lock, w); err == nil {
				release(t, got)
			} else {
				late++
				synctest.Wait() // Acquire does not wait for the release
			}
		}
		if n := len(f.requests(releaseScript)); n != rounds || late == 0 {
			t.Errorf("%d of %d holds were released, %d of which came too late", n, rounds, late)
		}
	})
}

// TestALockThatComesTooLateCostsNoTime: Acquire returns at its end, although Redis does not answer the
// release.
func TestALockThatComesTooLateCostsNoTime(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		f.answers(releaseScript, noAnswer)
		_, lease := acquire(t, l, t.Context(), "k")
		h := lease.hold
		w := &waiter{ctx: t.Context(), key: "k", begun: l.now(), answer: make(chan result, 1)}
		begun := time.Now()
		time.AfterFunc(time.Millisecond, func() { w.answer <- result{hold: h} })
		if _, _, err := l.await(h.lock, w); !errors.Is(err, ErrNotAcquired) {
			t.Errorf("Acquire = %v, want ErrNotAcquired", err)
		}
		if took := time.Since(begun); took > time.Millisecond {
			t.Errorf("it came back after %s", took)
		}
		synctest.Wait()
		if n := len(f.requests(releaseScript)); n != 1 {
			t.Errorf("%d releases, want that the lock does not stay", n)
		}
	})
}

// TestCleanupLastsForTheLeaseThatIsLeft: of the hold, and not of the next waiter.
func TestCleanupLastsForTheLeaseThatIsLeft(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		f.answers(cancelScript, down)
		_, lease, err := l.AcquireWith(t.Context(), "k", AcquireOptions{Lease: 10 * fakeLease})
		if err != nil {
			t.Fatal(err)
		}
		f.answers(acquireScript, noAnswer)
		f.answers(releaseScript, down)
		l.subscription = &subscription{close: func() {}, since: l.now() + time.Hour}
		var waiter sync.WaitGroup
		waiter.Go(func() {
			if _, _, err := l.AcquireWith(t.Context(), "k", AcquireOptions{Wait: time.Second}); !errors.Is(err, ErrNotAcquired) {
				t.Errorf("Acquire = %v, want ErrNotAcquired", err)
			}
		})
		synctest.Wait()
		if err := lease.Release(); err == nil {
			t.Error("the release was answered")
		}
		waiter.Wait()
		time.Sleep(5 * fakeLease)
		before := len(f.requests(cancelScript))
		time.Sleep(fakeLease)
		if len(f.requests(cancelScript)) == before {
			t.Error("the hold is not cancelled any more, and its lease goes on")
		}
	})
}

func TestLostReleaseIsSentAgain(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		_, lease := acquire(t, l, t.Context(), "k")
		f.answers(releaseScript, noAnswer)
		if err := lease.Release(); err == nil || errors.Is(err, ErrNotHeld) {
			t.Errorf("Release without an answer = %v, want that the outcome is unknown", err)
		}
		f.answers(releaseScript, nil)
		time.Sleep(fakeLease)
		if n := len(f.requests(cancelScript)); n != 1 {
			t.Errorf("%d cancels, want that the attempt is ended after the silence", n)
		}
	})
}

// TestCloseEndsWhileRedisIsSilent: it repeats its cancels for a lease, and waits for the last one.
func TestCloseEndsWhileRedisIsSilent(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		acquire(t, l, t.Context(), "k")
		f.answers(cancelScript, noAnswer)
		begun := time.Now()
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took < fakeLease || took > fakeLease+third(fakeLease) {
			t.Errorf("Close took %s, want a lease to four thirds of it", took)
		}
	})
}

// TestRequestsHaveTheValuesOfTheirHold: hooks of the client, as for traces, find whose request it
// is, also after the holder's context has ended and where the lock was passed on.
func TestRequestsHaveTheValuesOfTheirHold(t *testing.T) {
	type caller struct{}
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		l.subscription = &subscription{close: func() {}, since: l.now() + time.Hour}
		var seen []string
		for script, name := range map[*script]string{acquireScript: "acquire", renewScript: "renewal", releaseScript: "release"} {
			answer := heldReply
			if name == "release" {
				answer = waitingReply
			}
			f.answers(script, func(ctx context.Context) (any, error) {
				if ctx.Err() != nil {
					t.Errorf("a %s with a context that has ended", name)
				}
				seen = append(seen, fmt.Sprint(name, " of ", ctx.Value(caller{})))
				return answer, nil
			})
		}
		first, cancel := context.WithCancel(context.WithValue(t.Context(), caller{}, "A"))
		_, lease := acquire(t, l, first, "k")
		second := make(chan *Lease, 1)
		go func() {
			_, lease, _ := l.Acquire(context.WithValue(t.Context(), caller{}, "B"), "k")
			second <- lease
		}()
		synctest.Wait()
		cancel()
		time.Sleep(fakeLease / 3)
		release(t, lease)
		lease = <-second
		time.Sleep(fakeLease / 3)
		release(t, lease)
		want := []string{"acquire of A", "renewal of <nil>", "renewal of <nil>", "release of B"} // renewals go out together
		if !slices.Equal(seen, want) {
			t.Errorf("requests: %q, want %q", seen, want)
		}
	})
}

// TestPausesDoNotGrowWithTheLease: after a refusal that passes, a request is repeated soon.
func TestPausesDoNotGrowWithTheLease(t *testing.T) {
	for _, lease := range []time.Duration{minLease, fakeLease, 2 * time.Minute, maxLease} {
		t.Run(lease.String(), func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
				acquire := func() *Lease {
					_, lease, err := l.AcquireWith(t.Context(), "k", AcquireOptions{Lease: lease})
					if err != nil {
						t.Fatal(err)
					}
					return lease
				}
				outage := min(300*time.Millisecond, lease/12)
				soon := min(lease/12, 400*time.Millisecond)
				refuses := func(script *script, what time.Duration, answer any) {
					end := time.Now().Add(what)
					f.answers(script, func(context.Context) (any, error) {
						if time.Now().Before(end) {
							return nil, redisError("READONLY You can't write against a read only replica.")
						}
						return answer, nil
					})
				}

				begun, held := time.Now(), acquire()
				refuses(releaseScript, outage, waitingReply)
				release(t, held)
				if took := time.Since(begun); took > outage+soon {
					t.Errorf("Release took %s after refusals of %s", took, outage)
				}

				held = acquire() // refused for ever: the Locker goes on in the background
				refuses(releaseScript, maxLease, nil)
				refuses(cancelScript, min(lease/2, 10*time.Second), droppedReply)
				begun = time.Now()
				if err := held.Release(); err == nil {
					t.Error("a refused Release returned no error")
				}
				if took := time.Since(begun); took > third(lease) || took > 5*time.Second { // as the documentation says
					t.Errorf("Release took %s", took)
				}
				time.Sleep(min(lease/2, 10*time.Second) + time.Second)
				synctest.Wait()
				l.mu.Lock()
				if len(l.ending) > 0 {
					t.Error("the attempt is not cancelled, although Redis carries out requests")
				}
				l.unlock()

				f.answers(releaseScript, nil)
				held = acquire()
				time.Sleep(third(lease)*3/4 - lease/100) // before the first renewal
				end := time.Now().Add(min(lease/2, 10*time.Second) + lease/100)
				refuses(renewScript, time.Until(end), heldReply)
				time.Sleep(time.Until(end) + third(lease)/4 + min(lease/24, time.Second))
				if left := time.Until(held.Deadline()); left < lease-margin(lease)-third(lease)/4-2*min(lease/24, time.Second) {
					t.Errorf("%s are left of the lease after Redis was back", left)
				}
				if n := len(f.requests(renewScript)); n > 60 {
					t.Errorf("%d renewals in %s of refusals", n, min(lease/2, 10*time.Second)+lease/100)
				}
				release(t, held)
			})
		})
	}
}

// TestPausesDouble, from a tenth of a second to one, and to a fraction of a short lease.
func TestPausesDouble(t *testing.T) {
	for lease, want := range map[time.Duration][]time.Duration{
		maxLease:             {100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, time.Second, time.Second},
		24 * time.Second / 5: {100 * time.Millisecond, 200 * time.Millisecond, 200 * time.Millisecond},
	} {
		pause := time.Duration(0)
		for i, w := range want {
			if pause = nextPause(pause, lease); pause != w {
				t.Errorf("lease %s: pause %d is %s, want %s", lease, i, pause, w)
			}
		}
	}
}

// TestAReleaseAfterMaxHoldFreesTheLock: the last one proves that nobody works under it any more.
func TestAReleaseAfterMaxHoldFreesTheLock(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		l.opts.MaxHold = time.Second
		held, lease := acquire(t, l, t.Context(), "k")
		_, again := acquire(t, l, held, "k")
		<-held.Done()
		for i, entry := range []*Lease{lease, again} {
			synctest.Wait()
			if n := len(f.requests(cancelScript)); n != 0 {
				t.Errorf("%d cancels after %d of 2 releases, while the holder may still work", n, i)
			}
			if err := entry.Release(); !errors.Is(err, ErrNotHeld) {
				t.Errorf("Release = %v, want ErrNotHeld", err)
			}
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if n := len(f.requests(cancelScript)); n != 1 {
			t.Errorf("%d cancels after the last release, want 1", n)
		}
		if err := again.Release(); !errors.Is(err, ErrNotHeld) {
			t.Errorf("the second Release = %v, want ErrNotHeld", err)
		}
	})
}

// TestASubscriptionThatIsFasterThanTheAnswer: the request was carried out before Redis saw this
// process listen. A heartbeat at once makes it visible, and finds a grant that it missed.
func TestASubscriptionThatIsFasterThanTheAnswer(t *testing.T) {
	var m machine
	m.ask(1, 1, fakeLease)
	m.resume(2)
	m.answered(1, reply{kind: replyWaiting, ttl: fakeLease}, true, 1, 3)
	if next, renew := m.look(3); m.state != waiting || !renew || next != (todo{}) {
		t.Errorf("after the answer: state %d, heartbeat %v, %+v", m.state, renew, next)
	}
	m.ask(4, 2, fakeLease)
	m.answered(2, reply{kind: replyWaiting, ttl: fakeLease}, true, 4, 5)
	if _, renew := m.look(6); renew {
		t.Error("a heartbeat at once, although messages were heard from the start")
	}
}

// TestReasonsOfALoss can be told apart.
func TestReasonsOfALoss(t *testing.T) {
	for want, lose := range map[error]func(f *fakeRedis, l *Locker){
		ErrLeaseOver: func(f *fakeRedis, l *Locker) { f.answers(renewScript, down) },
		ErrTaken: func(f *fakeRedis, l *Locker) {
			f.answers(renewScript, func(context.Context) (any, error) { return droppedReply, nil })
		},
		ErrHeldTooLong: func(f *fakeRedis, l *Locker) {},
		ErrClosed:      func(f *fakeRedis, l *Locker) { time.AfterFunc(time.Second, func() { l.Close(context.Background()) }) },
	} {
		withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
			var hooked error
			l.opts.Hooks.Lost = func(_ context.Context, e Event) { hooked = e.Err }
			lose(f, l)
			o := AcquireOptions{MaxHold: 100 * fakeLease}
			if want == ErrHeldTooLong {
				o.MaxHold = fakeLease
			}
			held, lease, err := l.TryAcquireWith(t.Context(), "k", o)
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			select {
			case <-held.Done():
			case <-time.After(2 * fakeLease):
				t.Errorf("want %v: it is held still", want)
			}
			synctest.Wait()
			for reason := range map[error]bool{ErrLeaseOver: true, ErrTaken: true, ErrHeldTooLong: true, ErrClosed: true} {
				if is := errors.Is(context.Cause(held), reason); is != (reason == want) || !errors.Is(context.Cause(held), ErrLost) || hooked == nil || errors.Is(hooked, reason) != is {
					t.Errorf("want %v: the cause %v is %v: %v; the hook was called with %v", want, context.Cause(held), reason, is, hooked)
				}
			}
			if text := context.Cause(held).Error(); want != ErrLeaseOver && strings.Contains(text, "its renewal") {
				t.Errorf("want %v alone: %s", want, text) // the renewal is answered, or does not matter
			}
			if took := time.Since(begun); want == ErrHeldTooLong && took != fakeLease {
				t.Errorf("it was held for %s, want the call's MaxHold", took)
			}
			_ = lease.Release()
		})
	}
}
