package redislock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// The tests of this file stand in for Redis, so that time passes only when everybody waits for
// it, and deadlines can be compared to the nanosecond.

// fakeRedis answers each request of the lock by the function for its script, or as a Redis that
// gives the lock to everybody and keeps it for them.
type fakeRedis struct {
	t *testing.T

	mu       sync.Mutex
	calls    map[*script][]came
	keepArgs bool
	args     []any // of all requests, if they are kept
	on       map[*script]func(ctx context.Context) (any, error)

	before                 func(redis.Cmder)
	refuse                 func(redis.Cmder) error // before on
	pipelines              []int                   // how many commands each had
	underWay, mostUnderWay int                     // of them
}

// came is a request that came.
type came struct {
	at  time.Time
	ctx error // of its context, then
}

func newFakeRedis(t *testing.T) *fakeRedis {
	return &fakeRedis{t: t, calls: map[*script][]came{}, on: map[*script]func(context.Context) (any, error){}}
}

func (f *fakeRedis) Subscribe(context.Context, ...string) *redis.PubSub {
	f.t.Error("the lock subscribed, although nobody waits for anybody")
	return nil
}

var (
	droppedReply = int64(replyDropped)
	heldReply    = []any{int64(replyHeld), int64(12345), int64(0)}
	waitingReply = []any{int64(replyWaiting), int64(60_000)}
)

var allScripts = []*script{acquireScript, releaseScript, cancelScript, renewScript, heartbeatScript}

func (f *fakeRedis) Pipeline() redis.Pipeliner { return &fakePipeline{f: f} }

// fakePipeline sends its commands one after the other, and counts.
type fakePipeline struct {
	redis.Pipeliner
	f    *fakeRedis
	cmds []redis.Cmder
}

func (p *fakePipeline) BatchProcess(_ context.Context, cmds ...redis.Cmder) error {
	p.cmds = append(p.cmds, cmds...)
	return nil
}

func (p *fakePipeline) Exec(ctx context.Context) (_ []redis.Cmder, err error) {
	p.f.mu.Lock()
	p.f.pipelines = append(p.f.pipelines, len(p.cmds))
	p.f.underWay++
	p.f.mostUnderWay = max(p.f.mostUnderWay, p.f.underWay)
	p.f.mu.Unlock()
	for _, cmd := range p.cmds {
		err = cmp.Or(err, p.f.Process(ctx, cmd))
	}
	p.f.mu.Lock()
	p.f.underWay--
	p.f.mu.Unlock()
	return p.cmds, err
}

func (f *fakeRedis) Process(ctx context.Context, cmd redis.Cmder) error {
	if f.before != nil {
		f.before(cmd)
	}
	var script *script
	for _, s := range allScripts {
		if s.sha == cmd.Args()[1] || s.source == cmd.Args()[1] {
			script = s
		}
	}
	f.mu.Lock()
	f.calls[script] = append(f.calls[script], came{time.Now(), ctx.Err()})
	if f.keepArgs {
		f.args = append(f.args, cmd.Args()...)
	}
	answer, refuse := f.on[script], f.refuse
	f.mu.Unlock()
	v, err := any(heldReply), error(nil)
	if refuse != nil {
		err = refuse(cmd)
	}
	switch {
	case err != nil:
	case answer != nil:
		v, err = answer(ctx)
	case script == releaseScript:
		v = waitingReply
	case script == cancelScript:
		v = droppedReply
	}
	if err != nil {
		cmd.SetErr(err)
		return err
	}
	cmd.(*onceCmd).SetVal(v)
	return nil
}

// answers sets what a script says from now on.
func (f *fakeRedis) answers(script *script, answer func(ctx context.Context) (any, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.on[script] = answer
}

// refuses sets which requests fail from now on.
func (f *fakeRedis) refuses(refuse func(redis.Cmder) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = refuse
}

func (f *fakeRedis) requests(script *script) []came {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[script]
}

var errDown = errors.New("redis is down")

func down(context.Context) (any, error) { return nil, errDown }

// silence lasts until the context's deadline, as that of a connection does, or its end.
func noAnswer(ctx context.Context) (any, error) {
	var timeout <-chan time.Time
	if deadline, ok := ctx.Deadline(); ok {
		timeout = time.After(time.Until(deadline))
	}
	select {
	case <-timeout:
		return nil, context.DeadlineExceeded
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// numbers are those that were sent, in whatever form.
func (f *fakeRedis) numbers() (numbers []int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, arg := range f.args {
		if n, err := strconv.ParseInt(fmt.Sprint(arg), 10, 64); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

const fakeLease = 10 * time.Second

const fakeValidity = fakeLease - fakeLease/100 - 2*time.Millisecond // less the clocks' difference

// withFake runs a test in fake time.
func withFake(t *testing.T, test func(t *testing.T, f *fakeRedis, l *Locker)) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRedis(t)
		l := New(f, Options{Lease: fakeLease})
		test(t, f, l)
		if err := l.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

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
		if renewals := f.requests(renewScript); len(renewals) < 10 {
			t.Errorf("%d renewals in %s of errors, want one every twenty-fourth of a lease", len(renewals), fakeValidity-time.Second)
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
		if n := l.locks["{k}"]; n == nil || n.look != 0 {
			t.Error("the timer runs on, with nothing to look after")
		}
	})
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
	time.Sleep(time.Nanosecond)
	synctest.Wait()
	return len(f.requests(renewScript)) - before
}

// TestABurstOfRenewals: what falls due at once goes out in a few pipelines, and a few of these are
// under way at a time, whatever is overdue.
func TestABurstOfRenewals(t *testing.T) {
	const batch = 50
	const locks = maxPipelines*batch + 2*batch
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		l.maxBatch = batch
		for k := range locks {
			_, lease := acquire(t, l, t.Context(), fmt.Sprint("long", k))
			defer release(t, lease)
		}
		if n := makeDue(f, l); n != locks {
			t.Errorf("%d renewals were sent, want %d", n, locks)
		}
		if len(f.pipelines) != locks/batch || slices.Max(f.pipelines) != batch || f.mostUnderWay > maxPipelines {
			t.Errorf("%d pipelines of up to %d, up to %d at a time", len(f.pipelines), slices.Max(f.pipelines), f.mostUnderWay)
		}
		f.answers(renewScript, noAnswer)
		makeDue(f, l)
		if n := goroutinesOfLockers(); f.underWay != maxPipelines || n != maxPipelines {
			t.Errorf("%d pipelines and %d goroutines are under way, want %d", f.underWay, n, maxPipelines)
		}
		f.answers(renewScript, nil)
		time.Sleep(fakeLease) // what was under way is over, and sent again
		if n := makeDue(f, l); n != locks {
			t.Errorf("%d renewals were sent after the silence, want %d", n, locks)
		}
		if n := l.queued(); n > 0 {
			t.Errorf("%d renewals and pipelines are left", n)
		}
	})
}

// goroutinesOfLockers counts those that Lockers started, or that are in one.
func goroutinesOfLockers() (n int) {
	stacks := make([]byte, 1<<20)
	for _, stack := range strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if strings.Contains(stack, "redislock.(*Locker)") {
			n++
		}
	}
	return n
}

// TestRenewalsGoOutTogether: those of many locks, in the ordinary course of a lease.
func TestRenewalsGoOutTogether(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		const locks = 2000
		for k := range locks {
			acquire(t, l, t.Context(), fmt.Sprint(k))
		}
		time.Sleep(third(fakeLease))
		synctest.Wait()
		together := 0
		for _, n := range f.pipelines {
			together += n
		}
		if together < locks*9/10 || len(f.pipelines) > 30 {
			t.Errorf("%d renewals in %d pipelines in a third of the lease, want %d in 30", together, len(f.pipelines), locks)
		}
	})
}

// TestTheNearestDeadlineGoesFirst, where more is due than may be under way.
func TestTheNearestDeadlineGoesFirst(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		var first *Lease
		l.maxBatch = 50
		const locks, nearest = maxPipelines*50 + 100, maxPipelines*50 + 50
		for k := range locks {
			_, lease := acquire(t, l, t.Context(), fmt.Sprint(k))
			if k == nearest {
				first = lease
			}
		}
		var sent atomic.Bool
		f.refuse = func(cmd redis.Cmder) error {
			if strings.HasPrefix(cmd.Args()[3].(string), "{"+first.Key()+"}") {
				sent.Store(true)
			}
			return nil
		}
		f.answers(renewScript, noAnswer)
		first.hold.lock.deadline -= time.Second
		makeDue(f, l)
		if f.underWay != maxPipelines {
			t.Fatalf("%d pipelines are under way", f.underWay)
		}
		if !sent.Load() {
			t.Error("the renewal whose deadline is the nearest is not among the first")
		}
		f.answers(renewScript, nil)
	})
}

// TestARenewalsErrorIsItsOwn: in a pipeline. A script that Redis does not know is sent for those
// whose hash was refused, and nothing is sent again by the client.
func TestARenewalsErrorIsItsOwn(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		var leases []*Lease
		for k := range 10 {
			_, lease := acquire(t, l, t.Context(), fmt.Sprint(k))
			leases = append(leases, lease)
		}
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
			case strings.HasPrefix(key, "{5}"), strings.HasPrefix(key, "{6}"):
				return redisError("NOSCRIPT No matching script")
			}
			return nil
		}
		makeDue(f, l)
		for k, lease := range leases {
			failed := lease.hold.failed.Load()
			if renewed := lease.hold.lock.deadline == l.now()-time.Nanosecond+fakeValidity; renewed != (k != 3) || (failed == nil) != (k != 3) {
				t.Errorf("lock %d: renewed %v, %v", k, renewed, failed)
			}
		}
		if slices.Sort(whole); !slices.Equal(whole, []string{"{5}:v2:lock", "{6}:v2:lock"}) {
			t.Errorf("the script was sent for %q, want those whose hash was refused", whole)
		}
		f.refuse = nil
	})
}

// fakeCluster is a fake Redis whose locks are divided between two nodes.
type fakeCluster struct {
	*fakeRedis
	nodes [2]*redis.Client
}

func nodeOf(key string) int { return len(key) % 2 }

func (f fakeCluster) MasterForKey(_ context.Context, key string) (*redis.Client, error) {
	return f.nodes[nodeOf(key)], nil
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
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
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
				if took := time.Since(begun); took > third(lease) || took > maxRelease {
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
			if took := time.Since(begun); want == ErrHeldTooLong && took != fakeLease {
				t.Errorf("it was held for %s, want the call's MaxHold", took)
			}
			_ = lease.Release()
		})
	}
}

// TestARenewalThatFailedIsSaid by a hook, and as the reason of the loss. So is a want of connections.
func TestARenewalThatFailedIsSaid(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		var mu sync.Mutex
		var failures []Event
		l.opts.Hooks.NotRenewed = func(_ context.Context, e Event) {
			mu.Lock()
			defer mu.Unlock()
			failures = append(failures, e)
		}
		f.answers(renewScript, down)
		held, lease := acquire(t, l, t.Context(), "k")
		<-held.Done()
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(failures) < 3 || failures[0].Key != "k" || failures[0].Token != lease.Token() || !errors.Is(failures[0].Err, errDown) || !errors.Is(context.Cause(held), errDown) {
			t.Errorf("the hook was called with %+v, and the hold ended with %v", failures, context.Cause(held))
		}
	})
	for _, read := range []bool{false, true} {
		withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
			blocked := make(chan bool)
			f.before = func(cmd redis.Cmder) {
				if cmd.(*onceCmd).script == renewScript {
					if read {
						cmd.Args()
					}
					<-blocked // the pool's connections are in use elsewhere, for longer than the lease
				}
			}
			held, _ := acquire(t, l, t.Context(), "k")
			<-held.Done()
			if text := context.Cause(held).Error(); strings.Contains(text, "waits for a connection") == read || strings.Contains(text, "no answer") != read {
				t.Errorf("read %v: the hold ended with %q", read, text)
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
				var forward atomic.Int64
				reply := func(kind, epoch int64) func(context.Context) (any, error) {
					return func(context.Context) (any, error) {
						time.Sleep(c.roundTrip / 2)
						now := time.Now().Add(time.Duration(forward.Load())).UnixMicro()
						time.Sleep(c.roundTrip / 2)
						if kind == 0 {
							return []any{int64(1), now, int64(0)}, nil
						}
						return []any{kind - 1, epoch, int64(0), now}, nil
					}
				}
				f.answers(acquireScript, reply(0, 0))
				f.answers(renewScript, reply(2, 12345))
				var seen []time.Duration
				l.opts.Hooks.ClockJumped = func(by time.Duration) { seen = append(seen, by) }
				_, first := acquire(t, l, t.Context(), "first")
				time.Sleep(third(fakeLease) / 2)
				held, second := acquire(t, l, t.Context(), "second")
				time.Sleep(3 * fakeLease)
				forward.Store(int64(c.forward))
				if c.refused {
					f.answers(renewScript, reply(1, 0))
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
				if c.forward <= 0 && (c.roundTrip == 0 && sent != 1 || len(seen) > 0) {
					t.Errorf("%d renewals, and the hook was called with %s", sent, seen)
				}
				if c.forward > 0 && (sent < 2 || len(seen) != 1 || seen[0] > c.forward || seen[0] < c.forward-c.roundTrip-time.Second/2) {
					t.Errorf("%d renewals, and the hook was called with %s", sent, seen)
				}
				time.Sleep(3 * fakeLease)
				synctest.Wait()
				if c.forward > 0 && len(seen) != 1 {
					t.Errorf("the hook was called with %s", seen)
				}
				if (held.Err() == nil) == c.refused {
					t.Errorf("the other hold: %v", context.Cause(held))
				}
			})
		})
	}
}
