package redislock

import "github.com/redis/go-redis/v9"

// askForEviction asks Redis once, in the background, whether it may delete locks for want of
// memory, and tells the hook. That it may not be asked is no error.
func (l *Locker) askForEviction() {
	hook := l.opts.Hooks.Evicts
	if hook == nil {
		return
	}
	l.eviction.Do(func() {
		l.work.Go(func() { // Close still waits for the call that asks
			info := redis.NewInfoCmd(l.ctx, "info", "memory")
			if l.server.client.Process(l.ctx, info) != nil {
				return
			}
			if policy := info.Item("Memory", "maxmemory_policy"); policy != "" && policy != "noeviction" {
				hook(policy)
			}
		})
	})
}
