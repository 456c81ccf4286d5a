package redislock

import (
	"testing"
	"time"
)

// TestWantOfMemoryCostsNoHold: a server without memory refuses to note that somebody waits, and that is renewed
// together with what is held.
func TestWantOfMemoryCostsNoHold(t *testing.T) {
	redisServer, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	defer redisServer.stop()
	client, _ := newClient(t, redisServer.addr)
	s, holder := newServer(client, time.Minute), newServer(client, time.Minute)
	mine, theirs := &name{key: "mine", keys: keysOf("mine")}, &name{key: "theirs", keys: keysOf("theirs")}
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
	replies, err := s.beat(t.Context(), []beat{{theirs, 2, false}, {mine, 1, true}})
	if err != nil || replies[0].kind != replyFailed || replies[1].kind != replyHeld {
		t.Errorf("beat = %+v, %v, want the wait failed and the hold renewed", replies, err)
	}
}
