package redislock

import (
	"testing"
	"time"
)

// TestWantOfMemoryCostsNoHold: a server without memory refuses to note that somebody waits, and
// that is renewed together with what is held.
func TestWantOfMemoryCostsNoHold(t *testing.T) {
	redisServer, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	defer redisServer.stop()
	client, _ := newClient(t, redisServer.addr)
	s, holder := newPeer(client, time.Minute), newPeer(client, time.Minute)
	mine, theirs := lockOn("mine"), lockOn("theirs")
	for _, request := range []func() (reply, error){
		func() (reply, error) { return s.acquire(t.Context(), mine, 1, false, 0) },
		func() (reply, error) { return holder.acquire(t.Context(), theirs, 1, false, 0) },
		func() (reply, error) { return s.acquire(t.Context(), theirs, 2, true, 0) },
	} {
		if _, err := request(); err != nil {
			t.Fatal(err)
		}
	}
	client.ConfigSet(t.Context(), "maxmemory", "1")
	if r, err := s.heartbeat(t.Context(), theirs, 2); !definite(err) {
		t.Errorf("heartbeat = %+v, %v, want it refused", r, err)
	}
	if r, err := s.renew(t.Context(), mine, 1); err != nil || r.kind != replyHeld {
		t.Errorf("renewal = %+v, %v, want it held", r, err)
	}
}
