package shop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// How long the client waits for Redis. All are shorter than a production lease,
// so that a holder notices a Redis that hangs while its lock still lives.
const (
	redisDialTimeout = 2 * time.Second
	redisIOTimeout   = 2 * time.Second
	redisPoolTimeout = 3 * time.Second
)

// redisPoolSize bounds how many waiters of polled locks talk to Redis in the
// same moment; each does so for a fraction of a millisecond, every retry.
const redisPoolSize = 128

// OpenRedis prepares a client for a URL such as redis://user:password@host:6379/0,
// or rediss:// for TLS. It does not connect. Errors never contain the URL, which
// may hold a password.
func OpenRedis(rawURL string) (redis.UniversalClient, error) {
	o, err := redis.ParseURL(rawURL)
	if err != nil {
		var parse *url.Error
		if errors.As(err, &parse) {
			err = parse.Err // the outer error quotes the URL
		}
		return nil, fmt.Errorf("the Redis URL cannot be read: %w: want redis://user:password@host:6379/0", err)
	}
	// A command that is sent twice after a lost answer is ambiguous: the second
	// SET NX finds the first one's lock and takes it for somebody else's.
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.ContextTimeoutEnabled = true
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = redisDialTimeout, redisIOTimeout, redisIOTimeout
	o.PoolSize, o.PoolTimeout = redisPoolSize, redisPoolTimeout
	// A handshake of one vendor's servers, noise on all others.
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(o), nil
}

// redisAddr says where a client connects to, for people.
func redisAddr(client redis.UniversalClient) string {
	if single, ok := client.(*redis.Client); ok {
		return single.Options().Addr
	}
	return "several servers"
}

// RedisLog makes go-redis say what it has to say to log, at debug level: whatever
// matters comes back as an error too.
func RedisLog(log *slog.Logger) { redis.SetLogger(redisLog{log}) }

type redisLog struct{ *slog.Logger }

func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	if l.Enabled(ctx, slog.LevelDebug) {
		l.DebugContext(ctx, "go-redis", "message", fmt.Sprintf(format, v...))
	}
}
