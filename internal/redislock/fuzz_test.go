package redislock

import (
	"context"
	"strings"
	"testing"
	"time"
)

// FuzzKey: whatever a lock is called, the scripts lock and free it.
func FuzzKey(f *testing.F) {
	for _, key := range []string{"stock:42", "", "{", "}", "{}", "{a}b", "}{", "a{b}c{d}", "{}{a}", "\x00\n", "%d %s", "ä", strings.Repeat("k", 1000)} {
		f.Add(key)
	}
	l, _ := newLocker(f, Options{Lease: 5 * time.Second, Wait: 10 * time.Second})
	client, _ := newClient(f, shared.addr)
	f.Fuzz(func(t *testing.T, key string) {
		held, lease, err := l.Acquire(t.Context(), key)
		if err != nil {
			t.Fatalf("Acquire(%q): %v", key, err)
		}
		if held.Err() != nil || lease.Token() == 0 {
			t.Errorf("Acquire(%q): %v, token %d", key, context.Cause(held), lease.Token())
		}
		if err := lease.Release(); err != nil {
			t.Errorf("Release of %q: %v", key, err)
		}
		if n, err := client.Exists(t.Context(), Keys("", key).Lock).Result(); n != 0 || err != nil {
			t.Errorf("after the release of %q, %d locks are left, %v", key, n, err)
		}
	})
}

// FuzzReply: what a script answers is understood, or an error.
func FuzzReply(f *testing.F) {
	f.Add(int64(replyHeld), int64(123), int64(0), uint8(3))
	f.Add(int64(replyHeld), int64(-1), int64(0), uint8(3))
	f.Add(int64(replyWaiting), int64(-2), int64(0), uint8(2))
	f.Add(int64(replyWaiting), int64(1)<<44, int64(0), uint8(2)) // more milliseconds than a time.Duration has
	f.Add(int64(replyHeld), int64(0), int64(0), uint8(1))
	f.Add(int64(replyHeld), int64(0), int64(0), uint8(0))
	f.Add(int64(1)<<50, int64(0), int64(0), uint8(0))
	f.Add(int64(-7), int64(0), int64(0), uint8(0))
	f.Add(int64(7), int64(0), int64(0), uint8(1)) // only an epoch by itself is a hold
	f.Fuzz(func(t *testing.T, a, b, c int64, length uint8) {
		var v any = a
		if length > 0 {
			v = []any{a, b, c, "x"}[:min(int(length), 4)]
		}
		r, err := parseReply(v, nil)
		if err == nil && (r.kind < replyDropped || r.kind > replyWaiting || r.kind == replyHeld && r.epoch < 0 || r.ttl < 0 || length > 0 && r.kind != a) {
			t.Errorf("%v was read as %+v", v, r)
		}
	})
}

// FuzzMessage: whatever comes over the channel, nobody holds because of it who did not ask.
func FuzzMessage(f *testing.F) {
	for _, message := range []string{"granted 1 2 0 stock:42", "contended stock:42", "granted 1 2 0", "granted", "", "granted -1 x 9 k", "granted 0 0 0 ", "lost k"} {
		f.Add(message)
	}
	l, _ := newLocker(f, Options{})
	f.Fuzz(func(t *testing.T, message string) {
		l.hear(message)
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.locks) > 0 {
			t.Errorf("%q made the locker know %d locks", message, len(l.locks))
		}
	})
}
