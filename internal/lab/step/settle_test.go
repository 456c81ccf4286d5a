package step

import (
	"testing"
	"time"

	"stocklock/internal/lab/words"
)

// TestWhyACustomerIsSilent: silence alone is no proof of waiting, unless it lasts for a lease.
func TestWhyACustomerIsSilent(t *testing.T) {
	for _, tt := range []struct {
		what    string
		of      silence
		now     state
		blocked string
	}{
		{"nothing is known", silence{}, moving, ""},
		{"a request is under way", silence{server: "redis", long: true}, moving, ""},
		{"it may write after its answer", silence{answered: true}, moving, ""},
		{"it has written nothing for a lease", silence{answered: true, long: true}, moving, ""},
		{"it writes nothing any more", silence{answered: true, dropped: true}, ended, ""},
		{"it writes after its answer", silence{answered: true, server: "mysql", long: true}, moving, ""},
		{"Redis is cut off", silence{server: "redis", cut: true}, cutOff, "Redis is silent"},
		{"etcd is cut off", silence{server: "etcd", cut: true}, cutOff, "etcd is silent"},
		{"MySQL is not", silence{server: "mysql", cut: true}, moving, ""},
		{"the row is held", silence{server: "mysql", waits: true, row: 'B'}, onRow, "the row is held by B's transaction"},
		{"the row may be held", silence{server: "mysql", row: 'B'}, moving, ""},
		{"MySQL says no more", silence{server: "mysql", waits: true}, onRow, "MySQL makes it wait"},
		{"another has the lock", silence{locking: true, lock: words.Of("blocked.lock", "by", "B"), theirs: true}, onLock, "the lock is held by B"},
		{"it has the lock, and works", silence{locking: true, lock: words.Of("blocked.lock", "by", "A")}, moving, ""},
		{"it has had the lock for long", silence{locking: true, lock: words.Of("blocked.lock", "by", "A"), long: true}, onLock, "the lock is held by A"},
		{"the lock is free", silence{locking: true}, moving, ""},
		{"it was refused, by what is in no lock", silence{locking: true, refused: true}, onLock, ""},
		{"the lock is free for long", silence{locking: true, long: true}, onLock, ""},
	} {
		if now, blocked := tt.of.why(); now != tt.now || blocked.String() != tt.blocked {
			t.Errorf("%s: state %d, %q, want %d, %q", tt.what, now, blocked, tt.now, tt.blocked)
		}
	}
}

// TestSilenceThatNobodyHasSeen does not count: the machine may not have run the customer's process either.
func TestSilenceThatNobodyHasSeen(t *testing.T) {
	var q quiet
	heard := time.Now()
	q.until(heard, heard.Add(lookAfter))
	if got := q.until(heard, heard.Add(time.Second)); got != 3*lookAfter {
		t.Errorf("a look after %s and the next one after a second have seen %s", lookAfter, got)
	}
	if got := q.until(heard.Add(time.Second), heard.Add(time.Second)); got != 0 {
		t.Errorf("who has just been heard is silent for %s", got)
	}
}

// TestAMessageBesideAnOlderOne: what waited before a run, and is written in it, does not hide what the run has added.
func TestAMessageBesideAnOlderOne(t *testing.T) {
	r := &serviceRun{before: map[string]key{"stream": {waits: 1, last: "1-0"}, "list": {waits: 1}}}
	for _, tt := range []struct {
		name string
		now  key
		want bool
	}{
		{"stream", key{waits: 1, last: "1-0"}, false}, {"stream", key{waits: 1, last: "2-0"}, true}, {"stream", key{last: "2-0"}, false},
		{"list", key{waits: 1}, false}, {"list", key{waits: 2}, true}, {"new", key{waits: 1}, true},
	} {
		if got := r.queued(map[string]key{tt.name: tt.now}); got != tt.want {
			t.Errorf("%s: %+v: %v", tt.name, tt.now, got)
		}
	}
}
