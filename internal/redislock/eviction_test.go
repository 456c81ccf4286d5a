package redislock

import (
	"testing"
	"time"
)

func TestEvictionIsTold(t *testing.T) {
	server, err := startServer("--maxmemory-policy", "volatile-lru")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.stop)
	told := make(chan string, 3)
	l, _ := newLockerAt(t, server.addr, Options{Hooks: Hooks{Evicts: func(policy string) { told <- policy }}})
	for range 3 {
		_, lease := acquire(t, l, within(t), t.Name())
		release(t, lease)
	}
	if policy := <-told; policy != "volatile-lru" {
		t.Errorf("the policy is %q", policy)
	}
	safe, _ := newLocker(t, Options{Hooks: Hooks{Evicts: func(policy string) { told <- policy }}})
	_, lease := acquire(t, safe, within(t), t.Name())
	release(t, lease)
	time.Sleep(200 * time.Millisecond)
	if len(told) > 0 {
		t.Errorf("it was told again, or of %q", <-told)
	}
}

// TestAPanicOfTheClientEndsNoProcess: nobody waits for the request whose hook panics.
func TestAPanicOfTheClientEndsNoProcess(t *testing.T) {
	client, _ := newClient(t, shared.addr)
	r := &refuser{command: "info", panic: true}
	r.says("on purpose")
	client.AddHook(r)
	l := closing(t, New(client, Options{Hooks: Hooks{Evicts: func(string) {}}}))
	_, lease := acquire(t, l, within(t), t.Name())
	eventually(t, "the policy was asked for", func() bool { return r.asked.Load() > 0 })
	release(t, lease)
}
