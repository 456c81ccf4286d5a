package shop

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// The client's timeouts for Redis. All are shorter than a production lease, so that a holder
// notices a Redis that hangs while it still has its lock.
const (
	redisDialTimeout = 2 * time.Second
	redisIOTimeout   = 2 * time.Second
	redisPoolTimeout = 3 * time.Second
)

// RedisPoolSize is the default number of connections to one Redis server. It bounds how many
// waiters of polled locks use Redis at once. Each does so for a fraction of a millisecond at each
// retry.
const RedisPoolSize = 128

// OpenRedis prepares a client for one of the URLs below, with rediss instead of redis for TLS. It
// opens at most poolSize connections to each server. Subscriptions and probes have further
// connections of their own. OpenRedis does not connect. Errors never contain the URL, which may
// hold a password.
//
//	redis://user:password@host:6379/0                              one server
//	redis://host:6379?cluster=true&addr=host2:6379                 Redis Cluster, one or more of its nodes
//	redis://host:26379?master_name=main&addr=host2:26379           Sentinel: user:password@ is for the Sentinels,
//	                                                               &username=&password= for the servers
func OpenRedis(rawURL string, poolSize int) (redis.UniversalClient, error) {
	o, err := parseRedisURL(rawURL)
	if err != nil {
		return nil, errRedisURL
	}
	// A command that is sent twice after a lost answer is ambiguous: the second SET NX finds the
	// lock of the first and takes it for another holder's. (A client of Redis Cluster still repeats
	// commands when it follows redirections.)
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.ContextTimeoutEnabled = true
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = redisDialTimeout, redisIOTimeout, redisIOTimeout
	o.PoolSize, o.PoolTimeout = poolSize, redisPoolTimeout
	// Only one vendor's servers know this handshake. On others it is noise.
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if o.IsClusterMode {
		cluster := o.Cluster()
		// Otherwise a single request can wait for seconds past its deadline for COMMAND, from a node that it does not concern.
		cluster.DisableRoutingPolicies = true
		return redis.NewClusterClient(cluster), nil
	}
	return redis.NewUniversalClient(o), nil
}

// The cause is left out, because it quotes the unreadable part, which may be the password.
var errRedisURL = errors.New("the Redis URL cannot be read: want redis://user:password@host:6379/0, " +
	"or rediss:// for TLS, with special characters of the password as %XX")

func parseRedisURL(rawURL string) (*redis.UniversalOptions, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, err
	}
	query := u.Query()
	cluster := query.Get("cluster") == "true"
	query.Del("cluster")
	u.RawQuery = query.Encode()
	switch {
	case query.Has("master_name"):
		o, err := redis.ParseFailoverURL(u.String())
		if err != nil {
			return nil, err
		}
		return &redis.UniversalOptions{
			Addrs: o.SentinelAddrs, MasterName: o.MasterName, DB: o.DB, TLSConfig: anyServer(o.TLSConfig),
			SentinelUsername: o.SentinelUsername, SentinelPassword: o.SentinelPassword,
			Username: o.Username, Password: o.Password,
		}, nil
	case cluster:
		o, err := redis.ParseClusterURL(u.String())
		if err != nil {
			return nil, err
		}
		return &redis.UniversalOptions{
			Addrs: o.Addrs, IsClusterMode: true, TLSConfig: anyServer(o.TLSConfig), Username: o.Username, Password: o.Password,
		}, nil
	}
	o, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, err
	}
	return &redis.UniversalOptions{
		Addrs: []string{o.Addr}, DB: o.DB, TLSConfig: o.TLSConfig, Username: o.Username, Password: o.Password,
	}, nil
}

// anyServer requires of every server a certificate of its own name. Otherwise all would need that
// of the URL.
func anyServer(c *tls.Config) *tls.Config {
	if c != nil {
		c.ServerName = ""
	}
	return c
}

// apart returns a client of the same servers with connections of its own.
func apart(client redis.UniversalClient) redis.UniversalClient {
	switch c := client.(type) {
	case *redis.Client:
		o := *c.Options()
		o.MaxIdleConns = 1
		return redis.NewClient(&o)
	case *redis.ClusterClient:
		o := *c.Options()
		o.MaxIdleConns = 1
		return redis.NewClusterClient(&o)
	}
	return client
}

// serversOf returns the address of a client's servers, for people, and how many connections the client
// opens at most to each.
func serversOf(client redis.UniversalClient) (addr string, poolSize int) {
	switch c := client.(type) {
	case *redis.Client:
		return c.Options().Addr, c.Options().PoolSize
	case *redis.ClusterClient:
		return strings.Join(c.Options().Addrs, ","), c.Options().PoolSize
	}
	return "unknown", 0
}

// RedisLog sends the messages of go-redis to log, at debug level. All that matters is returned as
// an error, too.
func RedisLog(log *slog.Logger) { redis.SetLogger(redisLog{log}) }

type redisLog struct{ *slog.Logger }

func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	if l.Enabled(ctx, slog.LevelDebug) {
		l.DebugContext(ctx, "go-redis", "message", fmt.Sprintf(format, v...))
	}
}
