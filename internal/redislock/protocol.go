package redislock

import (
	"context"
	"crypto/rand"
	"embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Client is what the lock needs of a go-redis client. *redis.Client (also one made
// for Sentinel), *redis.ClusterClient and redis.UniversalClient have it.
type Client interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
}

//go:embed *.lua
var sources embed.FS

var (
	acquireFreeScript     = newScript("take", "acquire_free")
	releaseUnwantedScript = newScript("release_unwanted")
	renewScript           = newScript("renew")
	acquireScript         = newScript("take", "common", "acquire")
	releaseScript         = newScript("take", "common", "release")
	heartbeatScript       = newScript("take", "common", "heartbeat")
	cancelScript          = newScript("take", "common", "cancel")
)

type script struct{ source, sha string }

// newScript puts files together.
func newScript(names ...string) *script {
	var s script
	for _, name := range names {
		text, err := sources.ReadFile(name + ".lua")
		if err != nil {
			panic(err) // it is built in
		}
		s.source += string(text)
	}
	s.sha = redis.NewScript(s.source).Hash()
	return &s
}

// call is a request: a script with its keys and arguments.
type call struct {
	script *script
	keys   []string
	args   []any
}

// command makes a command of a call. It is sent once, whatever the client's MaxRetries: a request
// that is sent again after its answer was lost may be carried out twice, the second time when the
// lock has gone on to somebody else. What the lock sends again, it sends knowing that the first
// time may have worked.
func (c call) command(ctx context.Context, name, script string) onceCmd {
	all := make([]any, 0, 3+len(c.keys)+len(c.args))
	all = append(all, name, script, len(c.keys))
	for _, key := range c.keys {
		all = append(all, key)
	}
	cmd := redis.NewCmd(ctx, append(all, c.args...)...)
	cmd.SetFirstKeyPos(3) // for the clients that go by a key's slot
	return onceCmd{cmd}
}

// onceCmd is a command that go-redis does not retry.
type onceCmd struct{ *redis.Cmd }

func (onceCmd) NoRetry() bool { return true }

// reply is what a script says of one lock.
type reply struct {
	kind   int64
	epoch  int64         // of replyHeld
	others int64         // of replyHeld: other processes that wait
	ttl    time.Duration // of replyWaiting: how long the lock lives as it is
}

const (
	replyNotHeld = 0
	replyHeld    = 1
	replyWaiting = 2
	replyDropped = 3 // or: nothing was done
)

// contended says whether it shows that others want the lock, too.
func (r reply) contended() bool { return r.kind == replyDropped || r.ttl > 0 || r.others > 0 }

// maxTTL, in milliseconds, is far from what a time.Duration cannot hold.
const maxTTL = 1 << 40

// parseReply reads a list, or a number: the kind alone, or the epoch of a lock that is held,
// without a word on who waits.
func parseReply(v any) (reply, error) {
	switch n, ok := v.(int64); {
	case n > replyDropped:
		return reply{kind: replyHeld, epoch: n}, nil
	case ok && (n == replyNotHeld || n == replyWaiting || n == replyDropped):
		return reply{kind: n}, nil
	}
	var numbers [3]int64
	fields, ok := v.([]any)
	ok = ok && len(fields) <= len(numbers)
	for i := 0; ok && i < len(fields); i++ {
		numbers[i], ok = fields[i].(int64)
	}
	switch {
	case ok && len(fields) == 3 && numbers[0] == replyHeld && numbers[1] > 0:
		return reply{kind: replyHeld, epoch: numbers[1], others: numbers[2]}, nil
	case ok && len(fields) == 2 && numbers[0] == replyWaiting:
		return reply{kind: replyWaiting, ttl: time.Duration(min(max(numbers[1], 0), maxTTL)) * time.Millisecond}, nil
	}
	return reply{}, fmt.Errorf("redislock: unexpected reply %v", v)
}

// bounded is the context of a request: it has the values of the context on whose behalf the request
// is sent, such as the span of a trace, and outlives that context. The deadline is for what goes
// over a connection. It has no timer, which would take longer than all else that the Locker does
// for a request: a wait for a connection of the pool is bounded by the client's own PoolTimeout.
type bounded struct {
	context.Context
	deadline time.Time
}

func bound(behalf context.Context, deadline time.Time) bounded {
	return bounded{context.WithoutCancel(behalf), deadline}
}

func (b bounded) Deadline() (time.Time, bool) { return b.deadline, true }

// server speaks to Redis for one Locker.
type server struct {
	client Client
	id     string // the Locker's: its label and 128 random bits
}

func newServer(client Client, label string) server {
	if label != "" {
		label += "~"
	}
	return server{client, label + rand.Text()}
}

func (s server) channel() string { return "redislock:" + s.id }

// holder is how an attempt is named in the lock.
func (s server) holder(attempt uint64) string { return s.id + " " + strconv.FormatUint(attempt, 10) }

// acquireFree is acquire for a lock that nobody else wants. Where somebody does, it does nothing,
// and says replyDropped.
func (s server) acquireFree(k KeySet, attempt uint64, lease time.Duration) call {
	return call{acquireFreeScript, []string{k.Lock, k.Waiters, k.Epoch}, []any{s.holder(attempt), lease.Milliseconds()}}
}

// acquire queues, if it is to, behind all who have waited for longer.
func (s server) acquire(name string, k KeySet, attempt uint64, lease time.Duration, queue bool, waited time.Duration) call {
	place := ""
	if queue {
		place = strconv.FormatInt(waited.Microseconds(), 10)
	}
	return call{acquireScript, k.all(), []any{s.id, attempt, lease.Milliseconds(), name, place}}
}

// releaseUnwanted is release for a lock that nobody else wants, likewise.
func (s server) releaseUnwanted(k KeySet, attempt uint64) call {
	return call{releaseUnwantedScript, []string{k.Lock, k.Queue}, []any{s.holder(attempt)}}
}

// release queues for the next attempt, if there is one, likewise.
func (s server) release(name string, k KeySet, attempt, next uint64, lease, waited time.Duration) call {
	again := ""
	if next != 0 {
		again = strconv.FormatUint(next, 10)
	}
	return call{releaseScript, k.all(), []any{s.id, attempt, lease.Milliseconds(), name, again, waited.Microseconds()}}
}

func (s server) renew(k KeySet, attempt uint64, lease time.Duration) call {
	return call{renewScript, []string{k.Lock}, []any{s.holder(attempt), lease.Milliseconds()}}
}

func (s server) heartbeat(name string, k KeySet, attempt uint64, lease time.Duration) call {
	return call{heartbeatScript, k.all(), []any{s.id, attempt, lease.Milliseconds(), name}}
}

func (s server) cancel(name string, k KeySet, attempt uint64, lease time.Duration) call {
	return call{cancelScript, k.all(), []any{s.id, attempt, lease.Milliseconds(), name}}
}

// run sends one call, and its script with it where Redis does not know that. A panic in a hook of
// the client is an error.
func (s server) run(ctx context.Context, c call) (v any, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{v}
		}
	}()
	cmd := c.command(ctx, "evalsha", c.script.sha)
	if err := s.client.Process(ctx, cmd); redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = c.command(ctx, "eval", c.script.source)
		_ = s.client.Process(ctx, cmd)
	}
	return cmd.Result()
}

func (s server) do(ctx context.Context, c call) (reply, error) {
	v, err := s.run(ctx, c)
	if err != nil {
		return reply{}, err
	}
	return parseReply(v)
}

// answer is the reply to a call, or what came instead of it.
type answer struct {
	reply
	err error
}
