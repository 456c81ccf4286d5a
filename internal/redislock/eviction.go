package redislock

import "github.com/redis/go-redis/v9"

// askForEviction asks Redis whether it may delete locks for want of memory, and tells the hook. That
// it may not be asked is no error.
func (l *Locker) askForEviction() {
	info := redis.NewInfoCmd(l.ctx, "info", "memory")
	if l.opts.Hooks.Evicts == nil || l.server.client.Process(l.ctx, info) != nil {
		return
	}
	if policy := info.Item("Memory", "maxmemory_policy"); policy != "" && policy != "noeviction" {
		l.opts.Hooks.Evicts(policy)
	}
}
