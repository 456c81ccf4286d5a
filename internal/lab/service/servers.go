package service

import (
	"context"
	"fmt"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/redisconn"
)

// Redis looks into the service's Redis, without a proxy. It is another one after FailOver, and nil
// for a service that ran already.
func (s *Service) Redis() redisconn.Client {
	if s.servers == nil {
		return nil
	}
	return s.servers.Redis().Client
}

// InDatabase sends a command to the database of Redis that the service uses.
func (s *Service) InDatabase(ctx context.Context, command ...any) redisconn.Reply {
	replies, err := s.Redis().Pipeline(ctx, redisconn.Command{"SELECT", s.Processes[0].Redis.Database()}, command, redisconn.Command{"SELECT", 0})
	if err != nil {
		return redisconn.Reply{Err: err}
	}
	return redisconn.Reply{Value: replies[1].Value}
}

// HoldBackReplication waits until the replica has what Redis has, and keeps from it what comes then.
func (s *Service) HoldBackReplication(ctx context.Context) error {
	if err := s.servers.RestoreReplica(ctx); err != nil { // after another failover
		return err
	}
	// WAIT is about what its own connection has written.
	replies, err := s.Redis().Pipeline(ctx,
		redisconn.Command{"SET", marker, ""}, redisconn.Command{"WAIT", 1, replicaPatience.Milliseconds()}, redisconn.Command{"DEL", marker})
	switch {
	case err != nil:
		return err
	case replies[1].Value == int64(0):
		return fmt.Errorf("the replica of Redis is not in sync after %s", replicaPatience)
	}
	return s.servers.HoldBackReplication()
}

const (
	marker          = "loadtest:in-sync"
	replicaPatience = 5 * time.Second
)

// FailOver kills Redis, and leads the service to the replica, which has what came before
// HoldBackReplication.
func (s *Service) FailOver(ctx context.Context) error {
	err := s.servers.FailOver(ctx)
	s.lead()
	return err
}

// RestartRedis kills Redis, and starts it again without its data.
func (s *Service) RestartRedis(ctx context.Context) error {
	err := s.servers.RestartRedis(ctx)
	s.lead()
	return err
}

// lead leads the service to the primary as it is now.
func (s *Service) lead() {
	for _, p := range s.all() {
		p.Redis.Lead(s.servers.Redis().Addr)
	}
}

// Evict fills the memory of Redis until it has evicted these keys of its database 0, and reports whether there
// were any.
func (s *Service) Evict(ctx context.Context, keys []string) (bool, error) {
	return rig.Evict(ctx, s.servers.Redis(), keys)
}
