package step

import (
	"testing"
	"time"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/service"
	"stocklock/internal/lab/wire"
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

// TestWhatIsAwaitedBesideARenewedLock: each run takes what is awaited. A key that sales leave ends at once where it is long.
func TestWhatIsAwaitedBesideARenewedLock(t *testing.T) {
	r := &serviceRun{main: "lock:1", service: &Service{renews: true, deletes: map[string]bool{"guard:?": true}}}
	for _, tt := range []struct {
		name   string
		left   time.Duration
		renews bool
		want   bool
	}{
		{"lock:1", time.Hour, true, true},
		{"guard:1", 40 * time.Second, true, true}, {"guard:1", time.Minute, true, false},
		{"known:1", LongestSearched, true, true}, {"known:1", 40 * time.Second, true, false}, {"known:1", 40 * time.Second, false, true},
	} {
		if r.service.renews = tt.renews; r.awaits(tt.name, tt.left) != tt.want {
			t.Errorf("%+v: %v", tt, !tt.want)
		}
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

// TestARequestBehindTheLastCount can change what was counted. One that was answered before cannot, nor one of a dead process.
func TestARequestBehindTheLastCount(t *testing.T) {
	over := make(chan struct{})
	close(over)
	r := &serviceRun{run: newRun(Plan{}, schedule.Schema{}, 1, pace{}), over: over,
		service: &Service{on: &service.Service{File: &service.File{}}, probe: &service.Probe{}}}
	r.open(1)
	r.buyers, r.came[0] = []*buyer{newBuyer('A', "a", nil)}, true
	insert, del := &wire.Exchange{Server: wire.MySQL, Text: "INSERT INTO orders"}, &wire.Exchange{Server: wire.Redis, Text: "DEL lock"}
	r.counts()
	for _, x := range []*wire.Exchange{del, insert} {
		if got := r.uncounted(); got != nil {
			t.Errorf("before %s: %s", x.Text, got.Text)
		}
		tap{r}.Sent(x)
	}
	for _, answered := range []bool{false, true} {
		if r.counts(); (r.uncounted() == nil) != answered {
			t.Errorf("answered: %v, uncounted: %v", answered, r.uncounted())
		}
		tap{r}.Answered(insert)
	}
	r.inSale[nil] = true // its transaction is open
	tap{r}.Sent(&wire.Exchange{Server: wire.MySQL, Text: "ROLLBACK"})
	if got := r.uncounted(); got != nil {
		t.Errorf("it changes nothing that is counted: %s", got.Text)
	}
	tap{r}.Sent(insert)
	if r.buyers[0].dead = true; r.uncounted() != nil {
		t.Error("what a killed process has sent may be gone")
	}
}
