package shop

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"stocklock/internal/redislock"
	"stocklock/internal/strategy"
)

// locks is what a shop has of Redis. A copy without locks has a type that does nothing.
type locks struct {
	client     redis.UniversalClient
	probe      redis.UniversalClient // one connection for probes, which must not wait for those of sales
	handoffs   *prometheus.CounterVec
	renewals   prometheus.Counter
	losses     prometheus.Counter
	unreleased prometheus.Counter
	jumps      prometheus.Counter
}

// newLocks adds hooks to deps. They count the events of the reference lock, and log what no client can prevent. Wait and
// hold are measured by sale, as for any lock.
func newLocks(deps *strategy.Deps, log *slog.Logger) *locks {
	l := &locks{
		probe: apart(deps.Redis), client: deps.Redis,
		handoffs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shop_lock_handoffs_total",
			Help: "Locks taken, by where they came from: free, local (passed on in this process) or remote (passed on by Redis).",
		}, []string{"from"}),
		renewals: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "shop_lock_renewals_total", Help: "Leases that were renewed while their holder worked.",
		}),
		losses: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "shop_lock_losses_total", Help: "Locks that were lost while they were held.",
		}),
		unreleased: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "shop_lock_release_failures_total", Help: "Releases that failed: the lock was gone, or Redis did not answer.",
		}),
		jumps: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "shop_lock_clock_jumps_total", Help: "Times that the clock of Redis was ahead of where it was: set forward, or another server's. Leases may have ended sooner.",
		}),
	}
	for _, from := range []redislock.Handoff{redislock.Free, redislock.Local, redislock.Remote} {
		l.handoffs.WithLabelValues(string(from)) // shown as 0 from the beginning
	}
	hooks := &deps.Hooks
	hooks.Acquired = both(func(e redislock.Event) { l.handoffs.WithLabelValues(string(e.From)).Inc() }, hooks.Acquired)
	hooks.Renewed = both(func(redislock.Event) { l.renewals.Inc() }, hooks.Renewed)
	hooks.Lost = both(func(redislock.Event) { l.losses.Inc() }, hooks.Lost)
	hooks.Released = both(func(e redislock.Event) {
		if e.Err != nil {
			l.unreleased.Inc()
		}
	}, hooks.Released)
	evicts, jumped := hooks.Evicts, hooks.ClockJumped
	hooks.Evicts = func(policy string) {
		log.Error("Redis may delete locks when it is out of memory: set its maxmemory-policy to noeviction", "policy", policy)
		if evicts != nil {
			evicts(policy)
		}
	}
	hooks.ClockJumped = func(by time.Duration) {
		l.jumps.Inc()
		log.Error("the clock of Redis jumped forward, or another server has the locks: leases may have ended sooner than their holders know", "by", by.String())
		if jumped != nil {
			jumped(by)
		}
	}
	return l
}

// both counts an event, and then calls the hook that was there.
func both(count func(redislock.Event), hook func(context.Context, redislock.Event)) func(context.Context, redislock.Event) {
	return func(ctx context.Context, e redislock.Event) {
		count(e)
		if hook != nil {
			hook(ctx, e)
		}
	}
}

func (l *locks) Close() error { return l.probe.Close() }

// dependency is the Redis of the locks.
func (l *locks) dependency() *dependency {
	addr, _ := serversOf(l.client)
	return &dependency{name: "redis", where: addr, ping: canLock(l.probe)}
}

// canLock writes a key of its own, which expires, on a connection of its own. A PING is not enough:
// the Redis that answers it may be read-only, out of memory, without a cluster, or closed to this
// user.
func canLock(client redis.UniversalClient) func(context.Context) error {
	return func(ctx context.Context) error {
		return client.Set(ctx, probeKey, "1", probeExpiry).Err()
	}
}

const (
	probeKey    = "stock:probe" // within the keys that SECURITY.md grants
	probeExpiry = 10 * time.Second
)

// collectors show the events of locks, and the saturation of the connections to Redis.
func (l *locks) collectors() []prometheus.Collector {
	_, most := serversOf(l.client)
	pool, connections := l.client.PoolStats, "Connections to Redis, by whether they are in use."
	return []prometheus.Collector{
		l.handoffs, l.renewals, l.losses, l.unreleased, l.jumps,
		newGauge("redis_pool_connections", connections, prometheus.Labels{"state": "idle"}, func() float64 { return float64(pool().IdleConns) }),
		newGauge("redis_pool_connections", connections, prometheus.Labels{"state": "used"}, func() float64 {
			stats := pool()
			return float64(stats.TotalConns - min(stats.IdleConns, stats.TotalConns))
		}),
		newGauge("redis_pool_connections_max", "Connections that may be open to one Redis server.", nil, func() float64 { return float64(most) }),
		newCounter("redis_pool_waits_total", "Commands that waited for a connection.", func() float64 { return float64(pool().WaitCount) }),
		newCounter("redis_pool_wait_seconds_total", "Time that commands waited for a connection.", func() float64 { return time.Duration(pool().WaitDurationNs).Seconds() }),
		newCounter("redis_pool_timeouts_total", "Commands that got no connection in time.", func() float64 { return float64(pool().Timeouts) }),
	}
}

// lockAnswers are the answers to the errors of locks.
var lockAnswers = []answerTo{
	{redislock.ErrLost, LockLost, "the lock was lost before anything was written: nothing was sold"},
	{redislock.ErrUnavailable, Unavailable, errNotNow.detail},
	{redislock.ErrClosed, ShuttingDown, "the shop is shutting down: nothing was sold"},
}

// redisUnreachable reports whether err means that Redis cannot work now.
func redisUnreachable(err error) bool {
	return errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrClosed) ||
		redis.IsLoadingError(err) || redis.IsReadOnlyError(err) || redis.IsMasterDownError(err) ||
		redis.IsClusterDownError(err) || redis.IsTryAgainError(err) || redis.IsMaxClientsError(err) ||
		redis.IsAuthError(err) || redis.IsPermissionError(err) ||
		redis.IsOOMError(err) || redis.IsNoReplicasError(err) ||
		redis.HasErrorPrefix(err, "MISCONF") || redis.HasErrorPrefix(err, "BUSY")
}

// redisAdvice tells an operator what to do about Redis, or returns "".
func redisAdvice(err error) string {
	for _, a := range []struct {
		is   bool
		text string
	}{
		{redis.IsReadOnlyError(err), "Redis is a replica: point SHOP_REDIS at the primary"},
		{redis.IsOOMError(err), "Redis is out of memory: raise maxmemory, or let keys expire"},
		{redis.IsNoReplicasError(err), "Redis has fewer replicas than min-replicas-to-write: bring them back"},
		{redis.HasErrorPrefix(err, "MISCONF"), "Redis cannot write its snapshot: free disk space, or see its log"},
		{redis.HasErrorPrefix(err, "BUSY"), "a script occupies Redis: SCRIPT KILL ends it"},
		{redis.IsAuthError(err), "Redis refuses the user or its password: correct SHOP_REDIS"},
		{redis.IsPermissionError(err), "Redis refuses a command to this user: grant the rights of SECURITY.md"},
		{redis.IsMaxClientsError(err), "Redis has too many clients: raise maxclients"},
		{redis.IsClusterDownError(err), "the Redis Cluster is down: bring its masters back"},
	} {
		if a.is {
			return a.text
		}
	}
	return ""
}
