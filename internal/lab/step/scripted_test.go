package step_test

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha1" // by which Redis names a script
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/seen"
	"stocklock/internal/lab/service"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/step/steptest"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/redisconn"
)

// scripted sells by the lines of the file STEPS: SQL on a connection, behind "2" on another one, behind "&" there when
// the first one waits for a lock; and commands of Redis behind "redis". What a SELECT finds is {stock}, and less than 1 is sold out, as is an
// UPDATE with AND of no row. One behind "|" is tried ten times, and the sale goes on. "renew" keeps a key until the sale has ended. A line behind "~" is tried until its answer is OK or 1: behind "?" the sale is busy without, and
// sold out behind "%". What is behind "else" is carried out before the next try. One behind "-" is carried out in any case, "!" only where nothing was sold.
func scripted(ctx context.Context, db *sql.DB, cache redisconn.Client, item, customer string) (sold bool, err error) {
	lines, err := os.ReadFile(os.Getenv("STEPS"))
	conn, fails := db.Conn(ctx)
	second, fail := db.Conn(ctx)
	if err = errors.Join(err, fails, fail); err != nil {
		return false, err
	}
	defer conn.Close()
	defer second.Close()
	var beside sync.WaitGroup
	defer beside.Wait()
	over := make(chan struct{})
	defer close(over)
	stock := 1
	do := func(line string) (got bool, err error) {
		line = strings.NewReplacer("{item}", item, "{customer}", customer, "{left}", fmt.Sprint(stock-1)).Replace(line)
		switch kind, rest, _ := strings.Cut(line, " "); kind {
		case "redis":
			var args []any
			for word := range strings.FieldsSeq(rest) {
				args = append(args, strings.NewReplacer("_", " ", "{none}", "", "{java}", "\xac\xed\x00\x05t\x00\x06").Replace(word))
			}
			reply := cache.Do(ctx, args...)
			return reply.Value == "OK" || reply.Value == int64(1), reply.Err
		case "renew":
			beside.Go(func() {
				for {
					select {
					case <-time.After(200 * time.Millisecond):
						cache.Do(context.WithoutCancel(ctx), "PEXPIRE", rest, 1500)
					case <-over:
						return
					}
				}
			})
		case "&":
			var id, port uint64
			if err := conn.QueryRowContext(ctx, "SELECT CONNECTION_ID(), @@port").Scan(&id, &port); err != nil {
				return false, err
			}
			beside.Go(func() {
				if err := awaitsLock(ctx, id, port, over); err == nil {
					_, _ = second.ExecContext(ctx, rest)
				}
			})
		case "2":
			_, err = second.ExecContext(ctx, rest)
		case "SELECT":
			found := &stock
			if strings.Contains(line, "GET_LOCK") {
				found = new(int)
			}
			err = conn.QueryRowContext(ctx, line).Scan(found)
		default:
			var result sql.Result
			if result, err = conn.ExecContext(ctx, line); err == nil && strings.Contains(line, " AND ") {
				n, _ := result.RowsAffected()
				stock = int(n)
				return n == 1, err
			}
		}
		return true, err
	}
	for line := range strings.Lines(string(lines)) {
		line, always := strings.CutPrefix(strings.TrimSpace(line), "-")
		line, unsold := strings.CutPrefix(line, "!")
		line, tries := strings.CutPrefix(line, "~")
		if goes := err == nil && stock > 0; !always && goes == unsold {
			continue
		}
		line, goesOn := strings.CutPrefix(line, "|")
		line, once := strings.CutPrefix(line, "?")
		line, wanted := strings.CutPrefix(line, "%")
		line, back, takesBack := strings.Cut(line, " else ")
		got, failed := do(line)
		if once && !got {
			return false, cmp.Or(failed, errBusy)
		} else if wanted && !got {
			stock = 0
		}
		for try := 0; goesOn && !got && failed == nil && try < 10; try++ {
			time.Sleep(20 * time.Millisecond)
			got, failed = do(line)
		}
		for try := 0; tries && !got && failed == nil && try < 250; try++ {
			if takesBack {
				_, failed = do(back)
			}
			time.Sleep(20 * time.Millisecond)
			if failed == nil {
				got, failed = do(line)
			}
		}
		if err = errors.Join(err, failed); tries && !got {
			return false, errors.Join(err, errors.New("not in time"))
		}
	}
	return stock > 0, err
}

// awaitsLock waits until a connection waits for a lock, or the sale is over. It asks the server of that port, past the proxy.
func awaitsLock(ctx context.Context, id, port uint64, over <-chan struct{}) error {
	dsn, err := mysql.ParseDSN(os.Getenv("MYSQL_DSN"))
	if err != nil {
		return err
	}
	dsn.Addr = fmt.Sprintf("127.0.0.1:%d", port)
	db, err := sql.Open("mysql", dsn.FormatDSN())
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = seen.Until(ctx, 2*time.Millisecond, func() (bool, error) {
		select {
		case <-over:
			return true, nil
		default:
			return seen.ConnWaits(ctx, db, id)
		}
	})
	return err
}

// multiplexed sends all commands over one connection, and does not wait for the answer of the one before.
type multiplexed struct {
	redisconn.Client
	mu      sync.Mutex // guards the rest
	conn    net.Conn
	waiting chan chan redisconn.Reply
}

func newMultiplexed(cache redisconn.Client) (*multiplexed, error) {
	conn, err := net.Dial("tcp", os.Getenv("REDIS"))
	if err != nil {
		return nil, err
	}
	m := &multiplexed{Client: cache, conn: conn, waiting: make(chan chan redisconn.Reply, 99)}
	go func() {
		answers := bufio.NewReader(conn)
		for waits := range m.waiting {
			line, err := answers.ReadString('\n')
			if strings.HasPrefix(line, "$") && !strings.HasPrefix(line, "$-1") {
				line, err = answers.ReadString('\n')
			}
			waits <- redisconn.Reply{Value: strings.TrimSpace(strings.TrimPrefix(line, "+")), Err: err}
		}
	}()
	return m, nil
}

func (m *multiplexed) Do(_ context.Context, command ...any) redisconn.Reply {
	answer := make(chan redisconn.Reply, 1)
	m.mu.Lock()
	text := fmt.Sprintf("*%d\r\n", len(command))
	for _, word := range command {
		text += fmt.Sprintf("$%d\r\n%v\r\n", len(fmt.Sprint(word)), word)
	}
	m.waiting <- answer
	_, err := m.conn.Write([]byte(text))
	m.mu.Unlock()
	if err != nil {
		return redisconn.Reply{Err: err}
	}
	return <-answer
}

// TestARenewalBehindAHeldRequest is one, though it waits on the connection of its sale.
func TestARenewalBehindAHeldRequest(t *testing.T) {
	t.Parallel()
	path := described(t, "multiplexed", "")
	sells(t, path, "~redis SET lock:{item} {customer} NX PX 1500", "renew lock:{item}", "redis GET price:{item}", read, write, order, unlock)
	if leases, renewed := openFile(t, path).Leases(); !leases || !renewed {
		t.Errorf("leases: %v, renewed: %v", leases, renewed)
	}
}

// errBusy has a sale be answered as busy.
var errBusy = errors.New("busy")

const (
	begin, commit, rollback = "BEGIN", "COMMIT", "!ROLLBACK"

	read    = "SELECT stock FROM items WHERE id = {item}"
	readRow = read + " FOR UPDATE"
	write   = "UPDATE items SET stock = {left} WHERE id = {item}"
	order   = "INSERT INTO orders (item_id, customer) VALUES ({item}, '{customer}')"
	unlock  = "-redis DEL lock:{item}"
)

// stepsOf is the file by which a described service sells in the mode scripted.
func stepsOf(description string) string { return filepath.Join(filepath.Dir(description), "steps") }

func sells(t *testing.T, description string, lines ...string) {
	t.Helper()
	if err := os.WriteFile(stepsOf(description), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// inGroups runs the rows of a table in parallel groups: each has a service in the mode scripted, and a table of its own.
func inGroups[Row any](t *testing.T, all []Row, table string, run func(t *testing.T, path string, on *service.Service, rows []Row)) {
	const groups = 3
	for first := range groups {
		t.Run(fmt.Sprint(first+1), func(t *testing.T) {
			t.Parallel()
			path := described(t, "scripted", "background: ['^SELECT CONNECTION_ID']")
			on := started(t, path)
			if _, err := on.DB.ExecContext(t.Context(), table); err != nil {
				t.Fatal(err)
			}
			var rows []Row // those that take long stand side by side
			for i := first; i < len(all); i += groups {
				rows = append(rows, all[i])
			}
			run(t, path, on, rows)
		})
	}
}

// TestOddServices: what a sale may send, so that it oversells, and whether that is found, with its cause.
func TestOddServices(t *testing.T) {
	t.Parallel()
	const inTable, outOfTable = "~INSERT IGNORE INTO locks SELECT {item}, NOW() + INTERVAL 1 MINUTE FROM DUAL WHERE 1 AND 1", "-DELETE FROM locks WHERE item = {item}"
	var loads, scripts [2]string // scripts that no proxy sees
	for i, text := range []string{"return redis.call('EXISTS', 'sold:' .. ARGV[1]) == 0", "return redis.call('SET', 'sold:' .. ARGV[1], 1)"} {
		loads[i], scripts[i] = text, fmt.Sprintf("%x", sha1.Sum([]byte(text)))
	}
	type row struct {
		name  string
		lines []string
		step  string // a schedule that is played, empty for all
		want  string // the causes, empty for a service that is right
	}
	inGroups(t, []row{
		{"a second BEGIN", []string{begin, readRow, begin, write, order, commit, rollback}, "", "no-lock"},
		{"DDL", []string{begin, readRow, "ALTER TABLE orders COMMENT 'x'", write, order, commit, rollback}, "", "no-lock"},
		{"LOCK TABLES", []string{begin, readRow, "LOCK TABLES items WRITE, orders WRITE", "UNLOCK TABLES", write, order, rollback}, "", "no-lock"},
		{"checked before FOR UPDATE", []string{read, begin, "DO (SELECT id FROM items WHERE id = {item} FOR UPDATE)", write, order, commit, rollback}, "", "checked-early"},
		{"a SELECT in a SET", []string{"SET @s = (SELECT stock FROM items WHERE id = {item})", "SELECT @s", write, order}, "", "no-lock"},
		{"several statements in one text", []string{read, "BEGIN; " + write + "; " + order + "; COMMIT"}, "", "no-lock"},
		{"lock by INCR", []string{"~redis INCR lock:{item}", "redis PEXPIRE lock:{item} 1500", read, write, order, unlock}, "A.incr A.pexpire B.incr wait B.incr2 B.pexpire B.select", "overrun"},
		{"lock by ZADD", []string{"~redis ZADD lock:{item} NX 1 me", "redis PEXPIRE lock:{item} 1500", read, write, order, unlock}, "A.zadd A.pexpire wait B.zadd B.pexpire B.select", "overrun"},
		{"lock by SADD", []string{"~redis SADD lock:{item} me", "redis PEXPIRE lock:{item} 1500", read, write, order, unlock}, "A.sadd A.pexpire wait B.sadd B.pexpire B.select", "overrun"},
		{"lock by a script that does not name it", []string{"~redis EVAL return_redis.call('SET','lock:'..ARGV[1],'x','NX','PX',1500) 0 {item}", read, write, order, unlock}, "A.eval wait B.eval B.select", "overrun"},
		{"a try that is taken back", []string{"~redis INCR lock:{item} else redis DECR lock:{item}", read, write, order, "-redis DECR lock:{item}"}, "", ""},
		{"a row that is tried for", []string{inTable, read, write, order, outOfTable}, "", ""},
		{"a row that is tried for, with a look at its end", []string{inTable + " else UPDATE locks SET until = until + INTERVAL 1 MINUTE WHERE item = {item} AND until < NOW()", read, write, order, outOfTable}, "", ""},
		{"lock in a transaction", []string{begin, "SELECT 1 FROM items WHERE id = {item}", "~redis SET lock:{item} {customer} NX PX 3000", readRow, write, order, commit, rollback, unlock}, "", ""},
		{"lock beside a session", []string{"redis SET session:{item} x EX 600", "~redis SET lock:{item} {customer} NX PX 1500", read, write, order, unlock}, "A.set A.set2 wait B.set B.set2 B.select", "overrun"},
		{"lock inside of a renewed one", []string{"redis SET user:{customer} x NX PX 1500", "renew user:{customer}", "~redis SET lock:{item} {customer} NX PX 1500", read, write, order, unlock, "-redis DEL user:{customer}"}, "A.set A.set2 wait B.set B.set2 B.select", "unexplained"},
		{"scripts that are not known", []string{"%redis EVALSHA " + scripts[0] + " 1 a:{customer} {item}", "redis EVALSHA " + scripts[1] + " 1 b:{customer} {item}", "UPDATE items SET stock = 0 WHERE id = {item}", order}, "", "no-lock"},
		{"a worker that has the row", []string{"2 BEGIN", "2 UPDATE items SET stock = stock WHERE id = {item}", "& COMMIT", "UPDATE items SET stock = stock - 1 WHERE id = {item} AND stock > 0", order}, "A.update A.update2 A.commit", ""},
		{"a named lock that is kept", []string{"SELECT GET_LOCK('stock:{item}', 2)", read, write, order}, "", ""},
		{"a key that ends", []string{"redis SET cached:{item} x PX 1500", "UPDATE items SET stock = stock - 1 WHERE id = {item} AND stock > 0", order}, "A.set wait B.set", ""},
	}, "CREATE TABLE locks (item BIGINT PRIMARY KEY, until DATETIME)", func(t *testing.T, path string, on *service.Service, rows []row) {
		for i, text := range loads {
			if got, err := on.Redis().Do(t.Context(), "SCRIPT", "LOAD", text).Text(); got != scripts[i] {
				t.Fatalf("a script is not loaded: %s, %v", got, err)
			}
		}
		for _, tt := range rows {
			t.Run(tt.name, func(t *testing.T) {
				sells(t, path, tt.lines...)
				_, s := opened(t, on)
				if leases, _ := s.Leases(); leases != strings.HasPrefix(tt.name, "lock ") || (tt.step != "" || !leases) && strings.Contains(tt.step, "wait") != (leases || len(s.Ends()) > 0) {
					t.Errorf("keeps a lease: %v; other keys that end: %v", leases, s.Ends())
				}
				var shown []schedule.Record
				if tt.step != "" {
					r, err := s.PlaySchedule(t.Context(), "", 2, steptest.Parse(t, tt.step))
					if err != nil {
						t.Fatal(err)
					}
					shown = append(shown, r)
				} else {
					found := explored(t, s)
					if err := explore.Confirm(t.Context(), s.PlaySchedule, &found); err != nil || len(found.Once) > 0 {
						t.Fatalf("%v, once: %v", err, found.Once)
					}
					shown = found.Shortest
				}
				var causes []string
				for _, r := range shown {
					if r.Outcome.Bad() {
						causes = append(causes, string(r.Outcome.Cause))
					}
				}
				if got := strings.Join(causes, " "); got != tt.want {
					for _, r := range shown {
						schedule.Draw(os.Stdout, words.English, r, 0)
					}
					t.Errorf("found %q, want %q", got, tt.want)
				}
			})
		}
	})
}

// TestAWaitThatEnds before the holder of the lock goes on: who then sells without the lock is found, and the schedule plays.
func TestAWaitThatEnds(t *testing.T) {
	t.Parallel()
	path := described(t, "scripted", "")
	on := started(t, path)
	const named = "SELECT GET_LOCK('stock:{item}', 1)"
	for _, tt := range []struct {
		name string
		lock string
		want verdict.Kind
		err  error
	}{
		{"ten tries", "|redis SET lock:{item} {customer} NX PX 6000", verdict.Oversold, nil},
		{"an answer that nobody reads", named, verdict.Oversold, nil},
		{"rejected at once", "?redis SET lock:{item} {customer} NX PX 3000", "", step.ErrUnmet},
		{"a long wait", "~redis SET lock:{item} {customer} NX PX 3000", "", step.ErrOutlasted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			last := unlock
			if tt.lock == named {
				last = "-DO RELEASE_LOCK('stock:{item}')"
			}
			sells(t, path, tt.lock, read, write, order, last)
			_, s := opened(t, on)
			r, err := s.Outwait(t.Context(), 2)
			if !errors.Is(err, tt.err) || err == nil && (r.Outcome.Verdict != tt.want || r.Outcome.Cause != verdict.WithoutLock) {
				schedule.Draw(os.Stdout, words.English, r, 0)
				t.Fatalf("%s by %s, %v; want %s, %v", r.Outcome.Verdict, r.Outcome.Cause, err, tt.want, tt.err)
			}
			if err != nil {
				return
			}
			again, err := s.PlaySchedule(t.Context(), "", 2, r.Schedule)
			if err != nil || again.Outcome.Verdict != tt.want {
				t.Errorf("%s: %s, %v", r.Schedule, again.Outcome.Verdict, err)
			}
		})
	}
}

// TestFaultsOfLocks: whatever a lock is like, and whatever is beside it, its lease ends while its holder is stopped, and
// somebody else comes when what a dead one has left is over.
func TestFaultsOfLocks(t *testing.T) {
	t.Parallel()
	inRow := func(lease string) []string {
		return []string{"INSERT IGNORE INTO leases VALUES ({item}, NOW(3) - INTERVAL 1 SECOND)", "?UPDATE leases SET until = NOW(3) + INTERVAL " + lease + " WHERE item = {item} AND until < NOW(3)"}
	}
	type row struct {
		name  string
		lock  []string
		fault schedule.Event
		made  int // steps before it
		want  verdict.Kind
		// undecided is why the run decides nothing, empty where it does.
		undecided string
	}
	inGroups(t, []row{
		{"an empty value", []string{"?redis SET lock:{item} {none} NX PX 1000"}, schedule.Pause, 2, verdict.Oversold, ""},
		{"an empty value", []string{"?redis SET lock:{item} {none} NX PX 1000"}, schedule.Kill, 2, verdict.Held, ""},
		{"a name in bytes", []string{"?redis SET {java}lock:{item} {customer} NX PX 1000"}, schedule.Pause, 2, verdict.Oversold, ""},
		{"a name in bytes", []string{"?redis SET {java}lock:{item} {customer} NX PX 1000"}, schedule.Kill, 2, verdict.Held, ""},
		{"a guard before it", []string{"?redis SET dup:{customer} 1 NX PX 1000", "?redis SET lock:{item} {customer} NX PX 2000"}, schedule.Pause, 3, verdict.Oversold, ""},
		{"a guard before it", []string{"?redis SET dup:{customer} 1 NX PX 1000", "?redis SET lock:{item} {customer} NX PX 2000"}, schedule.Kill, 3, verdict.Held, ""},
		{"a guard before a long one", []string{"?redis SET dup:{customer} 1 NX PX 1000", "?redis SET lock:{item} {customer} NX EX 120"}, schedule.Pause, 3, verdict.Oversold, ""},
		{"a reservation that counts", []string{"%redis EVAL return_#redis.call('KEYS','hold:'..ARGV[1]..':*')<1 0 {item}", "redis SETEX hold:{item}:{customer} 300 1"}, schedule.Kill, 3, verdict.Held, ""},
		{"a row", inRow("1500000 MICROSECOND"), schedule.Kill, 3, verdict.Held, ""},
		{"a row for an hour", inRow("1 HOUR"), schedule.Kill, 3, verdict.Held, "who came afterwards was answered with busy, and leases in rows were not ended"},
		{"a row that counts", []string{"%INSERT IGNORE INTO leases SELECT {item}, NOW(3) + INTERVAL 1 HOUR FROM DUAL WHERE 1 AND 1"}, schedule.Kill, 1, verdict.Held, "who came afterwards was answered with sold_out, and leases in rows were not ended"},
		{"one without an end behind a row", []string{"REPLACE INTO leases VALUES ({item}, NOW(3) + INTERVAL 1 HOUR)", "?redis SETNX lock:{item} 1"}, schedule.Kill, 2, verdict.Stuck, ""},
		{"a deadline", []string{"?redis SETNX lock:{item} 1999999999"}, schedule.Kill, 2, verdict.Held, "who came afterwards was answered with busy, and leases in values of Redis were not ended"},
		{"a deadline with a fraction", []string{"?redis SETNX lock:{item} 1999999999.25"}, schedule.Kill, 2, verdict.Held, "who came afterwards was answered with busy, and leases in values of Redis were not ended"},
		{"a long name with a space", []string{"?redis SET lock:{item}_" + strings.Repeat("x", 300) + " {customer} NX PX 1000"}, schedule.Pause, 2, verdict.Oversold, ""},
		{"a list that is awaited for a second", []string{"redis BLPOP gifts:{item} 1"}, schedule.Kill, 2, verdict.Held, ""},
	}, "CREATE TABLE leases (item BIGINT PRIMARY KEY, until TIMESTAMP(3))", func(t *testing.T, path string, on *service.Service, rows []row) {
		for _, tt := range rows {
			t.Run(fmt.Sprint(tt.name, " ", tt.fault), func(t *testing.T) {
				release := "-redis DEL " + strings.Fields(tt.lock[len(tt.lock)-1])[2]
				switch {
				case strings.Contains(release, "hold:"): // it ends
					release = ""
				case !strings.Contains(release, "lock:"):
					release = "-UPDATE leases SET until = NOW(3) - INTERVAL 1 SECOND WHERE item = {item}"
				}
				sells(t, path, append(tt.lock, read, write, order, release)...)
				_, s := opened(t, on)
				r, err := s.Fault(t.Context(), tt.fault, tt.made, false)
				if err != nil || r.Outcome.Verdict != tt.want || r.Undecided() != tt.undecided {
					schedule.Draw(os.Stdout, words.English, r, 0)
					t.Errorf("%s %s, undecided: %q, %v: want %s", r.Outcome.Verdict, r.Outcome.Cause, r.Undecided(), err, tt.want)
				}
				if tt.fault != schedule.Pause || len(tt.lock) < 2 {
					return // the search has one key that ends, as in other tests
				}
				if found := explored(t, s, schedule.Wait); found.Bad == 0 {
					t.Errorf("no lease that ends shows an oversell, in %d orders", found.Runs)
				}
			})
		}
	})
}

// TestATryThatTookSomething is in the record, though it looks like the polls before it.
func TestATryThatTookSomething(t *testing.T) {
	t.Parallel()
	path := selling(t, "~redis EVAL return_redis.call('EXISTS','lock:'..ARGV[1])==0_and_#redis.call('SET','sold:'..ARGV[1],ARGV[2]).ok-1_or_0 0 {item} {customer}",
		"?redis SET lock:{item} {customer} NX PX 1000", read, write, order, unlock)
	r, err := openFile(t, path).Fault(t.Context(), schedule.Kill, 2, false)
	if err != nil || !slices.ContainsFunc(r.Entries, func(e schedule.Entry) bool { return e.Customer == "B" && e.Choice.Step == "eval2" && e.Answer == "1" }) {
		schedule.Draw(os.Stdout, words.English, r, 0)
		t.Errorf("B has taken it: %+v %v", r.Outcome, err)
	}
}

// TestALeaseOfAnHour ends early, and is not awaited.
func TestALeaseOfAnHour(t *testing.T) {
	t.Parallel()
	path := described(t, "scripted", "")
	lease := func(ms string) {
		sells(t, path, "?redis SET lock:{item} {customer} NX PX "+ms, read, write, order, unlock)
	}
	lease("1000")
	s := openFile(t, path)
	lease("3600000")
	for _, order := range []string{"A.set wait B.set B.select", "A.set A.select kill:A"} {
		if _, err := s.InTime(t.Context(), "", 2, steptest.Parse(t, order)); err == nil || !strings.Contains(err.Error(), "too long to be awaited") {
			t.Errorf("%s: %v", order, err)
		}
		if r, err := s.PlaySchedule(t.Context(), "", 2, steptest.Parse(t, order)); err != nil || r.Outcome.Bad() != strings.Contains(order, "wait") {
			t.Errorf("%s, early: %+v %v", order, r.Outcome, err)
		}
	}
}

// TestTwoLeasesThatEndAtOnce end in one wait of the two that a search has needed.
func TestTwoLeasesThatEndAtOnce(t *testing.T) {
	t.Parallel()
	both := "?redis EVAL return_redis.call('SET','lock:'..ARGV[1],'x','NX','PX',1500)_and_redis.call('SET','beside:'..ARGV[1],'x','PX',1500) 0 {item}"
	r, err := openFile(t, selling(t, both, read, write, order, unlock)).InTime(t.Context(), "", 2, steptest.Parse(t, "A.eval wait wait B.eval B.select"))
	if err != nil || r.Outcome.Verdict != verdict.Oversold {
		t.Errorf("%+v %v", r.Outcome, err)
	}
}

// TestTheEndOfAHeartbeat is no step, though a sale has had its connection before.
func TestTheEndOfAHeartbeat(t *testing.T) {
	t.Parallel()
	path := described(t, "scripted", "background: [^DELETE FROM orders]")
	sells(t, path, "UPDATE items SET stock = stock - 1 WHERE id = {item} AND stock >= 1", order, begin, "DELETE FROM orders WHERE item_id = 0", commit)
	r, err := openFile(t, path).InTime(t.Context(), "", 2, steptest.Parse(t, "A.update A.insert B.update"))
	if err != nil || r.Outcome.Verdict != verdict.Held || slices.ContainsFunc(r.Entries, func(e schedule.Entry) bool { return e.Sent == commit }) {
		t.Errorf("%+v %v", r, err)
	}
}

// TestStockInOneKey: no name of a key has the item, there are many others, and a unit that Redis forgets is one of the stock still.
func TestStockInOneKey(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ set, left, has, takes string }{
		{"HSET stock {item} {stock}", "HGET stock {item}", "'HGET','stock',ARGV[1]", "'HINCRBY','stock',ARGV[1],-1"},
		{"ZADD stock {stock} {item}", "ZSCORE stock {item}", "'ZSCORE','stock',ARGV[1]", "'ZINCRBY','stock',-1,ARGV[1]"},
	} {
		takes := "%redis EVAL local_n=tonumber(redis.call(" + tt.has + ")_or_0)_if_n>0_then_redis.call(" + tt.takes + ")_end_return_n>0 0 {item}"
		path := edited(t, selling(t, takes, order), stockInRedis(tt.set, "left_redis: "+tt.left)...)
		on := started(t, path)
		for item := range 40 {
			set := strings.Fields(strings.NewReplacer("{item}", fmt.Sprintf("%04d", item), "{stock}", "0").Replace(tt.set))
			if err := on.Redis().Do(t.Context(), set[0], set[1], set[2], set[3]).Err; err != nil {
				t.Fatal(err)
			}
		}
		_, s := opened(t, on)
		if !s.KeepsStock() {
			t.Error("it keeps its stock in Redis, and faults of Redis are not played with a unit for each customer")
		}
		if r, err := s.Fault(t.Context(), schedule.FlushAll, 1, false); err != nil || !r.Played.Has(schedule.FlushAll) {
			t.Errorf("%s: %+v %v", tt.set, r.Outcome, err)
		}
	}
}

// TestAProcessDiesWithItsWorkers: what a shell, php -S or gunicorn has started sells no more.
func TestAProcessDiesWithItsWorkers(t *testing.T) {
	t.Parallel()
	path := edited(t, described(t, "family", ""), "command: [", `command: ["/bin/sh", "-c", "$0 & wait", `)
	r, err := openFile(t, path).Fault(t.Context(), schedule.Kill, 1, false)
	if err != nil || r.Outcome.Verdict != verdict.Left || r.Outcome.Answers["A"] != load.NoAnswer {
		t.Errorf("%+v %v", r.Outcome, err)
	}
	var drawn strings.Builder
	if schedule.Draw(&drawn, words.English, r, 0); !strings.Contains(drawn.String(), "· kill:A ·") {
		t.Errorf("nothing says who died:\n%s", &drawn)
	}
}
