package redislock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"weak"
)

func TestDeadlineCountsFromBeforeTheRequest(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		slow := func(context.Context) (any, error) { time.Sleep(time.Second); return heldReply, nil }
		f.answers(acquireScript, slow)
		f.answers(renewScript, slow)
		begun := time.Now()
		held, lease := acquire(t, l, t.Context(), "k")
		if got := lease.Deadline().Sub(begun); got != fakeValidity {
			t.Errorf("the deadline is %s after the request, want %s", got, fakeValidity)
		}
		time.Sleep(fakeLease)
		counts := slices.ContainsFunc(f.requests(renewScript), func(r came) bool { return lease.Deadline().Equal(r.at.Add(fakeValidity)) })
		if !counts || held.Err() != nil {
			t.Errorf("the deadline %s counts from before a renewal: %v; the hold ended with %v", lease.Deadline().Sub(begun), counts, context.Cause(held))
		}
		release(t, lease)
	})
}

// TestAGraceWithoutAnEnd is none that has passed.
func TestAGraceWithoutAnEnd(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		l.opts.Grace = Options{Grace: math.MaxInt64}.withDefaults().Grace
		ctx, cancel := context.WithCancel(t.Context())
		_, lease := acquire(t, l, ctx, "k")
		cancel()
		if time.Sleep(3 * fakeLease); !lease.Valid() {
			t.Error("the hold has ended in its grace")
		}
		release(t, lease)
	})
}

// TestHeldEndsAtTheDeadline has every renewal fail in one way or another: the hold ends at its
// deadline, and not a moment earlier or later. Where Redis is back before that, it goes on.
func TestHeldEndsAtTheDeadline(t *testing.T) {
	for name, answer := range map[string]func(context.Context) (any, error){"down": down, "silent": noAnswer, "back": down} {
		t.Run(name, func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
				f.answers(renewScript, answer)
				begun := time.Now()
				held, lease := acquire(t, l, t.Context(), "k")
				if name == "back" {
					time.Sleep(fakeValidity - time.Second)
					if n := len(f.requests(renewScript)); n < 14 || n > 18 {
						t.Errorf("%d renewals in %s of errors, want one every twenty-fourth of a lease", n, fakeValidity-time.Second)
					}
					f.answers(renewScript, nil)
					if time.Sleep(5 * fakeLease); held.Err() != nil {
						t.Errorf("the hold ended with %v", context.Cause(held))
					}
					release(t, lease)
					return
				}
				f.answers(releaseScript, answer)
				<-held.Done()
				if sent := f.requests(renewScript); name == "silent" && sent[1].at.Sub(sent[0].at) != interval(fakeLease)/2 {
					t.Errorf("a renewal without an answer is sent again after %s", sent[1].at.Sub(sent[0].at))
				}
				if after := time.Since(begun); after != fakeValidity || !errors.Is(context.Cause(held), ErrLost) {
					t.Errorf("the hold ended after %s with %v, want %s and ErrLost", after, context.Cause(held), fakeValidity)
				}
				if err := lease.Release(); !errors.Is(err, ErrNotHeld) {
					t.Errorf("Release = %v, want ErrNotHeld", err)
				}
			})
		})
	}
}

func TestNotYoursEndsTheHoldAtOnce(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		held, lease := acquire(t, l, t.Context(), "k")
		f.answers(renewScript, says(droppedReply))
		<-held.Done()
		if renewals := f.requests(renewScript); len(renewals) != 1 || !renewals[0].at.Equal(time.Now()) {
			t.Errorf("the hold ended after %d renewals, %s after the last one", len(renewals), time.Since(renewals[len(renewals)-1].at))
		}
		// The release of what was lost touches no other hold.
		f.answers(renewScript, nil)
		_, next := acquire(t, l, t.Context(), "k")
		if err := lease.Release(); !errors.Is(err, ErrNotHeld) || !next.Valid() {
			t.Errorf("Release of a lost hold = %v, and the next one is valid: %v", err, next.Valid())
		}
		renewals := len(f.requests(renewScript))
		release(t, next)
		time.Sleep(10 * fakeLease)
		if len(f.requests(renewScript)) != renewals || under(l, func() int { return len(l.agenda) }) != 0 {
			t.Error("after the release it is renewed, or looked after")
		}
	})
}

// TestCleanupOutlivesTheCallersContext has a caller give up on a request without an answer. The
// attempt is cancelled under a context of its own, again and again, and for no longer than a lease.
func TestCleanupOutlivesTheCallersContext(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		f.answers(acquireScript, func(context.Context) (any, error) {
			f.answers(acquireScript, noAnswer)
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED} // nothing to cancel, and sent again
		})
		f.answers(cancelScript, down)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := l.Acquire(ctx, "k"); !errors.Is(err, ErrUnavailable) {
			t.Errorf("Acquire = %v, want ErrUnavailable", err)
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

// TestALockThatComesTooLateIsReleased: Acquire returns at its end, although Redis does not answer the release.
func TestALockThatComesTooLateIsReleased(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		f.answers(releaseScript, noAnswer)
		_, lease := acquire(t, l, t.Context(), "k")
		w := &waiter{ctx: t.Context(), key: "k", begun: l.now(), answer: make(chan result, 1)}
		begun := time.Now()
		time.AfterFunc(time.Millisecond, func() { w.answer <- result{hold: lease.hold} })
		if _, _, err := l.await(lease.hold.lock, w); !errors.Is(err, ErrNotAcquired) || time.Since(begun) > time.Millisecond {
			t.Errorf("Acquire = %v after %s", err, time.Since(begun))
		}
		if synctest.Wait(); len(f.requests(releaseScript)) != 1 {
			t.Errorf("%d releases, want that the lock does not stay", len(f.requests(releaseScript)))
		}
	})
}

// TestALostReleaseIsSentAgain for the lease that is left: of the hold, and not of the next waiter.
func TestALostReleaseIsSentAgain(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		f.answers(cancelScript, down)
		_, lease, err := l.AcquireWith(t.Context(), "k", AcquireOptions{Lease: 10 * fakeLease})
		must(t, err)
		f.answers(acquireScript, noAnswer)
		f.answers(releaseScript, noAnswer)
		listening(l)
		ended := fails(t, l, AcquireOptions{Wait: time.Second})
		if err := lease.Release(); !errors.Is(err, ErrNotReleased) || errors.Is(err, ErrUnavailable) {
			t.Errorf("Release without an answer = %v, want ErrNotReleased", err)
		}
		if err := <-ended; !errors.Is(err, ErrUnavailable) {
			t.Errorf("Acquire = %v, want ErrUnavailable", err)
		}
		time.Sleep(5 * fakeLease)
		before := len(f.requests(cancelScript))
		if time.Sleep(fakeLease); len(f.requests(cancelScript)) == before {
			t.Error("the hold is not cancelled any more, and its lease goes on")
		}
		f.answers(cancelScript, nil)
		time.Sleep(fakeLease)
		before = len(f.requests(cancelScript))
		if time.Sleep(fakeLease); len(f.requests(cancelScript)) > before {
			t.Error("it is cancelled again and again, although Redis has answered")
		}
	})
}

// over is a context that has ended.
func over() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// TestCloseWaitsForItsHolders until its context ends, and renews meanwhile. What is still held then is left to its
// lease: its holder may still work. A cancel that has no answer is repeated for a lease.
func TestCloseWaitsForItsHolders(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		f.answers(cancelScript, noAnswer)
		f.answers(acquireScript, noAnswer)
		if _, _, err := l.TryAcquireWith(t.Context(), "silent", AcquireOptions{Wait: time.Second}); !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
		f.answers(acquireScript, nil)
		one, first := acquire(t, l, t.Context(), "k1")
		two, second := acquire(t, l, t.Context(), "k2")
		_, third, err := l.AcquireWith(t.Context(), "k3", AcquireOptions{MaxHold: time.Second})
		must(t, err)
		const patience = 3 * fakeLease
		time.AfterFunc(2*fakeLease, func() {
			release(t, first)
			_ = third.Release() // what MaxHold has ended begins nothing any more
		})
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		time.AfterFunc(time.Second, func() {
			if _, _, err := l.Acquire(one, "k4"); !errors.Is(err, ErrClosed) {
				t.Errorf("Acquire = %v, want ErrClosed", err)
			}
			_, again := acquire(t, l, one, "k1") // its holder enters again
			release(t, again)
		})
		begun := time.Now()
		if err := l.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != patience {
			t.Errorf("Close = %v after %s", err, time.Since(begun))
		}
		if cause := context.Cause(two); !errors.Is(cause, ErrLost) || !errors.Is(cause, ErrClosed) || second.Release() == nil {
			t.Errorf("what is still held ends with %v", cause)
		}
		for _, c := range f.requests(cancelScript) {
			if c.at.Sub(begun) > fakeLease {
				t.Errorf("a cancel after %s", c.at.Sub(begun))
			}
		}
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("Close, again: %v", err)
		}
	})
	withListening(t, func(t *testing.T, f *fakeRedis, l *Locker) { // nor does it leave a place in the queue
		f.answers(acquireScript, says(waitingReply))
		ended := fails(t, l, AcquireOptions{})
		must(t, l.Close(t.Context()))
		if err, n := <-ended, len(f.requests(cancelScript)); !errors.Is(err, ErrClosed) || n != 1 {
			t.Errorf("Acquire = %v, and %d cancels", err, n)
		}
	})
}

// TestAClosedLockerIsFreed, also one that was never used.
func TestAClosedLockerIsFreed(t *testing.T) {
	for _, used := range []bool{false, true} {
		client, _ := newClient(t, shared.addr)
		l := New(client, Options{})
		if used {
			free(t, l)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		freed := weak.Make(l)
		eventually(t, "it is freed", func() bool { runtime.GC(); return freed.Value() == nil })
	}
}

// TestRequestsHaveTheValuesOfTheirHold: hooks of the client, as for traces, find whose request it
// is, also after the holder's context has ended and where the lock was passed on.
func TestRequestsHaveTheValuesOfTheirHold(t *testing.T) {
	type caller struct{}
	withListening(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		var seen []string
		for script, answer := range map[*script]any{acquireScript: heldReply, renewScript: heldReply, releaseScript: waitingReply} {
			f.answers(script, func(ctx context.Context) (any, error) {
				seen = append(seen, fmt.Sprintf("%s of %v%v", script.name, ctx.Value(caller{}), ctx.Err()))
				return answer, nil
			})
		}
		first, cancel := context.WithCancel(context.WithValue(t.Context(), caller{}, "A"))
		_, lease := acquire(t, l, first, "k")
		second := waits(t, context.WithValue(t.Context(), caller{}, "B"), l, "k")
		cancel()
		time.Sleep(third(fakeLease) - 1) // it is renewed, and is passed on without a request
		release(t, lease)
		lease = <-second
		time.Sleep(fakeLease / 3)
		release(t, lease)
		want := []string{"acquire of A<nil>", "renew of <nil><nil>", "renew of <nil><nil>", "release of B<nil>"} // renewals go out together
		if !slices.Equal(seen, want) {
			t.Errorf("requests: %q, want %q", seen, want)
		}
	})
}

// TestPausesDoNotGrowWithTheLease: after a refusal that passes, a request is repeated soon. The pauses double,
// from a tenth of a second to one, and to a fraction of a short lease.
func TestPausesDoNotGrowWithTheLease(t *testing.T) {
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
	for _, lease := range []time.Duration{minLease, fakeLease, maxLease} {
		withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
			l.opts.Lease = lease
			soon := min(lease/12, time.Second)
			refuses := func(script *script, outage time.Duration, answer any) {
				end := time.Now().Add(outage)
				f.answers(script, func(context.Context) (any, error) {
					if time.Now().Before(end) {
						return nil, redisError("READONLY You can't write against a read only replica.")
					}
					return answer, nil
				})
			}
			_, held := acquire(t, l, t.Context(), "k")
			begun := time.Now()
			refuses(releaseScript, soon, waitingReply)
			if release(t, held); time.Since(begun) > 2*soon {
				t.Errorf("lease %s: Release took %s after refusals of %s", lease, time.Since(begun), soon)
			}
			_, held = acquire(t, l, t.Context(), "k")
			begun = time.Now()
			refuses(releaseScript, maxLease, nil)
			if err := held.Release(); !errors.Is(err, ErrNotReleased) || time.Since(begun) > min(third(lease), 5*time.Second) { // as the documentation says
				t.Errorf("lease %s: Release = %v after %s", lease, err, time.Since(begun))
			}
			refuses(cancelScript, soon, droppedReply) // the Locker goes on in the background
			time.Sleep(2 * soon)
			if under(l, func() int { return len(l.ending) }) > 0 {
				t.Errorf("lease %s: the attempt is not cancelled %s after the outage", lease, soon)
			}
			f.answers(releaseScript, nil)
		})
	}
}

// TestAReleaseAfterMaxHoldFreesTheLock: the last one proves that nobody works under it any more.
func TestAReleaseAfterMaxHoldFreesTheLock(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		l.opts.MaxHold = time.Second
		held, lease := acquire(t, l, t.Context(), "k")
		_, again := acquire(t, l, held, "k")
		<-held.Done()
		for i, entry := range []*Lease{lease, again, again} {
			if err := entry.Release(); !errors.Is(err, ErrNotHeld) {
				t.Errorf("Release = %v, want ErrNotHeld", err)
			}
			settled()
			if n := len(f.requests(cancelScript)); n != min(i, 1) {
				t.Errorf("%d cancels after release %d of 2: the holder may still work until the last one", n, i+1)
			}
		}
	})
}

// TestReasonsOfALoss can be told apart.
func TestReasonsOfALoss(t *testing.T) {
	reasons := map[error]func(f *fakeRedis, l *Locker){
		ErrLeaseOver:   func(f *fakeRedis, l *Locker) { f.answers(renewScript, down) },
		ErrTaken:       func(f *fakeRedis, l *Locker) { f.answers(renewScript, says(droppedReply)) },
		ErrHeldTooLong: func(f *fakeRedis, l *Locker) { l.opts.MaxHold = 100 * fakeLease },
		ErrClosed:      func(f *fakeRedis, l *Locker) { time.AfterFunc(time.Second, func() { l.Close(over()) }) },
	}
	for want, lose := range reasons {
		withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
			var hooked error
			l.opts.Hooks.Lost = func(_ context.Context, e Event) { hooked = e.Err }
			lose(f, l)
			o := AcquireOptions{}
			if want == ErrHeldTooLong {
				o.MaxHold = fakeLease
			}
			held, lease, err := l.TryAcquireWith(t.Context(), "k", o)
			must(t, err)
			begun := time.Now()
			<-held.Done()
			if took := time.Since(begun); took > fakeLease || want == ErrHeldTooLong && took != fakeLease {
				t.Errorf("want %v: it was held for %s, and a call's MaxHold is %s", want, took, fakeLease)
			}
			synctest.Wait()
			cause := context.Cause(held)
			for reason := range reasons {
				if is := errors.Is(cause, reason); is != (reason == want) || !errors.Is(cause, ErrLost) || errors.Is(hooked, reason) != is {
					t.Errorf("want %v: the cause %v is %v: %v; the hook was called with %v", want, cause, reason, is, hooked)
				}
			}
			if want != ErrLeaseOver && strings.Contains(cause.Error(), "its renewal") {
				t.Errorf("want %v alone: %s", want, cause) // the renewal is answered, or does not matter
			}
			_ = lease.Release()
		})
	}
}
