package redislock

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// Tests that stand in for Redis run under virtual time: it passes only when everybody waits for
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

	hook                   func(error) error       // of the client, around all
	before                 func(redis.Cmder) error // before it is read
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

func (f *fakeRedis) Process(ctx context.Context, cmd redis.Cmder) (err error) {
	if f.hook != nil {
		defer func() { err = f.hook(err) }()
	}
	if f.before != nil {
		if err := f.before(cmd); err != nil {
			cmd.SetErr(err)
			return err
		}
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
	v := any(heldReply)
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

func refuses(err error) func(context.Context) (any, error) {
	return func(context.Context) (any, error) { return nil, err }
}

// noAnswer lasts until the context's deadline, as that of a connection does, or its end.
func noAnswer(ctx context.Context) (any, error) {
	var timeout <-chan time.Time
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		if left <= 0 { // no timer: see renew.go on those that are due at once
			return nil, context.DeadlineExceeded
		}
		timeout = time.After(left)
	}
	select {
	case <-timeout:
		return nil, context.DeadlineExceeded
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// says is an answer that is always the same.
func says(v any) func(context.Context) (any, error) {
	return func(context.Context) (any, error) { return v, nil }
}

// listening has a Locker believe that it listens. It is never opened anew: that is for one that has been there
// for a while.
func listening(l *Locker) {
	l.subscription = &subscription{close: func() {}, since: l.now() + time.Hour}
}

// settled lets the timer come to what is due now, and its requests be answered.
func settled() {
	time.Sleep(time.Nanosecond)
	synctest.Wait()
}

// waits is asks, until nothing moves any more.
func waits(t testing.TB, ctx context.Context, l Locking, key string) <-chan *Lease {
	defer synctest.Wait()
	return asks(t, ctx, l, key)
}

// fails has a goroutine acquire what it does not get, and waits until nothing moves any more.
func fails(t testing.TB, l *Locker, o AcquireOptions) <-chan error {
	defer synctest.Wait()
	failed := make(chan error, 1)
	go func() { _, _, err := l.AcquireWith(t.Context(), "k", o); failed <- err }()
	return failed
}

const fakeLease = 10 * time.Second

const fakeValidity = fakeLease - fakeLease/100 - 2*time.Millisecond // less the clocks' difference

// withFake runs a test in fake time.
func withFake(t *testing.T, test func(t *testing.T, f *fakeRedis, l *Locker)) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRedis(t)
		l := New(f, Options{Lease: fakeLease})
		test(t, f, l)
		closes(t, l)
	})
}

// withListening is withFake, and the Locker listens already.
func withListening(t *testing.T, test func(t *testing.T, f *fakeRedis, l *Locker)) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) { listening(l); test(t, f, l) })
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
