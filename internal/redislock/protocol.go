package redislock

import (
	"context"
	"crypto/rand"
	"embed"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Client is the part of a go-redis client that the lock needs. *redis.Client (with or without
// Sentinel), *redis.ClusterClient and redis.UniversalClient implement it.
type Client interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
}

// KeySet has the names of the keys that a [Locker] stores in Redis for one lock. All four share a
// hash tag.
type KeySet struct {
	Lock    string // the holder; expires with the lease
	Queue   string // the waiting processes, by the arrival time of their next waiter
	Waiters string // the attempt and the heartbeat of each of them
	Epoch   string // the last epoch, from which tokens are made
}

// Keys returns the names of the keys that a Locker with that Options.Prefix stores for key. They
// serve to look at a lock: nothing but a Locker may write to them.
func Keys(prefix, key string) KeySet { return keysOf(prefix + tagged(key)) }

// layout is in each name, so that Lockers of different versions do not read each other's values. It
// changes with a key, a value or a message; the scripts get the names and do not know it. Two tests
// have names with it (lock_test.go, names_test.go), and so has docs/lock-protocol.md. CHANGELOG.md
// must say that Lockers of both versions do not exclude each other.
const layout = ":v2"

func keysOf(name string) KeySet {
	name += layout
	return KeySet{Lock: name + ":lock", Queue: name + ":queue", Waiters: name + ":waiters", Epoch: name + ":epoch"}
}

// tagged returns the one spelling of a key. Its hash tag keeps the keys of a lock on one server of a
// Redis Cluster. The tag is the key's own, or else the whole key. A tag is not empty and ends at the
// first brace. Keys that are empty or begin with a brace therefore share one tag.
func tagged(key string) string {
	if _, rest, _ := strings.Cut(key, "{"); strings.IndexByte(rest, '}') > 0 {
		return key
	}
	if key == "" || key[0] == '}' {
		return "{redislock}:" + key
	}
	return "{" + key + "}"
}

//go:embed *.lua
var sources embed.FS

var (
	acquireScript   = newScript(4, "acquire_free", "take", "common", "acquire")
	releaseScript   = newScript(4, "release_unwanted", "take", "common", "release")
	renewScript     = newScript(1, "renew")
	heartbeatScript = newScript(4, "take", "common", "heartbeat")
	cancelScript    = newScript(4, "take", "common", "cancel")
)

// script is a Lua script, with the number of a lock's keys that it takes.
type script struct {
	name, source string
	sha          any // a string
	keys         int
}

// newScript joins files to a script.
func newScript(keys int, names ...string) *script {
	s := &script{name: names[len(names)-1], keys: keys}
	for _, name := range names {
		text, _ := sources.ReadFile(name + ".lua") // it is built in
		s.source += string(text)
	}
	s.sha = redis.NewScript(s.source).Hash()
	return s
}

// onceCmd runs a script. It is sent once, whatever the client's MaxRetries. A request that is sent
// again after its answer was lost may be carried out twice, the second time when another holder has
// the lock. The lock's own repeats allow for a first request that worked.
type onceCmd struct {
	redis.Cmd
	script  *script
	lock    *lock
	attempt uint64
	read    atomic.Bool // by the client or a hook; what none has read was not sent
}

// A module with an older go-redis than 9.19 does not compile: it would send a request up to four times.
var _ interface{ NoRetry() bool } = (*redis.Cmd)(nil)

func (*onceCmd) NoRetry() bool { return true }
func (c *onceCmd) Args() []any { c.read.Store(true); return c.Cmd.Args() }

// Request is for a [Client] that is no Redis: the script's name, the lock's, and the attempt.
func (c *onceCmd) Request() (_, _ string, _ uint64) {
	c.read.Store(true)
	return c.script.name, c.lock.name, c.attempt
}

// reply is what a script says of one lock.
type reply struct {
	kind   int64
	epoch  int64         // of replyHeld; of a renewal: the server's clock, in microseconds
	ttl    time.Duration // of replyWaiting: the time until the lock expires
	others int64         // of replyHeld: other processes that wait
}

// Kinds of replies. Dropped: the attempt is over, or unknown, and nothing was done. Waiting: it is
// queued, or released.
const replyDropped, replyHeld, replyWaiting = 0, 1, 2

// maxTTL, in milliseconds, fits into a time.Duration.
const maxTTL = 1 << 40

// parseReply reads a list, or a kind by itself. A larger number by itself is the epoch of replyHeld: it takes
// less time to write and to read than a list.
func parseReply(v any, err error) (reply, error) {
	fields, list := v.([]any)
	if !list {
		fields = []any{v}
	}
	n, ok := [3]int64{}, len(fields) <= 3
	for i := 0; ok && i < len(fields); i++ {
		n[i], ok = fields[i].(int64)
	}
	if !list && n[0] > replyWaiting {
		n = [3]int64{replyHeld, n[0]}
	}
	if err == nil && (!ok || n[0] < replyDropped || n[0] > replyWaiting || n[0] == replyHeld && n[1] < 0) {
		err = fmt.Errorf("redislock: unexpected reply %v", v)
	}
	return reply{n[0], n[1], time.Duration(min(max(n[1], 0), maxTTL)) * time.Millisecond, n[2]}, err
}

// bounded is the context of a request. It has the values of the caller's context, such as the span
// of a trace, and outlives it. The deadline bounds reads and writes of a connection. There is no
// timer, because it would take longer than the rest of the Locker's work for a request. A wait for a
// connection ends when its asker gives up, or after the client's PoolTimeout.
type bounded struct {
	context.Context
	deadline time.Time
}

func (b bounded) Deadline() (time.Time, bool) { return b.deadline, true }

// server sends the requests of one Locker to Redis.
type server struct {
	client Client
	id     string // the Locker's: its label and 128 random bits
	inTime bool   // the client ends a request with its deadline
}

func newServer(client Client, label string) server {
	one, ok := client.(interface{ Options() *redis.Options })
	many, cluster := client.(interface{ Options() *redis.ClusterOptions })
	inTime := ok && one.Options().ContextTimeoutEnabled || cluster && many.Options().ContextTimeoutEnabled
	return server{client, label + "~" + rand.Text(), inTime}
}

func (s server) channel() string { return "redislock:" + s.id }

// node returns the address of the node of a Cluster that has a lock, or "" if it is not known. It asks nobody,
// because it is called with Locker.mu held.
func (s server) node(n *lock) string {
	if c, ok := s.client.(interface {
		MasterForKey(context.Context, string) (*redis.Client, error)
	}); ok { // of a *redis.ClusterClient
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if node, err := c.MasterForKey(ctx, n.keys[0].(string)); err == nil {
			return node.Options().Addr
		}
	}
	return ""
}

// command returns the command that runs a script, with the lock's keys, the attempt, and the other
// arguments that the script's header lists. They are few, because each one takes time.
func (s server) command(sc *script, n *lock, attempt uint64, more ...any) *onceCmd {
	args := append(append(make([]any, 0, 8+len(more)), "evalsha", sc.sha, sc.keys), n.keys[:sc.keys]...)
	args = append(append(args, s.id+" "+strconv.FormatUint(attempt, 10)), more...)
	return &onceCmd{Cmd: *redis.NewCmd(context.Background(), args...), script: sc, lock: n, attempt: attempt}
}

// do runs a script in Redis, and reads the reply.
func (s server) do(ctx context.Context, sc *script, n *lock, attempt uint64, more ...any) (reply, error) {
	cmd := s.command(sc, n, attempt, more...)
	s.send(ctx, cmd)
	return parseReply(cmd.Result())
}

// send sends scripts' hashes. Of scripts that Redis does not know it sends the source, with one of their commands
// each, and then the hashes of the others again. Each command has its own error.
func (s server) send(ctx context.Context, cmds ...redis.Cmder) {
	s.sendOnce(ctx, cmds)
	var sources, others []redis.Cmder
	sent := map[*script]bool{}
	for _, cmd := range cmds {
		c := cmd.(*onceCmd)
		if c.Err() == nil || !redis.HasErrorPrefix(c.Err(), "NOSCRIPT") {
			continue
		}
		if args := c.Cmd.Args()[2:]; sent[c.script] {
			c.Cmd = *redis.NewCmd(ctx, append([]any{"evalsha", c.script.sha}, args...)...)
			others = append(others, c)
		} else {
			c.Cmd = *redis.NewCmd(ctx, append([]any{"eval", c.script.source}, args...)...)
			sources, sent[c.script] = append(sources, c), true
		}
	}
	s.sendOnce(ctx, sources)
	s.sendOnce(ctx, others)
}

func (s server) sendOnce(ctx context.Context, cmds []redis.Cmder) {
	if len(cmds) == 0 {
		return
	}
	err := s.process(ctx, cmds...)
	for _, cmd := range cmds {
		c := cmd.(*onceCmd)
		if err != nil && (len(cmds) == 1 || c.Err() == nil && c.Val() == nil) {
			c.SetErr(err) // also that of a hook
		}
		if c.Err() != nil && !c.read.Load() {
			c.SetErr(fmt.Errorf("%w: %w", errNotSent, c.Err()))
		}
	}
}

// process sends commands, several of them in a pipeline. A panic in a hook of the client is returned as an error.
func (s server) process(ctx context.Context, cmds ...redis.Cmder) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{v}
		}
	}()
	if len(cmds) == 1 {
		return s.client.Process(ctx, cmds[0])
	}
	pipeline := s.client.Pipeline()
	_ = pipeline.BatchProcess(ctx, cmds...)
	_, err = pipeline.Exec(ctx)
	return err
}
