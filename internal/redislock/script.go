package redislock

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Client is what the lock needs of a go-redis client. *redis.Client (also one made
// for Sentinel), *redis.ClusterClient, *redis.Ring and redis.UniversalClient have it.
type Client interface {
	processor
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
}

var (
	//go:embed take.lua
	takeSource string
	//go:embed common.lua
	commonSource string
	//go:embed acquire_free.lua
	acquireFreeSource string
	//go:embed acquire.lua
	acquireSource string
	//go:embed release_unwanted.lua
	releaseUnwantedSource string
	//go:embed release.lua
	releaseSource string
	//go:embed cancel.lua
	cancelSource string
	//go:embed beat.lua
	beatSource string

	acquireFreeScript     = redis.NewScript(takeSource + acquireFreeSource)
	releaseUnwantedScript = redis.NewScript(releaseUnwantedSource)
	acquireScript         = redis.NewScript(takeSource + commonSource + acquireSource)
	releaseScript         = redis.NewScript(takeSource + commonSource + releaseSource)
	cancelScript          = redis.NewScript(takeSource + commonSource + cancelSource)
	beatScript            = redis.NewScript(takeSource + commonSource + beatSource)
)

// keysOf returns a lock's keys in the order in which the scripts take them.
func keysOf(key string) []string {
	k := Keys("", key)
	return []string{k.Lock, k.Queue, k.Waiters, k.Epoch}
}

// reply is what a script says of one lock.
type reply struct {
	kind   int64
	epoch  int64         // of replyHeld
	others int64         // of replyHeld: other processes that wait
	ttl    time.Duration // of replyWaiting: how long the lock lives as it is
}

// wanted says whether it shows that others want the lock, too.
func (r reply) wanted() bool { return r.kind == replyDropped || r.ttl > 0 || r.others > 0 }

const (
	replyNotHeld = 0
	replyHeld    = 1
	replyWaiting = 2
	replyDropped = 3 // or: nothing was done
	replyFailed  = 4
)

// maxTTL, in milliseconds, is far from what a time.Duration cannot hold.
const maxTTL = 1 << 40

func replyOf(cmd *redis.Cmd) (reply, error) {
	v, err := cmd.Result()
	if err != nil {
		return reply{}, err
	}
	return parseReply(v)
}

// parseReply reads a list, or a number: the kind alone, or the epoch of a lock that is held and that
// nobody else waits for.
func parseReply(v any) (reply, error) {
	switch n, _ := v.(int64); {
	case n > replyFailed:
		return reply{kind: replyHeld, epoch: n}, nil
	case v == int64(replyNotHeld) || n == replyWaiting || n == replyDropped || n == replyFailed:
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

// bounded is a context with an earlier deadline than its parent's for what goes over a connection. It has no
// timer, which would take longer than all else that the Locker does for a request: it ends with its parent, and a wait
// for a connection of the pool is bounded by the client's own PoolTimeout.
type bounded struct {
	context.Context
	deadline time.Time
}

func (b bounded) Deadline() (time.Time, bool) { return b.deadline, true }

// server speaks to Redis for one Locker.
type server struct {
	client  Client
	id      string // the Locker's: 128 random bits
	trusted string // "1" where PUBLISH counts all receivers
	batches bool   // one script may touch the keys of several locks
	lease   string // in milliseconds
}

func newServer(client Client, lease time.Duration) server {
	s := server{client: client, id: rand.Text(), trusted: "0", lease: strconv.FormatInt(lease.Milliseconds(), 10)}
	// In a cluster or a ring, PUBLISH counts only one node's receivers, and keys of
	// different locks live on different nodes.
	if _, single := client.(*redis.Client); single {
		s.trusted, s.batches = "1", true
	}
	return s
}

func (s server) channel() string { return "redislock:" + s.id }

// holder is how an attempt is named in the lock.
func (s server) holder(attempt uint64) string { return s.id + " " + strconv.FormatUint(attempt, 10) }

// acquireFree is acquire for a lock that nobody else wants. Where somebody does, it does nothing, and says replyDropped.
func (s server) acquireFree(ctx context.Context, n *name, attempt uint64) (reply, error) {
	return replyOf(acquireFreeScript.Run(ctx, once{s.client}, []string{n.keys[0], n.keys[2], n.keys[3]}, s.holder(attempt), s.lease))
}

// acquire queues, if it is to, behind all who have waited for longer.
func (s server) acquire(ctx context.Context, n *name, attempt uint64, queueUp bool, waited time.Duration) (reply, error) {
	place := ""
	if queueUp {
		place = strconv.FormatInt(waited.Microseconds(), 10)
	}
	return replyOf(acquireScript.Run(ctx, once{s.client}, n.keys, s.id, attempt, s.lease, n.key, place, s.trusted))
}

// releaseUnwanted is release for a lock that nobody else wants, likewise.
func (s server) releaseUnwanted(ctx context.Context, n *name, attempt uint64) (reply, error) {
	return replyOf(releaseUnwantedScript.Run(ctx, once{s.client}, n.keys[:2], s.holder(attempt)))
}

// release queues for the next attempt, if there is one, likewise.
func (s server) release(ctx context.Context, n *name, attempt, next uint64, waited time.Duration) (reply, error) {
	again := ""
	if next != 0 {
		again = strconv.FormatUint(next, 10)
	}
	return replyOf(releaseScript.Run(ctx, once{s.client}, n.keys, s.id, attempt, s.lease, n.key, again, waited.Microseconds(), s.trusted))
}

func (s server) cancel(ctx context.Context, n *name, attempt uint64) error {
	return cancelScript.Run(ctx, once{s.client}, n.keys, s.id, attempt, n.key, s.trusted).Err()
}

// beat is one renewal of a hold or of a place in a queue.
type beat struct {
	name    *name
	attempt uint64
	hold    bool
}

// maxBatch is how many locks one script renews: so few that no other client
// waits for long.
const maxBatch = 100

func (s server) beat(ctx context.Context, beats []beat) ([]reply, error) {
	keys := make([]string, 0, 4*len(beats))
	args := make([]any, 0, 2+4*len(beats))
	args = append(args, s.id, s.trusted)
	for _, b := range beats {
		kind := "wait"
		if b.hold {
			kind = "hold"
		}
		keys = append(keys, b.name.keys...)
		args = append(args, kind, b.attempt, s.lease, b.name.key)
	}
	v, err := beatScript.Run(ctx, once{s.client}, keys, args...).Slice()
	if err != nil {
		return nil, err
	}
	if len(v) != len(beats) {
		return nil, fmt.Errorf("redislock: %d replies for %d locks", len(v), len(beats))
	}
	replies := make([]reply, len(v))
	for i := range v {
		if replies[i], err = parseReply(v[i]); err != nil {
			return nil, err
		}
	}
	return replies, nil
}
