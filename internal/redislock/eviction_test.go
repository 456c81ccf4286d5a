package redislock

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestEvictionIsTold(t *testing.T) {
	told := make(chan string, 3)
	hooks := Hooks{Evicts: func(policy string) { told <- policy }}
	server, _ := ownServer(t, "--maxmemory-policy", "volatile-lru")
	first, _ := newClient(t, shared.addr)
	second, _ := newClient(t, server.addr)
	policy := ""
	for _, l := range []*redis.Client{first, second} {
		locker := New(l, Options{Hooks: hooks})
		for range 3 {
			_, lease := acquire(t, locker, within(t), t.Name())
			release(t, lease)
		}
		if l == second {
			policy = <-told
		}
		locker.Close(within(t))
	}
	if policy != "volatile-lru" || len(told) > 0 {
		t.Errorf("the policy is %q; it was told %d times more", policy, len(told))
	}
}

// TestAPanicOfTheClientEndsNoProcess: nobody waits for the request whose hook panics.
func TestAPanicOfTheClientEndsNoProcess(t *testing.T) {
	client, _ := newClient(t, shared.addr)
	r := &panicker{command: "info"}
	r.says("on purpose")
	client.AddHook(sees(r.see))
	l := closing(t, New(client, Options{Hooks: Hooks{Evicts: func(string) {}}}))
	_, lease := acquire(t, l, within(t), t.Name())
	eventually(t, "the policy was asked for", func() bool { return r.asked.Load() > 0 })
	release(t, lease)
}
