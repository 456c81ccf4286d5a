package step

import (
	"database/sql"
	"regexp"
	"strings"
	"testing"
	"time"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/service"
	"stocklock/internal/lab/wire"
	"stocklock/internal/lab/words"
	"stocklock/internal/testserver"
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

// TestHowLongNobodyMayGoOn: a statement that waits for a row comes to an end.
func TestHowLongNobodyMayGoOn(t *testing.T) {
	b := newBuyer('A', "a", nil)
	r := newRun(Plan{}, nil, 1, pace{patience: longIdle})
	r.buyers = []*buyer{b}
	for idle, endless := range map[time.Duration][2]bool{longIdle: {false, false}, 2 * longIdle: {true, false}, rowPatience: {true, true}} {
		for i, now := range []state{onLock, onRow} {
			if b.state = now; r.endless(idle) != endless[i] {
				t.Errorf("state %d for %s: it is without an end: %v", now, idle, !endless[i])
			}
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

// TestHowLongALeaseIsWatched: python-redis-lock renews 30 s after 20.
func TestHowLongALeaseIsWatched(t *testing.T) {
	for lease, want := range map[time.Duration]string{30 * time.Second: "31s nobody renews", time.Minute: "16s nobody was seen in 16s to renew"} {
		if got := watchFor(lease).String() + " " + (&Service{lease: lease}).NotRenewed(); got != want {
			t.Errorf("%s: %s, want %s", lease, got, want)
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

// TestWhatIsAPoll: who repeats a try has seen nothing new, and has the same in Redis as before it.
func TestWhatIsAPoll(t *testing.T) {
	const refused, found = false, true
	type sent struct {
		text    string
		matched bool
		leaves  string // what Redis has then
	}
	incr, decr, exec, get := sent{"INCR k", found, "2"}, sent{"DECR k", found, "1"}, sent{"MULTI; DECR k; EXEC", refused, "1"}, sent{"GET k", found, "1"}
	setnx, insert := sent{"SETNX k me", refused, "1"}, sent{"INSERT IGNORE INTO locks VALUES (1, 'me')", refused, "1"}
	for _, tt := range []struct {
		what string
		sent []sent
		held string // a statement of an open transaction
		want int    // the first that is pointless, -1 for none
	}{
		{"refused", []sent{setnx, setnx}, "", 1},
		{"behind a plain read", []sent{setnx, setnx}, "SELECT i.id FROM items i", 1},
		{"behind a lock", []sent{setnx, setnx}, "SELECT id FROM items WHERE id = 1 FOR UPDATE", -1},
		{"taken back", []sent{incr, decr, incr, decr, incr, decr, incr}, "", 6},
		{"not taken back", []sent{incr, {"APPEND k x", found, "2x"}, incr, {"APPEND k x", found, "2xx"}, incr, {"APPEND k x", found, "2xxx"}, incr}, "", -1},
		{"optimistic", []sent{exec, get, exec, get, exec}, "", 4},
		{"a row that is tried for", []sent{insert, insert, insert}, "", 2},
		{"a row that is tried for in a transaction", []sent{insert, insert, insert}, "UPDATE items SET stock = 1 WHERE id = 1", -1},
		{"reads of other rows", []sent{{"SELECT stock FROM items WHERE id = 1", found, "1"}, {"SELECT stock FROM items WHERE id = 2", found, "1"}, {"SELECT stock FROM items WHERE id = 3", found, "1"}}, "", -1},
		{"reads of one row", []sent{{"SELECT stock FROM items WHERE id = 1", found, "1"}, {"SELECT stock FROM items WHERE id = 1", found, "1"}, {"SELECT stock FROM items WHERE id = 1", found, "1"}}, "", 2},
		{"functions of other keys", []sent{{"FCALL take 1 k me", refused, "1"}, {"FCALL take 1 l me", refused, "1"}}, "", -1},
	} {
		r := &serviceRun{run: newRun(Plan{}, schedule.Schema{"items": {Primary: []string{"id"}}}, 1, pace{}), service: &Service{probe: &service.Probe{}}, conns: map[uint64]*wire.Conn{}, own: map[string]string{"k": "1"}}
		b := newBuyer('A', "a", nil)
		r.buyers, r.customers, r.entries = []*buyer{b}, []*caller{{buyer: b}}, []schedule.Entry{{}}
		if tt.held != "" {
			b.tx[1] = []schedule.Statement{{Text: tt.held, Matched: true}}
		}
		got := -1
		for i, s := range tt.sent {
			x := &wire.Exchange{Server: wire.Redis, Text: s.text, Matched: s.matched}
			if inMySQL.MatchString(s.text) {
				x.Server = wire.MySQL
			}
			b.queue = []*held{r.held(&holding{&wire.Exchange{Conn: &wire.Conn{}, Server: x.Server, Text: s.text}, nil})}
			if got < 0 && r.pointless(b) {
				got = i
			}
			b.flying, b.queue = &held{Request: b.queue[0].Request, id: x}, nil
			r.landed(r.customers[0], x)
			r.own = map[string]string{"k": s.leaves}
		}
		if got != tt.want {
			t.Errorf("%s: %d is pointless, want %d", tt.what, got, tt.want)
		}
	}
}

var inMySQL = regexp.MustCompile("^(INSERT|SELECT) ")

// TestWhatAServerSays of its level, of a unique key that a statement changes without its name, and of a key that is named
// by a foreign one and not unique.
func TestWhatAServerSays(t *testing.T) {
	server, err := testserver.Start(t).MySQL(t.Context(), "--transaction-isolation=READ-COMMITTED")
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("mysql", server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if level, err := levelOf(t.Context(), db); err != nil || level != sql.LevelReadCommitted.String() {
		t.Errorf("its level is %q, %v", level, err)
	}
	if _, err = db.ExecContext(t.Context(), "CREATE TABLE reservations (id BIGINT PRIMARY KEY, item_id BIGINT, status VARCHAR(9), active BIGINT AS (IF(status = 'active', item_id, NULL)) STORED, UNIQUE (active))"); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"parents (id BIGINT PRIMARY KEY, sku VARCHAR(9), KEY (sku))", "children (id BIGINT PRIMARY KEY, sku VARCHAR(9), n INT, FOREIGN KEY (sku) REFERENCES parents (sku) ON UPDATE CASCADE)"} {
		if _, err = db.ExecContext(t.Context(), "CREATE TABLE "+table); err != nil {
			t.Fatal(err)
		}
	}
	s, err := schedule.LoadSchema(t.Context(), db)
	update := func(id string) []schedule.Touch {
		return s.Touches(schedule.Request{Server: wire.MySQL, Text: "UPDATE reservations SET status = 'active' WHERE id = " + id})
	}
	if err != nil || schedule.Dependent(update("5"), update("6")) == "" {
		t.Errorf("two rows of one unique key are independent: %+v %v", s, err)
	}
	sends := func(text string) []schedule.Touch {
		return s.Touches(schedule.Request{Server: wire.MySQL, Text: text, Tx: true})
	}
	if schedule.Dependent(sends("UPDATE parents SET sku = 'b' WHERE id = 7"), sends("UPDATE children SET n = 1 WHERE id = 3")) == "" {
		t.Error("an UPDATE that is carried on to another table is independent of what that table is sent")
	}
}

// TestALevelOfTheServer is that of a transaction that asks for none. Who reads under SERIALIZABLE holds what it has read.
func TestALevelOfTheServer(t *testing.T) {
	for level, holds := range map[string]bool{serializable: true, sql.LevelReadCommitted.String(): false} {
		r := &serviceRun{run: newRun(Plan{}, schedule.Schema{"items": {Primary: []string{"id"}}}, 1, pace{}), service: &Service{isolation: level}, conns: map[uint64]*wire.Conn{}}
		b, x := newBuyer('A', "a", nil), &wire.Exchange{Conn: &wire.Conn{Thread: 1}, Server: wire.MySQL, Text: "SELECT stock FROM items WHERE id = 1", Tx: true}
		b.flying, r.entries = r.held(&holding{x, nil}), []schedule.Entry{{}}
		commits := r.schema.Touches(schedule.Request{Server: wire.MySQL, Text: "UPDATE items SET stock = 0 WHERE id = 1"})
		for again := range 2 { // a second read sees what others have committed since the first one
			if schedule.Dependent(r.schema.Touches(b.request(b.flying)), commits) == "" {
				t.Errorf("%s: read %d and an UPDATE are independent", level, again+1)
			}
			r.answered(b, x, answer{matched: true, open: true})
			b.flying = r.held(&holding{x, nil})
		}
		if got := len(r.schema.Locks(b.holds())) > 0; got != holds {
			t.Errorf("%s: it holds what it has read: %v", level, got)
		}
	}
}

// TestHowANamedLockEnds: by a release, and not by a question.
func TestHowANamedLockEnds(t *testing.T) {
	for text, held := range map[string]string{
		"SELECT RELEASE_LOCK('x')": "LOCK TABLES items READ", "SELECT RELEASE_LOCK('y')": "LOCK TABLES items READ, SELECT GET_LOCK('x', 10)", "DO RELEASE_ALL_LOCKS()": "LOCK TABLES items READ",
		"SELECT IS_USED_LOCK('x')": "LOCK TABLES items READ, SELECT GET_LOCK('x', 10)", "SELECT IS_FREE_LOCK('x')": "LOCK TABLES items READ, SELECT GET_LOCK('x', 10)",
		"SELECT IS_USED_LOCK('x') = CONNECTION_ID()": "LOCK TABLES items READ, SELECT GET_LOCK('x', 10)", "UNLOCK TABLES": "SELECT GET_LOCK('x', 10)",
	} {
		r, b := &serviceRun{run: newRun(Plan{}, schedule.Schema{}, 1, pace{}), service: &Service{}, conns: map[uint64]*wire.Conn{}}, newBuyer('A', "a", nil)
		r.entries = []schedule.Entry{{}}
		for _, sent := range []string{"LOCK TABLES items READ", "SELECT GET_LOCK('x', 10)", text} {
			x := &wire.Exchange{Conn: &wire.Conn{Thread: 1}, Server: wire.MySQL, Text: sent}
			b.flying = r.held(&holding{x, nil})
			r.answered(b, x, answer{text: "lock=1", matched: true})
		}
		var got []string
		for _, s := range b.holds() {
			got = append(got, s.Text)
		}
		if strings.Join(got, ", ") != held {
			t.Errorf("%s: it holds %q, want %q", text, got, held)
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
	r.buyers = []*buyer{newBuyer('A', "a", nil)}
	r.came[0].Store(true)
	insert, del := &wire.Exchange{Server: wire.MySQL, Text: "INSERT INTO orders"}, &wire.Exchange{Server: wire.Redis, Text: "DEL lock"}
	r.counts()
	for _, x := range []*wire.Exchange{del, insert} {
		if got := r.uncounted(); got != nil {
			t.Errorf("before %s: %s", x.Text, got.Text)
		}
		r.Sent(x)
	}
	for _, answered := range []bool{false, true} {
		if r.counts(); (r.uncounted() == nil) != answered {
			t.Errorf("answered: %v, uncounted: %v", answered, r.uncounted())
		}
		r.Answered(insert)
	}
	r.inSale[nil] = true // its transaction is open
	r.Sent(&wire.Exchange{Server: wire.MySQL, Text: "ROLLBACK"})
	if got := r.uncounted(); got != nil {
		t.Errorf("it changes nothing that is counted: %s", got.Text)
	}
	r.Sent(insert)
	if r.buyers[0].dead = true; r.uncounted() != nil {
		t.Error("what a killed process has sent may be gone")
	}
}
