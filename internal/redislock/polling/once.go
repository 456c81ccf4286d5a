package polling

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// processor is a go-redis client that accepts commands made elsewhere. All kinds of clients do.
type processor interface {
	redis.Scripter
	Process(ctx context.Context, cmd redis.Cmder) error
}

// once sends requests that change a lock once, whatever the client's MaxRetries. A request that is
// sent again after its answer was lost may be carried out twice, the second time when another
// holder has the lock. Then two can believe that they hold it. The lock's own repeats allow for a
// first request that worked.
type once struct{ processor }

// onceCmd is a command that go-redis does not retry.
type onceCmd struct{ *redis.Cmd }

func (onceCmd) NoRetry() bool { return true }

func (o once) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	return o.eval(ctx, "evalsha", sha, keys, args)
}

func (o once) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return o.eval(ctx, "eval", script, keys, args)
}

func (o once) eval(ctx context.Context, command, script string, keys []string, args []any) *redis.Cmd {
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, command, script, len(keys))
	for _, key := range keys {
		all = append(all, key)
	}
	cmd := redis.NewCmd(ctx, append(all, args...)...)
	cmd.SetFirstKeyPos(3) // for the clients that go by a key's slot
	_ = o.Process(ctx, onceCmd{cmd})
	return cmd
}

// setNX sets a key that does not exist, and says whether it did.
func (o once) setNX(ctx context.Context, key, value string, lease time.Duration) (bool, error) {
	cmd := redis.NewCmd(ctx, "set", key, value, "px", lease.Milliseconds(), "nx")
	err := o.Process(ctx, onceCmd{cmd})
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, err
}
