package polling

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/redislock"
)

// NewQuorum returns a locker that needs a majority of independent Redis servers, after the Redlock
// algorithm (redis.io, Distributed Locks with Redis). A minority can be lost without a second
// holder. Three or five servers are usual. They must not be replicas of each other. NewQuorum
// panics without clients.
//
// Each server has a timeout of its own, a fifth of the lease. A slow or dead server does not delay the others: where a
// majority has answered and does not agree, as when several processes try at once, the rest is waited for only a few
// times as long. A failed try deletes its value on all servers. A server that comes back without its data
// gets the value of a hold again, after a majority has renewed it. There is no fencing token,
// because independent servers have no common counter.
func NewQuorum[C redislock.Client](clients []C, o Options) *Locker {
	if len(clients) == 0 {
		panic("polling: NewQuorum without clients")
	}
	lease := cmp.Or(o.Lease, redislock.DefaultLease)
	q := &quorum{lease: lease, timeout: max(lease/5, 10*time.Millisecond), id: rand.Text(), until: map[string]time.Time{}}
	for _, c := range clients {
		q.nodes = append(q.nodes, &node{Client: c, setting: map[string]chan struct{}{}})
	}
	return newLocker(q, o)
}

// quorum is the [redislock.Client] of its Locker. It puts each request to all servers, as a command on one key with a
// value of the attempt's own, and answers as their majority does.
type quorum struct {
	redislock.Client // nil: there is no channel to subscribe to

	nodes          []*node
	lease, timeout time.Duration
	id             string // begins each value

	mu    sync.Mutex
	until map[string]time.Time // of the values that are held: their deadlines
	sweep int                  // forgotten ones are deleted when there are so many

	puts sync.WaitGroup // requests under way
}

// node is one server. What is to be deleted waits until its setting was answered.
type node struct {
	redislock.Client
	mu      sync.Mutex
	setting map[string]chan struct{} // of the values that are being set: closed at the end
}

// begin returns false for a value that is being set.
func (n *node) begin(value string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.setting[value] != nil {
		return false
	}
	n.setting[value] = make(chan struct{})
	return true
}

func (n *node) end(value string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.setting[value])
	delete(n.setting, value)
}

func (n *node) wait(value string) {
	n.mu.Lock()
	set := n.setting[value]
	n.mu.Unlock()
	if set != nil {
		<-set
	}
}

// Process puts one request, and what Pipeline returns puts several. They are all that the Locker calls.
func (q *quorum) Process(ctx context.Context, cmd redis.Cmder) error {
	q.ask(ctx, cmd)
	return cmd.Err()
}

func (q *quorum) Pipeline() redis.Pipeliner { return &batch{quorum: q} }

// batch has the two calls that a [redislock.Locker] makes to send several requests.
type batch struct {
	redis.Pipeliner
	quorum *quorum
	cmds   []redis.Cmder
}

func (b *batch) BatchProcess(_ context.Context, cmds ...redis.Cmder) error {
	b.cmds = cmds
	return nil
}

func (b *batch) Exec(ctx context.Context) ([]redis.Cmder, error) {
	b.quorum.ask(ctx, b.cmds...)
	return b.cmds, nil
}

var (
	//go:embed compare_extend.lua
	compareExtend string
	//go:embed compare_delete.lua
	compareDelete string
)

// request is a command of the Locker.
type request interface {
	redis.Cmder
	SetVal(any)
	Request() (script, lock string, attempt uint64)
}

// The requests that come, and what the Locker takes for a yes: held, held, released, and done.
var yesTo = map[string]int64{"acquire": 1, "renew": 1, "release": 2, "cancel": 0}

// vote is what the servers say of one request.
type vote struct {
	script, key, value string
	px                 any // how long the value lasts, in milliseconds; of the others nil
	noMajority
	again bool // a renewal that counts: where the value is gone, it is set
}

func (v *vote) deletes() bool { return v.script == "release" || v.script == "cancel" }

// noMajority: too few servers answered alike for a decision. Another try may succeed.
type noMajority struct {
	yes, no, of int
	errs        []error
}

func (v *noMajority) Error() string {
	return fmt.Sprintf("polling: of %d servers, %d said yes, %d no, and %d did not answer", v.of, v.yes, v.no, v.of-v.yes-v.no)
}

func (v *noMajority) decided() bool {
	return max(v.yes, v.no) > v.of/2 || v.yes+v.no+len(v.errs) == v.of
}

// answer is that of one server. It is an error if it is neither yes nor no.
type answer struct {
	yes, no  bool
	err      error
	panicked any // a hook of its client
}

// ask puts requests to all servers at once. It returns as soon as all are decided, and does not wait
// for slow servers, even if a client ignores its context.
func (q *quorum) ask(ctx context.Context, cmds ...redis.Cmder) {
	sent, votes := time.Now(), make([]*vote, len(cmds))
	for i, cmd := range cmds {
		v := &vote{noMajority: noMajority{of: len(q.nodes)}}
		name, lock, attempt := cmd.(request).Request()
		v.script, v.key, v.value = name, lock, fmt.Sprint(q.id, attempt)
		switch args := cmd.Args(); {
		case v.deletes():
			q.forget(v.value)
		case name == "acquire":
			v.px = q.lease.Milliseconds()
		default: // the lease, or how long the lock is left
			v.px = args[len(args)-1]
		}
		votes[i] = v
	}
	answers, decided := make(chan []answer, len(q.nodes)), make(chan struct{})
	defer close(decided)
	for _, n := range q.nodes {
		for _, v := range votes {
			if v.script == "acquire" {
				n.begin(v.value)
			}
		}
		q.puts.Go(func() { n.put(context.WithoutCancel(ctx), q, votes, answers, decided) })
	}
	patience := time.NewTimer(q.timeout)
	defer patience.Stop()
	answered := 0
	for open := true; open; {
		select {
		case of := <-answers:
			open = false
			if answered++; votes[0].script == "acquire" && answered == len(q.nodes)/2+1 {
				took := time.Since(sent)
				patience.Reset(min(max(4*took, 10*time.Millisecond), q.timeout-took))
			}
			for i, v := range votes {
				v.count(of[i])
				open = open || !v.decided()
			}
		case <-patience.C:
			open = false
		case <-ctx.Done():
			open = false
		}
	}
	for i, v := range votes {
		q.decide(cmds[i].(request), v, sent)
	}
}

func (v *vote) count(a answer) {
	switch {
	case a.panicked != nil:
		panic(a.panicked) // the Locker gives it to its caller
	case a.yes, a.no && v.script == "cancel":
		v.yes++
	case a.no:
		v.no++
	default:
		v.errs = append(v.errs, a.err)
	}
}

// decide answers a request. A lock that was not granted may be set on a minority: after an error the
// Locker cancels the attempt.
func (q *quorum) decide(cmd request, v *vote, sent time.Time) {
	reply := []any{int64(0), int64(0), int64(0)}
	switch most := v.of / 2; {
	case v.yes > most:
		reply[0] = yesTo[v.script]
		q.hold(v, sent)
	case v.no <= most, v.script == "acquire" && v.no < v.of:
		cmd.SetErr(&v.noMajority)
		return
	}
	cmd.SetVal(reply)
}

// hold notes a hold, or that it was renewed. It does not after the deadline, which the Locker sees as well.
func (q *quorum) hold(v *vote, sent time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	v.again = v.script == "renew" && time.Now().Before(q.until[v.value])
	if v.script != "acquire" && !v.again {
		return
	}
	q.until[v.value] = sent.Add(q.lease - q.lease/100 - 2*time.Millisecond)
	if len(q.until) > q.sweep { // forgotten leases
		maps.DeleteFunc(q.until, func(_ string, until time.Time) bool { return time.Now().After(until) })
		q.sweep = 2*len(q.until) + 100
	}
}

func (q *quorum) forget(value string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.until, value)
}

func (q *quorum) holds(value string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return time.Now().Before(q.until[value])
}

// put puts requests to one server. Where the value of a renewal that counts is gone, put sets it again, unless it
// was released by then.
func (n *node) put(ctx context.Context, q *quorum, votes []*vote, answers chan<- []answer, decided <-chan struct{}) {
	for _, v := range votes {
		if v.deletes() {
			n.wait(v.value)
		}
	}
	got := n.send(ctx, q, votes)
	for _, v := range votes {
		if v.script == "acquire" {
			n.end(v.value)
		}
	}
	answers <- got
	<-decided
	var gone []*vote
	for i, v := range votes {
		if v.again && got[i].no && n.begin(v.value) {
			defer n.end(v.value)
			if q.holds(v.value) { // looked at last: a release that begins now waits
				gone = append(gone, &vote{script: "acquire", key: v.key, value: v.value, px: v.px})
			}
		}
	}
	if gone != nil {
		n.send(ctx, q, gone)
	}
}

// once is a command that go-redis does not repeat: the Locker does.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

func (n *node) send(ctx context.Context, q *quorum, votes []*vote) (got []answer) {
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	got = make([]answer, len(votes))
	defer func() {
		if v := recover(); v != nil {
			got[0].panicked = v
		}
	}()
	cmds := make([]redis.Cmder, len(votes))
	for i, v := range votes {
		args := []any{"eval", compareDelete, 1, v.key, v.value}
		switch v.script {
		case "acquire":
			args = []any{"set", v.key, v.value, "px", v.px, "nx"}
		case "renew":
			args = []any{"eval", compareExtend, 1, v.key, v.value, v.px}
		}
		cmds[i] = once{redis.NewCmd(ctx, args...)}
	}
	var err error
	if len(cmds) == 1 {
		err = n.Process(ctx, cmds[0])
	} else {
		pipeline := n.Client.Pipeline()
		_ = pipeline.BatchProcess(ctx, cmds...)
		_, err = pipeline.Exec(ctx)
	}
	for i, cmd := range cmds {
		v, failed := cmd.(once).Result()
		got[i] = answer{yes: v == "OK" || v == int64(1), no: errors.Is(failed, redis.Nil) || v == int64(0), err: cmp.Or(failed, err)}
	}
	return got
}
