package redislock

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// defaults connects with the options that go-redis has by default, but for a shorter timeout.
func defaults(t *testing.T, addr string, timeout time.Duration, db ...int) *redis.Client {
	t.Helper()
	return toClose(t, redis.NewClient(&redis.Options{Addr: addr, DB: append(db, 0)[0], ReadTimeout: timeout, WriteTimeout: timeout}))
}

// TestAcquireReturnsWhenItsCallerDoes: while another one has the lock, and while Redis is silent, also with a
// client that waits for an answer for longer. It says which end it was.
func TestAcquireReturnsWhenItsCallerDoes(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, k Kind) {
		for name, end := range map[string]error{"Wait": nil, "deadline": context.DeadlineExceeded, "cancelled": context.Canceled, "try": context.DeadlineExceeded} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWire(t, shared.addr)
				clients := k.clients(t, func(db int) *redis.Client { return defaults(t, w.addr, 2*time.Second, db) })
				_, lease := acquire(t, k.make(t, clients, Options{}), t.Context(), t.Name()) // connects
				o := Options{Lease: 20 * time.Second}
				patience := time.Second // Redis' answer comes sooner
				if end == nil {
					o.Wait = patience
				} else if name == "try" {
					patience /= 3 // a try gives up by itself after a second
				}
				l := k.make(t, clients, o)
				for _, silent := range []bool{false, true} {
					if w.set(silent); name == "try" && !silent {
						continue
					}
					begun, ctx, cancel := time.Now(), t.Context(), context.CancelFunc(func() {})
					call := l.Acquire
					switch {
					case name == "cancelled":
						ctx, cancel = context.WithCancel(ctx)
						time.AfterFunc(patience, cancel)
					case end != nil:
						ctx, cancel = context.WithTimeout(ctx, patience)
					}
					if name == "try" {
						call = l.TryAcquire
					}
					if _, _, err := call(ctx, t.Name()); errors.Is(err, ErrNotAcquired) == silent || errors.Is(err, ErrUnavailable) != silent || errors.Is(err, context.DeadlineExceeded) != (end == context.DeadlineExceeded) || end != nil && !errors.Is(err, end) {
						t.Errorf("silent %v: Acquire = %v, want %v beside the reason", silent, err, end)
					}
					if took := time.Since(begun); took < patience*9/10 || took > 6*time.Second {
						t.Errorf("silent %v: Acquire returned after %s, want %s", silent, took, patience)
					}
					cancel()
				}
				w.set(false)
				_ = lease.Release()
			})
		}
	})
}

// TestWaitersShareATimeout, and no other error.
func TestWaitersShareATimeout(t *testing.T) {
	withListening(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		f.answers(acquireScript, func(context.Context) (any, error) { time.Sleep(time.Second); return nil, os.ErrDeadlineExceeded })
		begun := time.Now()
		for range 6 {
			defer func(failed <-chan error) {
				err := <-failed
				network, ok := errors.AsType[net.Error](err)
				if !ok || !network.Timeout() || time.Since(begun) > 2*time.Second { // the first request, and one for those who came after it
					t.Errorf("Acquire = %v after %s, want a timeout", err, time.Since(begun))
				}
			}(fails(t, l, AcquireOptions{}))
		}
	})
}

// TestOtherErrorsAreTheAskersOwn: those who wait beside it ask anew.
func TestOtherErrorsAreTheAskersOwn(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		answered := make(chan struct{})
		f.answers(acquireScript, func(context.Context) (any, error) {
			<-answered
			f.answers(acquireScript, nil)
			return nil, errDown
		})
		listening(l)
		var failures, waits atomic.Int64
		l.opts.Hooks.Waiting = func(context.Context, Event) { waits.Add(1) }
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				if _, lease, err := l.Acquire(t.Context(), "k"); err != nil {
					failures.Add(1)
				} else {
					time.Sleep(time.Millisecond)
					release(t, lease)
				}
			})
		}
		synctest.Wait()
		close(answered)
		all.Wait()
		settled()
		if n, cancels := failures.Load(), len(f.requests(cancelScript)); n != 1 || cancels != 1 || waits.Load() != 4 {
			t.Errorf("%d of six callers failed with the error of one request, %d heard that it is taken, and %d attempts which may have worked were cancelled", n, waits.Load(), cancels)
		}
	})
}

// TestALaterCallerDoesNotShareATimeout: it came after the request was sent. One that does not wait is told that others
// have the lock, and after a moment that Redis is silent.
func TestALaterCallerDoesNotShareATimeout(t *testing.T) {
	withListening(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		f.answers(acquireScript, noAnswer)
		first := fails(t, l, AcquireOptions{})
		for _, want := range []error{ErrNotAcquired, ErrUnavailable} {
			if _, _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, want) {
				t.Errorf("TryAcquire = %v, want %v", err, want)
			}
			time.Sleep(tellAfter)
		}
		second := waits(t, t.Context(), l, "k")
		f.answers(acquireScript, nil) // Redis is back for the next request
		if err := <-first; err == nil {
			t.Error("the asker was answered")
		}
		release(t, <-second)
	})
}

// TestAWaitSaysWhyItHasNoSuccess: others have the lock, or Redis refuses, or is silent. A hook is called once,
// while the wait lasts. The pauses between requests grow to a second.
func TestAWaitSaysWhyItHasNoSuccess(t *testing.T) {
	const wait = 20 * time.Second
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for name, c := range map[string]struct {
		answer    func(context.Context) (any, error)
		unbounded bool
		is        error
		says      string
		hooks     string
		requests  int
	}{
		"taken":                     {says(waitingReply), false, ErrNotAcquired, "not acquired", "waits, failed", 1},
		"refused":                   {refuses(redisError("READONLY a replica")), false, ErrUnavailable, "READONLY", "is not served, failed", 23},
		"no connection":             {refuses(refused), false, ErrUnavailable, "refused", "is not served, failed", 23},
		"no connection, no bound":   {refuses(refused), true, ErrUnavailable, "nothing was done", "failed", 1},
		"a closed client":           {refuses(redis.ErrClosed), false, ErrUnavailable, "closed", "failed", 1},
		"silent":                    {func(context.Context) (any, error) { time.Sleep(time.Hour); return nil, errDown }, false, ErrUnavailable, ", for 20s", "is not served, failed", 1},
		"silent, no bound":          {noAnswer, true, ErrUnavailable, "outcome unknown", "is not served, failed", 1},
		"slower than the lease":     {func(context.Context) (any, error) { time.Sleep(70 * time.Second); return heldReply, nil }, false, ErrUnavailable, "after 1m10s, and the lease is 1m0s", "is not served, failed", 3},
		"a user without the rights": {refuses(redisError("NOPERM User x has no permissions to run the 'evalsha' command")), false, ErrUnavailable, "nothing was done", "failed", 1},
		"a script that fails":       {refuses(redisError("NOPERM User x has no permissions to run the 'set' command script: 1, on @user_script:3")), false, ErrUnavailable, "outcome unknown", "failed", 1},
	} {
		for _, try := range []bool{false, true} {
			withListening(t, func(t *testing.T, f *fakeRedis, l *Locker) {
				var calls []string
				begun := time.Now()
				note := func(what string) func(context.Context, Event) {
					return func(_ context.Context, e Event) {
						if calls = append(calls, what); e.Key != "k" || e.Took != time.Since(begun) {
							t.Errorf("%s, try %v: %s: %+v", name, try, what, e)
						}
					}
				}
				l.opts.Hooks = Hooks{Waiting: note("waits"), NotServed: note("is not served"), Failed: note("failed")}
				f.answers(acquireScript, c.answer)
				f.answers(heartbeatScript, says(waitingReply))
				o := AcquireOptions{Lease: time.Minute, Wait: wait, try: try}
				if strings.Contains(name, "slower") {
					o.Wait = 3 * time.Minute
				} else if c.unbounded {
					o.Wait = 0
				}
				_, _, err := l.AcquireWith(t.Context(), "k", o)
				if took := time.Since(begun); took > max(wait, o.Wait) || !errors.Is(err, c.is) || errors.Is(err, ErrNotAcquired) == errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), c.says) && !try {
					t.Errorf("%s, try %v: after %s: %v", name, try, took, err)
				}
				if got := strings.Join(calls, ", "); !try && (got != c.hooks) || len(f.requests(acquireScript)) != map[bool]int{false: c.requests, true: 1}[try] {
					t.Errorf("%s: hooks: %s, want %s; %d requests, want %d", name, got, c.hooks, len(f.requests(acquireScript)), c.requests)
				}
			})
		}
	}
}

// TestACallerSendsItsRequestItself through a client that ends it in time: with the wait, or after a second, in which a
// cancel is not noticed. From then on another goroutine asks, and the caller is told.
func TestACallerSendsItsRequestItself(t *testing.T) {
	for _, inTime := range []bool{false, true} {
		one := redis.NewClient(&redis.Options{ContextTimeoutEnabled: inTime})
		many := redis.NewClusterClient(&redis.ClusterOptions{ContextTimeoutEnabled: inTime})
		if newServer(one, "").inTime != inTime || newServer(many, "").inTime != inTime {
			t.Errorf("a client's ContextTimeoutEnabled is %v, and that of the Locker is not", inTime)
		}
		one.Close()
		many.Close()
	}
	const ms = time.Millisecond
	for _, c := range []struct {
		lease, wait, cancelled, took, told time.Duration
		try, answers, fails                bool // answers after the first request
		requests                           int
	}{
		{wait: 300 * ms, took: 300 * ms, requests: 1},
		{wait: 3000 * ms, took: 3000 * ms, told: 1000 * ms, requests: 2},
		{cancelled: 100 * ms, took: 1000 * ms, requests: 1},
		{cancelled: 1100 * ms, took: 1100 * ms, told: 1000 * ms, requests: 2},
		{wait: 3000 * ms, try: true, took: 1000 * ms, requests: 1},
		{took: 1000*ms + third(fakeLease), told: 1000 * ms, requests: 2},
		{answers: true, took: 1000 * ms, requests: 2},
		{lease: 1200 * ms, took: 800 * ms, requests: 2}, // a third of it each
		{fails: true, requests: 1},
	} {
		withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
			l.server.inTime = true
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			begun, told, failed := time.Now(), time.Duration(0), 0
			l.opts.Hooks.Failed = func(context.Context, Event) { failed++ }
			l.opts.Hooks.NotServed = func(context.Context, Event) { told = time.Since(begun).Truncate(ms) }
			f.answers(acquireScript, func(ctx context.Context) (any, error) {
				if c.fails {
					return nil, errDown
				}
				if c.answers && time.Since(begun) > 0 {
					return heldReply, nil
				}
				end, _ := ctx.Deadline()
				return noAnswer(bounded{context.Background(), end}) // a connection does not end with a cancel
			})
			if c.cancelled > 0 {
				time.AfterFunc(c.cancelled, cancel)
			}
			_, lease, err := l.AcquireWith(ctx, "k", AcquireOptions{Lease: c.lease, Wait: c.wait, try: c.try})
			if took := time.Since(begun); took != c.took || told != c.told || len(f.requests(acquireScript)) != c.requests {
				t.Errorf("%+v: after %s, told after %s, %d requests: %v", c, took, told, len(f.requests(acquireScript)), err)
			}
			if c.answers != (err == nil) || c.answers != (failed == 0) || !c.answers && (!errors.Is(err, ErrUnavailable) || !errors.Is(err, context.Cause(ctx)) && c.cancelled > 0) {
				t.Errorf("%+v: %v", c, err)
			}
			if err == nil {
				release(t, lease)
			}
			f.answers(acquireScript, nil)
		})
	}
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) { // so does one that cannot give up, through any client
		f.answers(acquireScript, func(context.Context) (any, error) {
			if n := goroutinesOfLockers(); n != 1 {
				t.Errorf("%d goroutines", n)
			}
			return heldReply, nil
		})
		_, lease := acquire(t, l, context.Background(), "k")
		release(t, lease)
		f.answers(acquireScript, noAnswer)
		begun := time.Now()
		if _, _, err := l.AcquireWith(context.Background(), "k", AcquireOptions{Wait: time.Second}); !errors.Is(err, ErrUnavailable) || time.Since(begun) != time.Second {
			t.Errorf("Acquire = %v after %s", err, time.Since(begun))
		}
	})
}

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
			passes := func() int64 { return holder.locks[tagged(t.Name())].passes }
			eventually(t, "it is passed on", func() bool { return under(holder, passes) > 2 })
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
		know := under(l, func() int64 { return l.locks[tagged(t.Name())].others })
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
		{0, 1<<tokenBits - 2, interval(lease) - 1, true}, // nobody is kept waiting, as far as is known
		{0, 1<<tokenBits - 2, interval(lease), false},    // but a message may be lost
		{0, 1<<tokenBits - 1, 0, false},                  // the tokens of the epoch are used up
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
		if next := min(i+1, len(came)-1); came[next] != l {
			time.Sleep(300 * time.Millisecond) // far longer than a request takes to Redis, by which the order can be wrong
		}
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

// TestATryBesideAReleaseIsNoOutage: the answer to the release says nothing of the request that is under way.
func TestATryBesideAReleaseIsNoOutage(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		_, lease := acquire(t, l, t.Context(), "k")
		released, answered, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		f.answers(releaseScript, func(context.Context) (any, error) { <-released; return int64(replyWaiting), nil })
		f.answers(acquireScript, func(context.Context) (any, error) { <-answered; return heldReply, nil })
		go func() { done <- lease.Release() }()
		synctest.Wait()
		got := waits(t, t.Context(), l, "k")
		close(released)
		must(t, <-done)
		if _, _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, ErrNotAcquired) || errors.Is(err, ErrUnavailable) {
			t.Errorf("TryAcquire = %v, want ErrNotAcquired", err)
		}
		close(answered)
		release(t, <-got)
	})
}

// TestAShortWaitIsItsOwn: a request that ends with its asker's bound is no answer to who waits without one.
func TestAShortWaitIsItsOwn(t *testing.T) {
	for _, o := range []AcquireOptions{{Wait: 100 * time.Millisecond}, {try: true}} {
		withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
			l.server.inTime = true
			f.answers(acquireScript, noAnswer)
			failed := fails(t, l, o)
			got := waits(t, t.Context(), l, "k") // at the same time as the request
			f.answers(acquireScript, nil)
			if err := <-failed; err == nil {
				t.Errorf("%+v: no error", o)
			}
			if lease := <-got; lease != nil {
				release(t, lease)
			}
		})
	}
}

// TestACancelIsItsOwn: who waits beside a customer that leaves is told of its own wait.
func TestACancelIsItsOwn(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		l.server.inTime = true
		ctx, cancel := context.WithCancel(t.Context())
		end, first := make(chan struct{}), true
		f.before = func(redis.Cmder) error { // waits for a connection
			if first {
				first = false
				<-ctx.Done()
				return ctx.Err()
			}
			<-end
			return nil
		}
		go l.AcquireWith(ctx, "k", AcquireOptions{Wait: time.Minute})
		synctest.Wait()
		failed := fails(t, l, AcquireOptions{Wait: time.Second})
		cancel()
		if err := <-failed; errors.Is(err, context.Canceled) || !errors.Is(err, ErrUnavailable) {
			t.Errorf("Acquire = %v, and its context has not ended", err)
		}
		close(end)
	})
}

// TestDoTellsOfALossBehindItsContext: the work goes on when the customer has left, and the lock is lost then.
func TestDoTellsOfALossBehindItsContext(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		ctx, cancel := context.WithCancel(t.Context())
		f.answers(renewScript, says([]any{int64(0), int64(1)})) // somebody took it
		if err := l.Do(ctx, "k", func(context.Context) error { cancel(); time.Sleep(fakeLease / 2); return nil }); !errors.Is(err, ErrLost) {
			t.Errorf("Do = %v, want ErrLost", err)
		}
	})
}
