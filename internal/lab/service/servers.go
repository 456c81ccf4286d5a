package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/lab/rig"
)

// redisServers are a Redis with a replica behind it.
type redisServers struct {
	*rig.Testbed
	client *redis.Client // of the primary
}

func startRedis(ctx context.Context, r *rig.Rig) (*redisServers, error) {
	servers, err := r.Testbed(ctx, rig.TestbedOptions{Faults: true})
	if err != nil {
		return nil, err
	}
	return &redisServers{servers, looking(servers)}, nil
}

// lookTimeout is how late Redis may be with an answer to the lab: a machine with too much work is no failure.
const lookTimeout = 15 * time.Second

func looking(servers *rig.Testbed) *redis.Client {
	return servers.Redis().Client().WithTimeout(lookTimeout)
}

// Redis looks into the service's Redis, without a proxy. Its client is another one after FailOver and
// RestartRedis. It is nil for a service that ran already.
func (s *Service) Redis() *redis.Client {
	if s.servers == nil {
		return nil
	}
	return s.servers.client
}

// HoldBackReplication waits until the replica has what Redis has, and keeps from it what comes then.
func (s *Service) HoldBackReplication(ctx context.Context) error {
	if err := s.servers.RestoreReplica(ctx); err != nil { // after another failover
		return err
	}
	conn := s.servers.client.Conn()
	defer conn.Close()
	// WAIT is about what its own connection has written.
	if err := conn.Set(ctx, marker, "", 0).Err(); err != nil {
		return err
	}
	n, err := conn.Wait(ctx, 1, replicaPatience).Result()
	switch {
	case err != nil:
		return err
	case n < 1:
		return fmt.Errorf("the replica of Redis is not in sync after %s", replicaPatience)
	}
	return errors.Join(conn.Del(ctx, marker).Err(), s.servers.HoldBackReplication())
}

const (
	marker          = "loadtest:in-sync"
	replicaPatience = 5 * time.Second
)

// FailOver kills Redis, and leads the service to the replica, which has what came before
// HoldBackReplication.
func (s *Service) FailOver(ctx context.Context) error {
	return errors.Join(s.servers.FailOver(ctx), s.lead())
}

// RestartRedis kills Redis, and starts it again without its data.
func (s *Service) RestartRedis(ctx context.Context) error {
	return errors.Join(s.servers.RestartRedis(ctx), s.lead())
}

// lead leads the service, and who looks, to the primary as it is now.
func (s *Service) lead() error {
	for _, p := range s.Processes {
		p.Redis.Lead(s.servers.Redis().Addr)
	}
	before := s.servers.client
	s.servers.client = looking(s.servers.Testbed)
	return before.Close()
}

// Evict fills the memory of Redis until it has evicted these keys of its database 0, and reports whether there
// were any.
func (s *Service) Evict(ctx context.Context, keys []string) (bool, error) {
	return rig.Evict(ctx, s.servers.Redis(), keys)
}
