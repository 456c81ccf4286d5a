package program

import (
	"cmp"
	"io"
	"log/slog"
	"time"

	"github.com/alecthomas/kong"

	"stocklock/internal/redislock"
	"stocklock/internal/shop"
	"stocklock/internal/strategy"
)

// lockSettings are the settings of locks in Redis. A copy without locks has none.
type lockSettings struct {
	Redis     string        `env:"SHOP_REDIS" placeholder:"URL" help:"Where Redis or Valkey is: redis://user:password@host:6379/0, rediss:// for TLS, ?cluster=true for a node of Redis Cluster, ?master_name=NAME for a Sentinel. Without it redis://127.0.0.1:6379/0."`
	RedisFile string        `env:"SHOP_REDIS_FILE" placeholder:"PATH" help:"A file with what --redis is."`
	Lease     time.Duration `env:"SHOP_LEASE" default:"${lease}" min:"50ms" max:"1m" help:"How long a lock lives in Redis without renewal."`
	RedisPool int           `env:"SHOP_REDIS_POOL" default:"128" min:"1" max:"10000" help:"How many connections this process opens at most to each Redis server. Subscriptions and probes take a few more. The sum over all shops must stay below maxclients."`
}

var lockDefaults = kong.Vars{"lease": redislock.DefaultLease.String()}

// open opens the client for strategies.
func (l *lockSettings) open(log *slog.Logger, deps *strategy.Deps) (io.Closer, error) {
	shop.RedisLog(log)
	if err := readSecret("--redis-file (SHOP_REDIS_FILE)", l.RedisFile, &l.Redis); err != nil {
		return nil, err
	}
	client, err := shop.OpenRedis(cmp.Or(l.Redis, "redis://127.0.0.1:6379/0"), l.RedisPool)
	if err != nil {
		return nil, usage("--redis (SHOP_REDIS): %w", err)
	}
	deps.Redis, deps.Lease = client, l.Lease
	return client, nil
}
