package redislock

import (
	"strings"

	"github.com/redis/go-redis/v9"
)

// askForEviction asks Redis once, in the background, whether it may delete locks for want of memory, and tells
// the hook. That it may not be asked is no error.
func (l *Locker) askForEviction() {
	hook := l.opts.Hooks.Evicts
	if hook == nil {
		return
	}
	l.mu.Lock()
	defer l.unlock()
	if l.asked || l.closed {
		return
	}
	l.asked = true
	l.work.Add(1)
	go func() {
		defer l.work.Done()
		info := redis.NewStringCmd(l.ctx, "info", "memory")
		if l.server.client.Process(l.ctx, info) != nil {
			return
		}
		for line := range strings.Lines(info.Val()) {
			policy, is := strings.CutPrefix(strings.TrimSpace(line), "maxmemory_policy:")
			if is && policy != "noeviction" {
				hook(policy)
			}
		}
	}()
}
