package redislock

import (
	"context"
	"crypto/rand"
	"embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Client is what the lock needs of a go-redis client. *redis.Client (also one made
// for Sentinel), *redis.ClusterClient and redis.UniversalClient have it.
type Client interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
}

// KeySet is what a [Locker] stores in Redis for one lock. All four share a hash tag.
type KeySet struct {
	Lock    string // who holds it; lives for the lease
	Queue   string // the processes that wait, by when their next waiter came
	Waiters string // the attempt and the heartbeat of each of them
	Epoch   string // the last epoch, of which tokens are made
}

// Keys returns the names of what a Locker with that Options.Prefix stores for key. They are for
// those who look: nothing but a Locker may write to them.
func Keys(prefix, key string) KeySet { return keysOf(prefix + tagged(key)) }

// layout is in each name, so that Lockers of different versions do not read each other's values.
const layout = ":v2"

func keysOf(name string) KeySet {
	name += layout
	return KeySet{Lock: name + ":lock", Queue: name + ":queue", Waiters: name + ":waiters", Epoch: name + ":epoch"}
}

// all returns the keys in the order in which the scripts take them.
func (k KeySet) all() []string { return []string{k.Lock, k.Queue, k.Waiters, k.Epoch} }

// tagged returns the one spelling of a key, with the hash tag by which a Redis Cluster keeps what
// belongs to it together: the key's own tag if it has one, or else the whole key. Of a key that is
// empty or begins with a brace no tag can be made, because a tag is not empty and ends at the first
// brace: all those share one.
func tagged(key string) string {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if end := strings.IndexByte(key[open+1:], '}'); end > 0 {
			return key
		}
	}
	if key == "" || key[0] == '}' {
		return "{redislock}:" + key
	}
	return "{" + key + "}"
}

//go:embed *.lua
var sources embed.FS

var (
	acquireScript   = newScript(4, "take", "acquire_free", "common", "acquire")
	releaseScript   = newScript(4, "release_unwanted", "take", "common", "release")
	renewScript     = newScript(1, "renew")
	heartbeatScript = newScript(4, "take", "common", "heartbeat")
	cancelScript    = newScript(4, "take", "common", "cancel")
)

// script is one in Lua. It takes so many of a lock's keys.
type script struct {
	source, sha string
	keys        int
}

// newScript puts files together.
func newScript(keys int, names ...string) *script {
	s := &script{keys: keys}
	for _, name := range names {
		text, err := sources.ReadFile(name + ".lua")
		if err != nil {
			panic(err) // it is built in
		}
		s.source += string(text)
	}
	s.sha = redis.NewScript(s.source).Hash()
	return s
}

// onceCmd is a command that is sent once, whatever the client's MaxRetries: a request that is sent
// again after its answer was lost may be carried out twice, the second time when the lock has gone
// on to somebody else. What the lock sends again, it sends knowing that the first time may have
// worked.
type onceCmd struct{ *redis.Cmd }

func (onceCmd) NoRetry() bool { return true }

func once(ctx context.Context, name, script string, args []any) onceCmd {
	cmd := redis.NewCmd(ctx, append([]any{name, script}, args...)...)
	cmd.SetFirstKeyPos(3) // for the clients that go by a key's slot
	return onceCmd{cmd}
}

// reply is what a script says of one lock.
type reply struct {
	kind   int64
	epoch  int64         // of replyHeld
	others int64         // of replyHeld: other processes that wait
	ttl    time.Duration // of replyWaiting: how long the lock lives as it is
}

const (
	replyDropped = 0 // the attempt is over, or unknown: nothing was done
	replyHeld    = 1
	replyWaiting = 2 // queued, or released
)

// maxTTL, in milliseconds, is far from what a time.Duration cannot hold.
const maxTTL = 1 << 40

// parseReply reads a list, or a number: the kind, or the epoch of a lock that is held.
func parseReply(v any) (reply, error) {
	if n, ok := v.(int64); n > replyWaiting {
		return reply{kind: replyHeld, epoch: n}, nil
	} else if ok && n == replyDropped || n == replyWaiting {
		return reply{kind: n}, nil
	}
	var n [3]int64
	fields, ok := v.([]any)
	ok = ok && len(fields) <= len(n)
	for i := 0; ok && i < len(fields); i++ {
		n[i], ok = fields[i].(int64)
	}
	switch {
	case ok && len(fields) == 3 && n[0] == replyHeld && n[1] > 0:
		return reply{kind: replyHeld, epoch: n[1], others: n[2]}, nil
	case ok && len(fields) == 2 && n[0] == replyWaiting:
		return reply{kind: replyWaiting, ttl: time.Duration(min(max(n[1], 0), maxTTL)) * time.Millisecond}, nil
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

// arguments are those of a script: the lock's keys, the attempt, and what else the script's header
// says. They are few, because each one takes time.
func (s server) arguments(sc *script, n *lock, attempt uint64, more ...any) []any {
	args := append(make([]any, 0, 6+len(more)), sc.keys)
	for _, key := range n.keys.all()[:sc.keys] {
		args = append(args, key)
	}
	args = append(args, s.id+" "+strconv.FormatUint(attempt, 10))
	return append(args, more...)
}

// do has Redis carry out a script, and reads the reply.
func (s server) do(ctx context.Context, sc *script, n *lock, attempt uint64, more ...any) (reply, error) {
	v, err := s.run(ctx, sc, s.arguments(sc, n, attempt, more...))
	if err != nil {
		return reply{}, err
	}
	return parseReply(v)
}

// run sends a script's hash, and the script itself where Redis does not know it. A panic in a hook
// of the client is an error.
func (s server) run(ctx context.Context, sc *script, args []any) (v any, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{v}
		}
	}()
	cmd := once(ctx, "evalsha", sc.sha, args)
	if err := s.client.Process(ctx, cmd); redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = once(ctx, "eval", sc.source, args)
		_ = s.client.Process(ctx, cmd)
	}
	return cmd.Result()
}
