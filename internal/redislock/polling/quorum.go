package polling

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/redislock"
)

// NewQuorum returns a locker that needs a majority of independent Redis servers, after the Redlock
// algorithm (redis.io, Distributed Locks with Redis). A minority can be lost without a second
// holder. Three or five servers are usual. They must not be replicas of each other. NewQuorum
// panics without clients.
//
// Each server has a timeout of its own, a fifth of the lease, so a slow or dead server does not
// delay the others. A failed try deletes its value on all servers. There is no fencing token,
// because independent servers have no common counter.
func NewQuorum[C redislock.Client](clients []C, o Options) *Locker {
	if len(clients) == 0 {
		panic("redislock: NewQuorum without clients")
	}
	o = o.withDefaults()
	nodes := make([]redislock.Client, len(clients))
	for i, c := range clients {
		nodes[i] = c
	}
	return newLocker(quorumStore{nodes, o.margin(), max(o.Lease/5, 10*time.Millisecond)}, o)
}

// errNoMajority: too few servers answered for a decision. Another try may succeed.
var errNoMajority = errors.New("redislock: no majority of the servers answered")

// quorumStore asks all servers at once and follows the majority.
type quorumStore struct {
	nodes   []redislock.Client
	drift   time.Duration // subtracted from each validity, for clocks that run at different rates
	timeout time.Duration // of each server
}

var (
	//go:embed compare_extend.lua
	compareExtend string
	//go:embed compare_delete.lua
	compareDelete string
)

func (s quorumStore) set(ctx context.Context, key, value string, lease time.Duration) (time.Duration, bool, error) {
	ok, err := s.majority(ctx, func(ctx context.Context, n redislock.Client) (bool, error) {
		set := send(ctx, n, "set", key, value, "px", lease.Milliseconds(), "nx")
		if errors.Is(set.Err(), redis.Nil) {
			return false, nil // another holder's value is there
		}
		return set.Err() == nil, set.Err()
	})
	if !ok {
		// A value on a minority must not block others for a lease.
		s.drop(context.WithoutCancel(ctx), key, value)
	}
	return lease - s.drift, ok, err
}

func (s quorumStore) extend(ctx context.Context, key, value string, lease time.Duration) (time.Duration, bool, error) {
	ok, err := s.majority(ctx, func(ctx context.Context, n redislock.Client) (bool, error) {
		return run(ctx, n, compareExtend, key, value, lease.Milliseconds())
	})
	return lease - s.drift, ok, err
}

func (s quorumStore) drop(ctx context.Context, key, value string) (bool, error) {
	return s.majority(ctx, func(ctx context.Context, n redislock.Client) (bool, error) {
		return run(ctx, n, compareDelete, key, value)
	})
}

// run runs a script on one key. It sends the script's hash, and the script itself if the server does
// not know the hash.
func run(ctx context.Context, n redislock.Client, script, key string, args ...any) (bool, error) {
	cmd := send(ctx, n, append([]any{"evalsha", redis.NewScript(script).Hash(), 1, key}, args...)...)
	if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		cmd = send(ctx, n, append([]any{"eval", script, 1, key}, args...)...)
	}
	return cmd.Bool()
}

// onceCmd is a command that go-redis does not retry, for the reason that redislock's own has: a
// repeat may be carried out when another holder has the lock.
type onceCmd struct{ *redis.Cmd }

func (onceCmd) NoRetry() bool { return true }

func send(ctx context.Context, n redislock.Client, args ...any) *redis.Cmd {
	cmd := redis.NewCmd(ctx, args...)
	_ = n.Process(ctx, onceCmd{cmd}) // the command keeps its error
	return cmd
}

// majority asks all servers at once and reports whether more than half said yes. It returns as soon
// as that is certain, and does not wait for slow servers. It returns an error if servers that did
// not answer could have changed the result.
func (s quorumStore) majority(ctx context.Context, ask func(context.Context, redislock.Client) (bool, error)) (bool, error) {
	type answer struct {
		yes bool
		err error
	}
	answers := make(chan answer, len(s.nodes))
	for _, n := range s.nodes {
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
			defer cancel()
			yes, err := ask(ctx, n)
			answers <- answer{yes, err}
		}()
	}
	// A client that ignores its context must not delay the result either.
	patience := time.NewTimer(s.timeout)
	defer patience.Stop()
	needed := len(s.nodes)/2 + 1
	yes, no := 0, 0
	var errs []error
	for yes < needed && no < needed && yes+no+len(errs) < len(s.nodes) {
		select {
		case a := <-answers:
			switch {
			case a.err != nil:
				errs = append(errs, a.err)
			case a.yes:
				yes++
			default:
				no++
			}
		case <-patience.C:
			return false, errors.Join(append(errs, errNoMajority)...)
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	if yes >= needed || len(s.nodes)-no < needed {
		return yes >= needed, nil
	}
	return false, errors.Join(append(errs, errNoMajority)...)
}
