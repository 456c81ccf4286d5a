package wire

import (
	"bufio"
	"context"
	"crypto/sha1"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"stocklock/internal/redisconn"
	"stocklock/internal/testserver"
)

// tap keeps what it sees, and decides by functions that may be nil.
type tap struct {
	sent, answer func(*Exchange) bool
	said         func(*Exchange) string

	mu     sync.Mutex // guards the rest
	seen   []string
	pushed []string
	closed int
}

func (s *tap) Sent(x *Exchange) bool { return s.sent == nil || s.sent(x) }

func (s *tap) Answered(x *Exchange) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.said != nil {
		s.seen = append(s.seen, s.said(x))
	} else {
		s.seen = append(s.seen, fmt.Sprintf("%s|%s|%v", x.Text, x.Answer, x.Tx))
	}
	return s.answer == nil || s.answer(x)
}

func (s *tap) Pushed(_ *Conn, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pushed = append(s.pushed, text)
}

func (s *tap) Closed(*Conn, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
}

func (s *tap) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

func listen(t *testing.T, server, upstream string, s *tap) *Proxy {
	t.Helper()
	p, err := Listen(server, upstream, 0, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func redisThrough(t *testing.T, s *tap) (redisconn.Client, *Proxy) {
	t.Helper()
	p := listen(t, Redis, testserver.RedisAddr(t), s)
	return connect(t, "redis://"+p.Addr), p
}

func connect(t *testing.T, url string) redisconn.Client {
	t.Helper()
	c, err := redisconn.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestRedisIsRead(t *testing.T) {
	seen := &tap{}
	c, p := redisThrough(t, seen)
	ctx := t.Context()
	c.Do(ctx, "SET", "a key", "x y", "EX", 60)
	c.Do(ctx, "GET", "a key")
	c.Do(ctx, "GET", "none")
	c.Do(ctx, "EVAL", "return redis.call('GET', KEYS[1])", 1, "none", "arg")
	_, _ = c.Pipeline(ctx, redisconn.Command{"INCR", "n"}, redisconn.Command{"INCR", "n"})
	_, _ = c.Transaction(ctx, redisconn.Command{"DEL", "n"}, redisconn.Command{"DEL", "a key"})
	c.Do(ctx, "LPUSH", "n", 1, 2)
	c.Do(ctx, "INCR", "n")
	const sha = "d3c21d0c2b9ca22f82737626a27bcaf5d288f99f"
	want := []string{
		`SET "a key" "x y" EX 60|OK|false`, `GET "a key"|"x y"|false`, `GET none|(nil)|false`, "EVALSHA " + sha + ` 1 none arg|(nil)|false`,
		"INCR n|1|false", "INCR n|2|false", `MULTI; DEL n; DEL "a key"; EXEC|[1 1]|false`, "LPUSH n 1 2|2|false",
		"INCR n|error: WRONGTYPE Operation against a key holding the wrong kind of value|false",
	}
	if got := seen.take(); !slices.Equal(got, want) {
		t.Errorf("seen:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if script(sha) == "" || len(p.Unseen()) > 0 {
		t.Errorf("script %q, unseen %q", script(sha), p.Unseen())
	}
}

// TestAScriptOfAnotherProcess is known: a client sends its text only where Redis has it from nobody.
func TestAScriptOfAnotherProcess(t *testing.T) {
	seen := &tap{said: func(x *Exchange) string { return x.Source }}
	one, _ := redisThrough(t, &tap{})
	other, _ := redisThrough(t, seen)
	one.Do(t.Context(), "EVAL", "return 'known'", 0)
	sum := sha1.Sum([]byte("return 'known'"))
	other.Do(t.Context(), "EVALSHA", hex.EncodeToString(sum[:]), 0)
	if got := seen.take(); !slices.Equal(got, []string{"return 'known'"}) {
		t.Errorf("sources: %q", got)
	}
}

// TestPasswordsAreNotKept: neither of a connection's set-up, nor of SQL that gives a user one.
func TestPasswordsAreNotKept(t *testing.T) {
	seen := &tap{}
	_, p := redisThrough(t, seen)
	connect(t, "redis://default:s3cret@"+p.Addr).Do(t.Context(), "GET", "x")
	db := mysqlThrough(t, seen)
	_, _ = db.ExecContext(t.Context(), "CREATE USER IF NOT EXISTS tester IDENTIFIED BY 's3cret'")
	if all := strings.Join(seen.take(), "\n"); strings.Contains(all, "s3cret") || !strings.Contains(all, "CREATE …") {
		t.Errorf("seen: %s", all)
	}
}

func mysqlThrough(t *testing.T, s *tap) *sql.DB {
	t.Helper()
	cfg, err := mysqldriver.ParseDSN(testserver.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	p := listen(t, MySQL, cfg.Addr, s)
	cfg.Addr, cfg.MultiStatements = p.Addr, true
	db, err := sql.Open("mysql", cfg.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

func TestMySQLIsRead(t *testing.T) {
	seen := &tap{}
	db := mysqlThrough(t, seen)
	ctx := t.Context()
	exec := func(on interface {
		ExecContext(context.Context, string, ...any) (sql.Result, error)
	}, query string, args ...any) {
		t.Helper()
		if _, err := on.ExecContext(ctx, query, args...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	exec(db, "CREATE TEMPORARY TABLE t (id BIGINT PRIMARY KEY, name VARCHAR(20), price DOUBLE, at DATETIME, small TINYINT)")
	seen.take()
	exec(db, "insert into t VALUES (?, ?, ?, ?, ?)", -7, "a 'b'?", 1.5, nil, 3)
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		t.Fatal(err)
	}
	row := struct {
		id    int64
		name  string
		price float64
		at    sql.NullTime
		small int
	}{}
	if err := tx.QueryRowContext(ctx, "SELECT * FROM t WHERE id = ?", -7).Scan(&row.id, &row.name, &row.price, &row.at, &row.small); err != nil || row.id != -7 || row.price != 1.5 {
		t.Errorf("%+v %v", row, err)
	}
	exec(tx, "/* who */ UPDATE t SET small = 4 WHERE id = -7 ;")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := db.QueryRowContext(ctx, "SELECT id FROM t WHERE id > 0").Scan(&n); err != sql.ErrNoRows {
		t.Error(err)
	}
	if _, err := db.ExecContext(ctx, "INSERT INTO t (id) VALUES (-7)"); err == nil {
		t.Error("a second row with one key")
	}
	exec(db, "UPDATE t SET small = 5; UPDATE t SET small = 6")
	exec(db, "UPDATE t SET small = 7; SET @a = 1")
	exec(db, "-- the item's, or not?\nUPDATE t SET small = ? /* which? */ WHERE id = ?", 8, -7)
	want := []string{
		"INSERT into t VALUES (-7, 'a ''b''?', 1.5, NULL, 3)|1 row|false",
		"SELECT * FROM t WHERE id = -7|id=-7 name=a 'b'? price=1.5 at=NULL small=3|true",
		"UPDATE t SET small = 4 WHERE id = -7|1 row|true", "COMMIT|ok|true",
		"SELECT id FROM t WHERE id > 0|no row|false",
		"INSERT INTO t (id) VALUES (-7)|error: Error 1062: Duplicate entry '-7' for key 'PRIMARY'|false",
		"UPDATE t SET small = 5; UPDATE t SET small = 6|1 row|false", "UPDATE t SET small = 7; SET @a = 1|1 row|false",
		"UPDATE t SET small = 8 /* which? */ WHERE id = -7|1 row|false",
	}
	got := seen.take()
	for i := range got { // MySQL names the table of the key
		got[i] = strings.Replace(got[i], "'t.PRIMARY'", "'PRIMARY'", 1)
	}
	if !slices.Equal(got, want) {
		t.Errorf("seen:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestIsolationOfATransaction: it is that of when it begins, and not of the statement before.
func TestIsolationOfATransaction(t *testing.T) {
	seen := &tap{said: func(x *Exchange) string { return x.Isolation }}
	db := mysqlThrough(t, seen)
	const look = "SELECT COUNT(*) FROM mysql.user"
	level := "tx_isolation" // as MariaDB before 11.1 calls it
	if db.QueryRowContext(t.Context(), "SELECT @@transaction_isolation").Scan(new(string)) == nil {
		level = "transaction_isolation"
	}
	for _, tt := range []struct {
		name       string
		sent, want []string
	}{
		{"of the next one", []string{look, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "START TRANSACTION", look, look, "COMMIT", look}, []string{"", "Read Committed", "Read Committed", "Read Committed", ""}},
		{"of the session", []string{"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "BEGIN", look, "COMMIT"}, []string{"Read Committed", "Read Committed"}},
		{"of the session no more", []string{"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "BEGIN", look, "COMMIT"}, []string{"Repeatable Read", "Repeatable Read"}},
		{"by the variable's name", []string{"SET " + level + " = 'READ-COMMITTED'", "BEGIN", look, "COMMIT", "BEGIN", look, "COMMIT"}, []string{"Read Committed", "Read Committed", "Read Committed", "Read Committed"}},
		{"by the variable, with others", []string{"SET autocommit = 1, @@session." + level + " = 'SERIALIZABLE'", "BEGIN", look, "COMMIT"}, []string{"Serializable", "Serializable"}},
		{"of no session that is there", []string{"SET GLOBAL TRANSACTION ISOLATION LEVEL REPEATABLE READ", "BEGIN", look, "COMMIT"}, []string{"Serializable", "Serializable"}},
		{"in one text with its BEGIN", []string{"SET TRANSACTION ISOLATION LEVEL READ COMMITTED; BEGIN", look, "COMMIT", look}, []string{"Serializable", "Read Committed", "Read Committed", "Serializable"}},
	} {
		for _, statement := range tt.sent {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		if got := seen.take(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestWhoseIsolationASetSets is of what another server than the one here knows, too.
func TestWhoseIsolationASetSets(t *testing.T) {
	const committed = "Read Committed"
	for set, want := range map[string][2]string{
		"SET transaction_isolation = 'READ-COMMITTED'": {committed, ""}, "SET @@transaction_isolation='READ-COMMITTED'": {"", committed},
		"SET autocommit = 1, transaction_isolation = 'READ-COMMITTED'": {committed, ""},
		"SET SESSION tx_isolation := \"READ-COMMITTED\"":               {committed, ""}, "SET TRANSACTION READ ONLY, ISOLATION LEVEL READ COMMITTED": {"", committed},
		"SET GLOBAL transaction_isolation = 'READ-COMMITTED'": {}, "SET @@GLOBAL.transaction_isolation = 'READ-COMMITTED'": {}, "SET PERSIST transaction_isolation = 'READ-COMMITTED'": {},
		"INSERT INTO t VALUES ('SET TRANSACTION ISOLATION LEVEL READ COMMITTED')": {},
	} {
		m := &mysqlConn{}
		if noted := m.noteIsolation(set); [2]string{m.isolation, m.forNext} != want || noted != (want != [2]string{}) {
			t.Errorf("%s: %q for the session, %q for the next, want %q", set, m.isolation, m.forNext, want)
		}
	}
}

// TestHeldAndCut: a request that is held has not come to the server. One that is cut before never does, and
// one that is cut after its answer has.
func TestHeldAndCut(t *testing.T) {
	looker := connect(t, "redis://"+testserver.RedisAddr(t))
	ctx := t.Context()
	held, goes := make(chan struct{}), make(chan bool)
	isSet := func(x *Exchange) bool { return x.Name == "set" }
	seen := &tap{sent: func(x *Exchange) bool {
		if !isSet(x) {
			return true
		}
		held <- struct{}{}
		return <-goes
	}}
	seen.answer = func(x *Exchange) bool { return !strings.Contains(x.Text, "lost") }
	c, _ := redisThrough(t, seen)
	for _, tt := range []struct {
		key      string
		goes     bool
		fails    bool
		comesFor int64
	}{{"held", true, false, 1}, {"cut", false, true, 0}, {"lost", true, true, 1}} {
		result := make(chan error)
		go func() { result <- c.Do(ctx, "SET", "wire:"+tt.key, 1, "EX", 60).Err }()
		<-held
		if n := looker.Do(ctx, "EXISTS", "wire:"+tt.key).Value; n != int64(0) {
			t.Errorf("%s came while it was held", tt.key)
		}
		goes <- tt.goes
		if err := <-result; (err != nil) != tt.fails {
			t.Errorf("%s: %v", tt.key, err)
		}
		if n := looker.Do(ctx, "EXISTS", "wire:"+tt.key).Value; n != tt.comesFor {
			t.Errorf("%s: %v keys, want %d", tt.key, n, tt.comesFor)
		}
	}
}

// TestAClientThatIsGoneWaitsForNothing: what wakes it would be lost.
func TestAClientThatIsGoneWaitsForNothing(t *testing.T) {
	sent := make(chan struct{})
	_, p := redisThrough(t, &tap{sent: func(x *Exchange) bool { close(sent); return true }})
	conn, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "BRPOP wire:queue 0\r\n"); err != nil {
		t.Fatal(err)
	}
	<-sent
	looker := connect(t, "redis://"+testserver.RedisAddr(t))
	blocked := func(want string) {
		t.Helper()
		for {
			clients, err := looker.Do(t.Context(), "INFO", "clients").Info()
			if err != nil {
				t.Fatalf("want %s blocked clients: %v", want, err)
			}
			if clients["blocked_clients"] == want {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	blocked("1")
	conn.Close()
	blocked("0")
}

// TestWhatCannotBeReadIsSaid has a client speak something else.
func TestWhatCannotBeReadIsSaid(t *testing.T) {
	_, p := redisThrough(t, &tap{})
	for first, says := range map[string]string{"\x16\x03\x01": "TLS to Redis", "\r\n": "other than RESP", "CLIENT REPLY OFF\r\n": "CLIENT REPLY"} {
		conn, err := net.Dial("tcp", p.Addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, first)
		_, _ = bufio.NewReader(conn).ReadByte() // until the proxy hangs up
		conn.Close()
		if all := strings.Join(p.Unseen(), "\n"); !strings.Contains(all, says) {
			t.Errorf("%q: %q says nothing of %s", first, all, says)
		}
	}
}

// TestRESP3: a connection that listens sends commands, too, and is told of messages and of keys that change, in the order in
// which Redis tells.
func TestRESP3(t *testing.T) {
	seen := &tap{answer: func(x *Exchange) bool {
		time.Sleep(20 * time.Millisecond) // in which what comes behind the answer could overtake it
		return true
	}}
	_, p := redisThrough(t, seen)
	conn, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	for _, tt := range []struct {
		sent    string
		answers int // with what is told beside them
	}{
		{"HELLO 3", 1}, {"SUBSCRIBE wire:news", 1}, {"CLIENT TRACKING ON BCAST", 1}, {"SET wire:resp3 1 EX 60", 2}, {"PUBLISH wire:news x", 2}, {"GET wire:resp3", 1},
	} {
		fmt.Fprint(conn, tt.sent+"\r\n")
		for i := range tt.answers {
			v, err := readRESP(answers)
			if err != nil || strings.HasPrefix(tt.sent, "SET") && (i == 0) != (v.text == "OK") {
				t.Fatalf("%s: answer %d is %s, %v", tt.sent, i+1, v.text, err)
			}
		}
	}
	want := []string{"SET wire:resp3 1 EX 60|OK|false", "PUBLISH wire:news x|1|false", `GET wire:resp3|"1"|false`}
	if got := seen.take(); !slices.Equal(got, want) || !p.Listening() {
		t.Errorf("seen %q, want %q; listening: %v", got, want, p.Listening())
	}
	if want := []string{`["invalidate" ["wire:resp3"]]`, `["message" "wire:news" "x"]`}; !slices.Equal(seen.pushed, want) {
		t.Errorf("told %q, want %q", seen.pushed, want)
	}
}

// TestRESP2BesideSubscriptions: what a connection sends that has its messages redirected, or listens no more, is seen again.
func TestRESP2BesideSubscriptions(t *testing.T) {
	seen := &tap{}
	_, p := redisThrough(t, seen)
	id := connect(t, "redis://"+testserver.RedisAddr(t)).Do(t.Context(), "CLIENT", "ID").Value
	for first, answers := range map[string]int{
		fmt.Sprintf("CLIENT TRACKING ON REDIRECT %v", id): 1, "SUBSCRIBE a\r\nUNSUBSCRIBE a": 2, "SUBSCRIBE a\r\nUNSUBSCRIBE a\r\nSUBSCRIBE b\r\nUNSUBSCRIBE": 4,
		"SUBSCRIBE a\r\nPSUBSCRIBE b*\r\nUNSUBSCRIBE\r\nPUNSUBSCRIBE\r\nUNSUBSCRIBE": 5, "SUBSCRIBE a\r\nRESET": 2, "MULTI\r\nRESET": 2, "HELLO 3\r\nSUBSCRIBE a\r\nRESET\r\nSUBSCRIBE a\r\nUNSUBSCRIBE": 5,
	} {
		conn, err := net.Dial("tcp", p.Addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprint(conn, first+"\r\n")
		reader := bufio.NewReader(conn)
		for i := range answers + 1 {
			if i == answers {
				fmt.Fprint(conn, "SET wire:resp2 1 EX 60\r\n")
			}
			if v, err := readRESP(reader); err != nil || v.kind == '-' || i == answers && v.text != "OK" {
				t.Errorf("%q: answer %d is %s, %v", first, i+1, v.text, err)
			}
		}
		if got := seen.take(); !slices.Equal(got, []string{"SET wire:resp2 1 EX 60|OK|false"}) || p.Listening() || len(p.Unseen()) > 0 {
			t.Errorf("%q: seen %q, listening: %v, unseen: %q", first, got, p.Listening(), p.Unseen())
		}
		conn.Close()
	}
	conn, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "SUBSCRIBE a\r\nUNSUBSCRIBE a\r\nGET wire:resp2\r\nQUIT\r\n")
	if all, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(all), "$1\r\n1\r\n+OK\r\n") {
		t.Errorf("answered with %q, %v", all, err)
	}
}

// TestALookAtThePort: who leaves at the greeting of MySQL is told only where nobody was let in.
func TestALookAtThePort(t *testing.T) {
	seen := &tap{}
	cfg, err := mysqldriver.ParseDSN(testserver.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	p := listen(t, MySQL, cfg.Addr, seen)
	conn, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = bufio.NewReader(conn).ReadByte()
	conn.Close()
	for len(p.Unseen()) == 0 && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
	cfg.Addr = p.Addr
	db, err := sql.Open("mysql", cfg.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.PingContext(t.Context()); err != nil || len(p.Unseen()) > 0 {
		t.Errorf("%v, unseen: %q", err, p.Unseen())
	}
}

// FuzzRESP: whatever a client sends is read or refused.
func FuzzRESP(f *testing.F) {
	for _, seed := range []string{"*1\r\n$4\r\nPING\r\n", "$-1\r\n", "%1\r\n+a\r\n:1\r\n", "|1\r\n+a\r\n:1\r\n+b\r\n", "*99999999\r\n", "$x\r\n", "\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = readRESP(bufio.NewReader(strings.NewReader(string(b))))
	})
}
