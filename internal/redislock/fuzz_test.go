package redislock

import (
	"testing"
)

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
