package step_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/seen"
	"stocklock/internal/lab/service"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/step/steptest"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/redisconn"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/testserver"
)

// TestMain is also the service of these tests: this program starts itself as one.
func TestMain(m *testing.M) {
	if mode := os.Getenv("SERVICE_MODE"); mode != "" {
		if err := serve(mode); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	service.LongWatch = 5 * time.Second // more than two of the slowest heartbeat below
	os.Exit(m.Run())
}

// serve is a small shop in one of several modes:
//
//	blocking   a customer waits for a token with BLPOP, which the one before puts back
//	late       the order is written half a second after the answer, or when the next customer comes to the process; it is counted then, the first one a second later
//	hash       a sale reads fields of a hash in Redis, and one of them three times, and counts its stock there
//	warming    each process reads an item and a setting all the time, as each sale does when it has taken a unit
//	scripted   what the lines of a file say: see [scripted]
//	gives up   the same, and it sells nothing any more when Redis is another server than before
//	panics     a sale that finds no unit where it read one panics
//	redis      the stock is in Redis, less than zero for none, and a service that is asked for it looks there
//	queue      a customer is answered that it is decided later, by a worker of its process that waits for a list
//	beating    each process writes a heartbeat every two seconds
//	waking     each process reads one all the time, as soon as a customer comes when there are lines; so does one that is blocking
//	outbox     a sale notes and counts its order, and a worker of the second process writes it twice a second
//	impatient  a customer whose sale has lost its lock is told that it is busy, and the sale goes on; who has the lock next waits for that
//	relayed    the same, in a table, from which each process writes what was noted a second ago
//	regretful  a sale takes a unit before it looks, and gives it back a little after it was refused
//	orders     a sale makes the only order of an item with one unit, under a lock, and takes that off the stock last
//	recount    the same without a lock, and a worker of the second process takes it off, once a second
//	unnamed    the second customer who is sold a unit is not told so, and who comes afterwards is told nothing
//	hasty      a sale waits for its first answer for a second, and fails two seconds after it has missed one
//	multiplexed  scripted, with one connection to Redis for all that it sends
//	polling    each process counts its polls all the time, from its first sale on, and asks for that of its last customer
func serve(mode string) error {
	db, err := sql.Open("mysql", os.Getenv("MYSQL_DSN")+"?multiStatements=true")
	if err != nil {
		return err
	}
	cache, err := redisconn.Open("redis://" + os.Getenv("REDIS") + "?read_timeout=30s")
	if err != nil {
		return err
	}
	if mode == "multiplexed" {
		if cache, err = newMultiplexed(cache); err != nil {
			return err
		}
	}
	var polling, counted sync.Once
	var last atomic.Value // the item of the last sale
	var known sync.Map
	var came atomic.Int64
	warm := func(ctx context.Context, item any) (stock int, err error) {
		cache.Do(ctx, "GET", "setting")
		err = db.QueryRowContext(ctx, "SELECT stock FROM items WHERE id = ?", item).Scan(&stock)
		return stock, err
	}
	cache.Do(context.Background(), "GET", "beats") // a heartbeat finds a connection
	beat := sync.OnceFunc(func() {
		go func() {
			for range time.Tick(time.Second) { // a run comes to rest in between
				_ = os.WriteFile(beatsOf(os.Getenv("STEPS"), os.Getenv("PROCESS")), nil, 0o600)
				cache.Do(context.Background(), "GET", "beats")
			}
		}()
	})
	sell := func(ctx context.Context, item, customer string) (sold bool, later func(), err error) {
		own := came.Add(1)
		if _, err := os.Stat(os.Getenv("STEPS")); err == nil && (mode == "waking" || mode == "blocking") {
			beat()
		}
		take := func() error {
			_, err := db.ExecContext(ctx, "INSERT INTO orders (item_id, customer) VALUES (?, ?)", item, customer)
			return err
		}
		switch mode {
		case "scripted", "unnamed", "multiplexed", "gives up":
			if mode == "gives up" {
				text, err := cache.Do(ctx, "INFO", "server").Text()
				_, id, _ := strings.Cut(text, "run_id:")
				if was, _ := known.LoadOrStore("server", id[:min(40, len(id))]); err != nil || was != id[:40] {
					return false, nil, cmp.Or(err, errors.New("it has given up"))
				}
			}
			sold, err = scripted(ctx, db, cache, item, customer)
			return sold, nil, err
		case "blocking":
			if first := cache.Do(ctx, "SET", "made:"+item, 1, "NX"); first.Err != nil {
				return false, nil, first.Err
			} else if first.Value != nil {
				cache.Do(ctx, "LPUSH", "token:"+item, "t")
			}
			if token := cache.Do(ctx, "BLPOP", "token:"+item, 28); token.Value == nil {
				return false, nil, cmp.Or(token.Err, errors.New("no token"))
			}
			defer cache.Do(ctx, "LPUSH", "token:"+item, "t")
			var stock int
			if err := db.QueryRowContext(ctx, "SELECT stock FROM items WHERE id = ?", item).Scan(&stock); err != nil || stock < 1 {
				return false, nil, err
			}
			if _, err := db.ExecContext(ctx, "UPDATE items SET stock = ? WHERE id = ?", stock-1, item); err != nil {
				return false, nil, err
			}
			return true, nil, take()
		case "impatient":
			ctx = context.WithoutCancel(ctx)
			lock, taken, gone := "lock:"+item, "taken:"+item, "gone:"+item
			if got := cache.Do(ctx, "SET", lock, customer, "NX", "PX", 2000); got.Value == nil {
				return false, nil, cmp.Or(got.Err, errBusy)
			}
			for n, _ := cache.Do(ctx, "INCR", taken).Int64(); n > 1 && cache.Do(ctx, "GET", gone).Value == nil; {
				time.Sleep(10 * time.Millisecond)
			}
			over, done := make(chan bool), make(chan error, 1)
			got := false
			go func() {
				var stock int
				err := db.QueryRowContext(ctx, "SELECT stock FROM items WHERE id = ?", item).Scan(&stock)
				if got = err == nil && stock > 0; got {
					_, err = db.ExecContext(ctx, "UPDATE items SET stock = ? WHERE id = ?", stock-1, item)
					time.Sleep(300 * time.Millisecond)
					err = cmp.Or(err, take())
				}
				close(over)
				cache.Do(ctx, "DECR", taken)
				cache.Do(ctx, "DEL", lock)
				done <- err
			}()
			for {
				select {
				case <-over:
					return got, nil, <-done
				case <-time.After(10 * time.Millisecond):
				}
				if owner := cache.Do(ctx, "GET", lock); owner.Err == nil && owner.Value != customer {
					select {
					case <-over:
					default:
						return false, nil, cmp.Or(cache.Do(ctx, "SET", gone, 1).Err, errBusy)
					}
				}
			}
		case "hash":
			var left int64
			for _, field := range []string{"price", "stock", "stock", "stock"} {
				if left, err = cache.Do(ctx, "HGET", "item:"+item, field).Int64(); err != nil {
					return false, nil, err
				}
			}
			if left < 1 {
				return false, nil, nil
			}
			return true, nil, cmp.Or(cache.Do(ctx, "HINCRBY", "item:"+item, "stock", -1).Err, take())
		case "redis":
			left, err := cache.Do(ctx, "DECR", "stock:"+item).Int64()
			if err != nil || left < 0 {
				return false, nil, err
			}
			return true, nil, take()
		case "regretful":
			var left int
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return false, nil, err
			}
			defer tx.Rollback()
			if _, err := tx.ExecContext(ctx, "UPDATE items SET stock = stock - 1 WHERE id = ?", item); err != nil {
				return false, nil, err
			}
			if err := cmp.Or(tx.QueryRowContext(ctx, "SELECT stock FROM items WHERE id = ?", item).Scan(&left), tx.Commit()); err != nil {
				return false, nil, err
			}
			if left < 0 {
				time.AfterFunc(300*time.Millisecond, func() { _, _ = db.Exec("UPDATE items SET stock = stock + 1 WHERE id = ?", item) })
				return false, nil, nil
			}
			return true, nil, take()
		case "warming":
			if _, err := db.ExecContext(ctx, "UPDATE items SET stock = stock - 1 WHERE id = ?", item); err != nil {
				return false, nil, err
			}
			stock, err := warm(ctx, item)
			if err == nil && stock < 0 {
				_, err = db.ExecContext(ctx, "UPDATE items SET stock = stock + 1 WHERE id = ?", item)
				return false, nil, err
			}
			return true, nil, cmp.Or(err, take())
		case "hasty":
			defer func() {
				if err != nil {
					time.Sleep(2 * time.Second)
				}
			}()
			hasty, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			var stock int
			if err := db.QueryRowContext(hasty, "SELECT stock FROM items WHERE id = ?", item).Scan(&stock); err != nil || stock < 1 {
				return false, nil, err
			}
		case "panics":
			var stock int
			if err := db.QueryRowContext(ctx, "SELECT stock FROM items WHERE id = ?", item).Scan(&stock); err != nil || stock < 1 {
				return false, nil, err
			}
		case "orders", "recount":
			if mode == "orders" {
				if taken := cache.Do(ctx, "SET", "lock:"+item, customer, "NX", "PX", 2000); taken.Value == nil {
					return false, nil, cmp.Or(taken.Err, errBusy)
				}
				defer cache.Do(context.WithoutCancel(ctx), "DEL", "lock:"+item)
			}
			result, err := db.ExecContext(ctx, "INSERT INTO orders (item_id, customer) SELECT ?, ? FROM DUAL WHERE NOT EXISTS (SELECT * FROM (SELECT item_id FROM orders) AS o WHERE item_id = ?)", item, customer, item)
			if err != nil {
				return false, nil, err
			}
			if n, _ := result.RowsAffected(); n == 0 || mode == "recount" {
				return n > 0, nil, nil
			}
			_, err = db.ExecContext(ctx, "UPDATE items SET stock = stock - 1 WHERE id = ?", item)
			return true, nil, err
		case "polling":
			last.Store(item)
			polling.Do(func() {
				go func() {
					for range time.Tick(10 * time.Millisecond) {
						cache.Do(context.Background(), "INCR", "polls")
						cache.Do(context.Background(), "GET", "left:"+last.Load().(string))
					}
				}()
			})
		}
		result, err := db.ExecContext(ctx, "UPDATE items SET stock = stock - 1 WHERE id = ? AND stock >= 1", item)
		if err != nil {
			return false, nil, err
		}
		if n, _ := result.RowsAffected(); n == 0 {
			if mode == "panics" {
				panic("no unit is left")
			}
			return false, nil, nil
		}
		if mode == "relayed" {
			_, err := db.ExecContext(ctx, "INSERT INTO outbox (item_id, customer) VALUES (?, ?)", item, customer)
			return true, nil, cmp.Or(err, cache.Do(ctx, "INCR", "noted").Err)
		}
		if mode == "outbox" {
			return true, nil, cmp.Or(cache.Do(ctx, "RPUSH", "outbox", item+" "+customer).Err, cache.Do(ctx, "INCR", "noted").Err)
		}
		if mode == "late" {
			return true, func() {
				for began := time.Now(); came.Load() == own && time.Since(began) < time.Second/2; {
					time.Sleep(time.Millisecond)
				}
				_, _ = db.Exec("INSERT INTO orders (item_id, customer) VALUES (?, ?)", item, customer)
				counted.Do(func() { time.Sleep(time.Second) })
				cache.Do(context.Background(), "INCR", "counted")
			}, nil
		}
		return true, nil, take()
	}
	if mode == "warming" {
		go func() {
			for range time.Tick(200 * time.Millisecond) {
				_, _ = warm(context.Background(), 1)
			}
		}()
	}
	if mode == "beating" {
		go func() {
			for range time.Tick(2 * time.Second) {
				cache.Do(context.Background(), "INCR", "beats")
			}
		}()
	}
	if mode == "outbox" && os.Getenv("PROCESS") == "2" {
		go func() {
			for range time.Tick(500 * time.Millisecond) {
				for job := cache.Do(context.Background(), "LPOP", "outbox"); job.Value != nil; job = cache.Do(context.Background(), "LPOP", "outbox") {
					item, customer, _ := strings.Cut(job.Value.(string), " ")
					_, _ = db.Exec("INSERT INTO orders (item_id, customer) VALUES (?, ?)", item, customer)
				}
			}
		}()
	}
	if mode == "relayed" {
		if _, err := db.Exec("CREATE TABLE IF NOT EXISTS outbox (id BIGINT AUTO_INCREMENT PRIMARY KEY, item_id BIGINT, customer VARCHAR(64), at TIMESTAMP(6) DEFAULT NOW(6))"); err != nil {
			return err
		}
		go func() {
			const old = "FROM outbox WHERE at < @before"
			for range time.Tick(time.Second / 2) {
				_, _ = db.Exec("BEGIN; SET @before = NOW(6) - INTERVAL 1 SECOND; SELECT id " + old + " FOR UPDATE; INSERT INTO orders (item_id, customer) SELECT item_id, customer " + old + "; DELETE " + old + "; COMMIT")
			}
		}()
	}
	if mode == "recount" && os.Getenv("PROCESS") == "2" {
		go func() {
			for range time.Tick(time.Second) {
				_, _ = db.Exec("UPDATE items SET stock = 0 WHERE stock = 1 AND id IN (SELECT item_id FROM orders)")
			}
		}()
	}
	if mode == "queue" {
		http.HandleFunc("POST /queue/{item}", func(w http.ResponseWriter, r *http.Request) {
			cache.Do(r.Context(), "LPUSH", "queue:"+os.Getenv("PORT"), r.PathValue("item")+" "+r.Header.Get("Customer"))
			w.WriteHeader(http.StatusAccepted)
		})
		http.HandleFunc("GET /queue/{customer}", func(w http.ResponseWriter, r *http.Request) {
			status, _ := cache.Do(r.Context(), "GET", "outcome:"+r.PathValue("customer")).Int64()
			w.WriteHeader(int(max(status, http.StatusNotFound)))
		})
		go func() {
			for {
				job, _ := cache.Do(context.Background(), "BRPOP", "queue:"+os.Getenv("PORT"), 20).Slice()
				if len(job) < 2 {
					continue
				}
				item, customer, _ := strings.Cut(job[1].(string), " ")
				outcome := http.StatusConflict
				if sold, _, err := sell(context.Background(), item, customer); err == nil && sold {
					outcome = http.StatusGone
				}
				cache.Do(context.Background(), "SET", "outcome:"+customer, outcome)
			}
		}()
	}
	http.HandleFunc("GET /items/{item}", func(w http.ResponseWriter, r *http.Request) {
		left, _ := cache.Do(r.Context(), "GET", "stock:"+r.PathValue("item")).Int64()
		fmt.Fprintf(w, `{"left": %d}`, left)
	})
	http.HandleFunc("POST /items/{item}/orders", func(w http.ResponseWriter, r *http.Request) {
		customer := r.Header.Get("Customer")
		nth := func(what string) (n int64) { // of an item, in the mode unnamed
			if mode == "unnamed" {
				n, _ = cache.Do(r.Context(), "INCR", "nth:"+what+r.PathValue("item")).Int64()
			}
			return n
		}
		came := nth("came")
		sold, later, err := sell(r.Context(), r.PathValue("item"), customer)
		switch {
		case err == errBusy:
			w.WriteHeader(http.StatusLocked)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		case came > 2 || sold && nth("sold") == 2:
			w.WriteHeader(http.StatusTeapot)
		case !sold:
			w.WriteHeader(http.StatusConflict)
		default:
			w.WriteHeader(http.StatusCreated)
			if later != nil {
				go later()
			}
		}
	})
	return http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil)
}

// described writes a description of the service of these tests in a mode, with more lines at its end.
func described(t *testing.T, mode, more string) string {
	t.Helper()
	testserver.NeedsServers(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Abs(examples + "/tables.sql")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "service.yaml")
	text := fmt.Sprintf(`
start:
  command: [%q]
  env: {SERVICE_MODE: %q, STEPS: %q, PORT: "{port}", PROCESS: "{process}", REDIS: "{redis}", MYSQL_DSN: "{mysql.dsn}"}
tables_file: %q
buy: {path: "/items/{item}/orders", headers: {Customer: "{customer}"}}
stock:
  set: REPLACE INTO items (id, stock) VALUES ({item}, {stock})
  left: SELECT stock FROM items WHERE id = {item}
  orders: SELECT customer FROM orders WHERE item_id = {item}
%s
`, self, mode, stepsOf(path), tables, more)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBlockingCommands: who waits in Redis is seen to, and nothing else.
func TestBlockingCommands(t *testing.T) {
	t.Parallel()
	s := openFile(t, described(t, "blocking", ""))
	if found := explored(t, s); found.Bad > 0 || found.Runs < 2 {
		t.Errorf("%d of %d are bad: %v", found.Bad, found.Runs, found.Causes())
	}
	r, err := s.InTime(t.Context(), "", 2, steptest.Parse(t, "A.set A.lpush A.blpop B.set B.blpop A.select"))
	if err != nil || r.Outcome.Verdict != verdict.Held {
		t.Fatalf("%+v %v", r.Outcome, err)
	}
	waited := false
	for _, e := range r.Entries {
		waited = waited || e.Choice.String() == "B.blpop" && e.Blocked.Key == "blocked.redis"
	}
	if !waited {
		t.Errorf("nothing says that B waited in Redis: %+v", r.Entries)
	}
}

// TestLateSales: a request that comes when the customer has been answered is a step like others, and none of the next run,
// although its own was left. Where the process dies before it, the answer was a lie.
func TestLateSales(t *testing.T) {
	t.Parallel()
	s := openFile(t, described(t, "late", ""))
	if found := explored(t, s); found.Bad > 0 {
		t.Errorf("%d of %d are bad: %v", found.Bad, found.Runs, found.Causes())
	}
	leaves := func() explore.Chooser { return func(explore.Next) (int, error) { return 0, explore.ErrStop } }
	if _, err := s.Play(t.Context(), s.Plan(2), leaves); !errors.Is(err, explore.ErrStop) {
		t.Fatal(err)
	}
	r, err := s.PlaySchedule(t.Context(), "", 2, steptest.Parse(t, "A.update B.update A.insert"))
	if err != nil || len(r.Entries) != 4 || r.Outcome.Bad() {
		t.Errorf("after a run that was left: %+v %+v %v", r.Outcome, r.Entries, err)
	}
	r, err = s.Fault(t.Context(), schedule.Kill, 1, false)
	if err != nil || r.Outcome.Verdict != verdict.Lied {
		t.Errorf("killed after its UPDATE: %+v %v, want a lie", r.Outcome, err)
	}
	if r, err := s.Fault(t.Context(), schedule.Kill, 2, false); err != nil || r.Outcome.Verdict != verdict.Held {
		t.Errorf("killed after its INSERT: %+v %v", r.Outcome, err)
	}
	if r, err := s.Fault(t.Context(), schedule.Kill, 3, false); !errors.Is(err, step.ErrUnmet) {
		t.Errorf("killed after its INCR, with nothing more to send: %+v %v", r.Outcome, err)
	}
}

// TestWhoComesAfterAServerBroke: the second customer comes when Redis is there again, and another one in the place of
// one whose sale fails. Where nobody is sold anything, the place decides nothing.
func TestWhoComesAfterAServerBroke(t *testing.T) {
	t.Parallel()
	s := openFile(t, leased(t, "scripted"))
	for _, event := range []schedule.Event{schedule.Restart, schedule.Failover} {
		if r, err := s.Fault(t.Context(), event, 2, false); err != nil || r.Outcome.Cause != verdict.Forgotten || !r.Leaves || r.Behind != "A.select" {
			t.Errorf("%s: %+v, %v: both were to sell", event, r.Outcome, err)
		}
	}
	s = openFile(t, selling(t, "~redis INCR lock:{item}", "redis PEXPIRE lock:{item} 3000", read, write, order, unlock))
	if r, err := s.Fault(t.Context(), schedule.Kill, 2, false); err != nil || r.Outcome.Bad() || r.Undecided() != "" || r.Outcome.Answers["B"] != "sold" {
		t.Errorf("who counts the lock up until it ends: %+v, undecided: %q, %v", r.Outcome, r.Undecided(), err)
	}
	s = openFile(t, leased(t, "gives up"))
	r, err := s.Fault(t.Context(), schedule.Restart, 3, false)
	if err != nil || r.Outcome.Bad() || r.Undecided() != "B was answered with 500" || r.Outcome.Answers["A"] != "sold" {
		t.Errorf("who gives up: %+v, undecided: %q, %v", r.Outcome, r.Undecided(), err)
	}
}

// TestWhoComesAfterAnAnswerWasLost: the second customer is not held while the first one misses its answer.
func TestWhoComesAfterAnAnswerWasLost(t *testing.T) {
	t.Parallel()
	s := openFile(t, described(t, "hasty", ""))
	played, err := s.Fault(t.Context(), schedule.Lose, 0, false)
	again, err2 := s.InTime(t.Context(), "", 2, steptest.Parse(t, "lose:A A.select B.select"))
	if r, err := s.InTime(t.Context(), "", 2, steptest.Parse(t, "lose:A B.select A.select B.update")); err != nil || !strings.HasPrefix(r.Played.String(), "lose:A B.select A.select") {
		t.Errorf("a schedule that wants B before that: %s, %v", r.Played, err)
	}
	for _, r := range []schedule.Record{played, again} {
		failed := slices.ContainsFunc(r.Entries, func(e schedule.Entry) bool { return e.Note.Key == "note.another" })
		if failed || r.Undecided() != "" || r.Outcome.Bad() || r.Outcome.Answers["B"] != string(load.Sold) {
			t.Errorf("%s: B failed first: %t, %+v, undecided: %q, %v", r.Played, failed, r.Outcome, r.Undecided(), errors.Join(err, err2))
		}
	}
}

// TestAnAnswerBeforeTheSaleHasEnded: what a sale sends behind it is awaited, though no sale without a fault sends any.
func TestAnAnswerBeforeTheSaleHasEnded(t *testing.T) {
	t.Parallel()
	s := openFile(t, described(t, "impatient", `settle: 3s
background: ["^GET lock:", "^(INCR|DECR) taken:", "^(GET|SET) gone:"]`))
	r, err := s.InTime(t.Context(), "", 2, steptest.Parse(t, "A.set A.select wait B.set B.select B.update B.insert B.del"))
	if err != nil || r.Outcome.Verdict != verdict.Oversold || r.Outcome.Cause != verdict.Overrun || r.Outcome.Answers["A"] != string(load.Busy) {
		schedule.Draw(os.Stdout, words.English, r, 0)
		t.Errorf("%+v %v", r.Outcome, err)
	}
}

// TestAHeartbeatThatWasNotSeenBefore is learned when it comes behind an answer, and while nobody can go on: each would be a
// step, and the run have no end.
func TestAHeartbeatThatWasNotSeenBefore(t *testing.T) {
	for mode, left := range map[string]string{
		"waking":   "B.update", // which B does not send while A is awaited
		"blocking": "A.select", // which A sends with the token that B waits for
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			path := described(t, mode, "")
			s := openFile(t, path)
			sells(t, path)
			const most = 25 // in more than the 20 s for which nobody may be able to go on
			runs, beats := 0, 0
			r, err := s.Play(t.Context(), s.Plan(2), func() explore.Chooser {
				runs++
				follow := explore.Follow(nil)
				return func(next explore.Next) (int, error) {
					if runs > 1 || beats == most {
						return follow(next)
					}
					for i, o := range next.Options {
						if strings.HasPrefix(o.Choice.Step, "get") {
							beats++
						}
						if o.Choice.String() == "A.insert" { // and then A has its answer
							if _, err := seen.Until(t.Context(), time.Millisecond, func() (bool, error) {
								_, err := os.Stat(beatsOf(stepsOf(path), "1"))
								return err == nil, nil
							}); err != nil {
								return 0, err
							}
						}
						if o.Choice.String() != left {
							return i, nil
						}
					}
					return explore.LetTimePass, nil
				}
			})
			if err != nil || r.Outcome.Bad() || strings.Contains(r.Played.String(), "get") || beats == most {
				t.Errorf("%d beats were steps, and then %s: %+v, %v", beats, r.Played, r.Outcome, err)
			}
		})
	}
}

// beatsOf is the file that says that the heartbeat of a process has begun.
func beatsOf(steps, process string) string { return steps + ".beats" + process }

// TestAnAnswerThatTheDescriptionDoesNotName is neither stuck nor held. What the orders show stays.
func TestAnAnswerThatTheDescriptionDoesNotName(t *testing.T) {
	t.Parallel()
	path := described(t, "unnamed", "background: [^INCR nth]")
	sells(t, path, read, write, order)
	s := openFile(t, path)
	if r, err := s.InTime(t.Context(), "", 2, steptest.Parse(t, "A.select B.select")); err != nil || r.Outcome.Verdict != verdict.Oversold {
		t.Errorf("both have bought: %+v, %v", r.Outcome, err)
	}
	r, err := s.Fault(t.Context(), schedule.Kill, 2, false)
	if !errors.Is(err, explore.ErrGivenUp) || !strings.Contains(err.Error(), "who came afterwards was answered with 418, which the description does not know") {
		t.Errorf("killed between the stock and its order: %+v, %v", r.Outcome, err)
	}
}

// TestACrashIsFound: a sale that panics where it finds the item sold out.
func TestACrashIsFound(t *testing.T) {
	t.Parallel()
	s := openFile(t, described(t, "panics", ""))
	found := explored(t, s)
	if found.Bad == 0 || found.Shortest[0].Outcome.Cause != verdict.Crash {
		t.Errorf("%d of %d are bad: %v", found.Bad, found.Runs, found.Causes())
	}
}

// TestServicesThatDecideElsewhere hold: the stock in Redis is counted there, or by a request to a process of which
// nothing is held; a worker decides; a heartbeat and locked tables hinder nothing.
func TestServicesThatDecideElsewhere(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		mode  string
		texts []string // that are edited
		more  string
		fault schedule.Event
		want  verdict.Kind
	}{
		"counted in Redis":     {"redis", stockInRedis("SET stock:{item} {stock}", "left_redis: GET stock:{item}"), "", schedule.FlushAll, verdict.Left},
		"counted by a request": {"redis", stockInRedis("SET stock:{item} {stock}", `left_request: {path: "/items/{item}", value: left}`), "", schedule.Kill, verdict.Left},
		"decided by a worker": {"queue", []string{"/items/{item}/orders", "/queue/{item}"},
			"answers: {accepted: {status: [202]}, sold: {status: [410]}, sold_out: {status: [409]}}\noutcome: {path: \"/queue/{customer}\"}", schedule.Lose, verdict.Left},
		"with a heartbeat":    {"beating", nil, "", schedule.Lose, verdict.Held},
		"written by a worker": {"outbox", nil, "background: [^LPOP outbox, ^INSERT INTO orders]", schedule.Kill, verdict.Left},
		"with locked tables":  {"scripted", nil, "", schedule.Lose, verdict.Left},
	} {
		t.Run(name, func(t *testing.T) {
			path := edited(t, described(t, tt.mode, tt.more), tt.texts...)
			sells(t, path, "LOCK TABLES items WRITE, orders WRITE", "UPDATE items SET stock = stock - 1 WHERE id = {item} AND stock >= 1", order, "-UNLOCK TABLES")
			s := openFile(t, path)
			if found := explored(t, s); found.Bad > 0 || !found.Decided().Held() {
				t.Errorf("%d of %d are bad: %v, %s", found.Bad, found.Runs, found.Causes(), found.Decided())
			}
			s.Spare(tt.fault == schedule.FlushAll && s.KeepsStock())
			if r, err := s.Fault(t.Context(), tt.fault, 1, false); err != nil || r.Outcome.Verdict != tt.want {
				t.Errorf("%s: %+v %v, want %s", tt.fault, r.Outcome, err, tt.want)
			}
			if tt.mode == "outbox" { // A's order is noted, and the other process writes it
				if r, err := s.Fault(t.Context(), tt.fault, 2, false); err != nil || r.Outcome.Verdict != verdict.Held || r.Undecided() != "" || len(r.Outcome.Orders) != 1 {
					t.Errorf("%s of who has noted its order: %+v, undecided: %q, %v", tt.fault, r.Outcome, r.Undecided(), err)
				}
			}
		})
	}
}

// TestStockInAnotherDatabase of Redis, which a client selects when the first customer comes.
func TestStockInAnotherDatabase(t *testing.T) {
	t.Parallel()
	path := edited(t, described(t, "redis", ""), append(stockInRedis("SET stock:{item} {stock}", "left_redis: GET stock:{item}"), "{redis}", "{redis}/2")...)
	if p, err := started(t, path).Probe(t.Context()); err != nil || p.Judgement.Kind != verdict.Held {
		t.Errorf("%+v %v", p, err)
	}
}

// TestWhatDoesNotAddUp: who comes where a unit is left of which there are orders is sold it, too, or the orders and the stock do
// not add up. What a worker writes later does.
func TestWhatDoesNotAddUp(t *testing.T) {
	t.Parallel()
	s := open(t, "none")
	s.Spare(true)
	if r, err := s.InTime(t.Context(), "", 2, steptest.Parse(t, "A.select B.select")); err != nil || r.Outcome.Verdict != verdict.Oversold || r.Outcome.Cause != verdict.NoLock {
		t.Errorf("two write the same: %+v %v", r.Outcome, err)
	}
	s = openFile(t, described(t, "orders", ""))
	if r, err := s.Fault(t.Context(), schedule.Kill, 2, false); err != nil || !strings.HasPrefix(r.Sentence().String(), "unbalanced 1: 1 in orders and 1 left of a stock of 1: ") {
		t.Errorf("killed between its order and the stock: %s %v", r.Sentence(), err)
	}
	s = openFile(t, described(t, "recount", "background: [^UPDATE items SET stock = 0]"))
	if found := explored(t, s); found.Bad > 0 || !found.Decided().Held() {
		t.Errorf("counted by a worker: %d of %d are bad: %v, %s", found.Bad, found.Runs, found.Causes(), found.Decided())
	}
}

// TestAnOrderFromATable: who has noted its order there before its process was killed gets it from another one.
func TestAnOrderFromATable(t *testing.T) {
	t.Parallel()
	s := openFile(t, described(t, "relayed", "background: [FROM outbox]"))
	for steps, want := range map[int]verdict.Kind{1: verdict.Left, 2: verdict.Held} {
		if r, err := s.Fault(t.Context(), schedule.Kill, steps, false); err != nil || r.Outcome.Verdict != want || r.Undecided() != "" || len(r.Outcome.Orders) != steps-1 {
			t.Errorf("killed after %d: %+v, undecided: %q, %v, want %s", steps, r.Outcome, r.Undecided(), err, want)
		}
	}
}

// TestAUnitThatComesBackLate, of who was refused in contention, is none that is missing.
func TestAUnitThatComesBackLate(t *testing.T) {
	t.Parallel()
	on := started(t, described(t, "regretful", ""))
	bench := &trial.Bench{Service: service.Seller{Service: on}}
	for _, p := range on.Processes {
		bench.Shops = append(bench.Shops, trial.Shop{URL: p.URL})
	}
	r, err := trial.Run(t.Context(), bench, scenario.Described, []declared.Strategy{{Name: "regretful"}}, 1, trial.Options{})
	if err != nil || r[0].Verdict != verdict.Held {
		t.Errorf("%+v %v", r, err)
	}
}

// TestBackground: requests that belong to no sale, and that come only once there was one, are named in the
// description, or are learned where nobody buys.
func TestBackground(t *testing.T) {
	t.Parallel()
	for _, named := range []string{`background: ["^INCR polls$", "^GET left:"]`, ""} {
		s := openFile(t, described(t, "polling", named))
		if found := explored(t, s); found.Bad > 0 || found.Runs < 1 || len(found.Unreached) > 0 {
			t.Errorf("%s: %d of %d are bad: %v, unreached: %v", named, found.Bad, found.Runs, found.Causes(), found.Unreached)
		}
	}
}

// TestWhatTheIdleServiceSendsToo: what names the item of a sale is that sale's, and what names none is said to be no step.
func TestWhatTheIdleServiceSendsToo(t *testing.T) {
	t.Parallel()
	probe, s := opened(t, started(t, described(t, "warming", "")))
	if found := explored(t, s); found.Bad == 0 || found.Shortest[0].Outcome.Verdict != verdict.Left {
		t.Errorf("%d of %d are bad: %v: of two who both take a unit before they look, nobody gets one", found.Bad, found.Runs, found.Causes())
	}
	if got := probe.Beyond(); !slices.Equal(got, []string{"what comes without a sale, too, is no step: GET setting"}) {
		t.Errorf("%q", got)
	}
}

// TestReadsAreNoPolls, however often a sale reads the same key: another customer can come between, and a fault.
func TestReadsAreNoPolls(t *testing.T) {
	t.Parallel()
	path := edited(t, described(t, "hash", ""), stockInRedis("HSET item:{item} price 5 stock {stock}", "left_redis: HGET item:{item} stock")...)
	s := openFile(t, path)
	if found := explored(t, s); !found.Shows([]verdict.Cause{verdict.NoLock}) {
		t.Errorf("%d of %d are bad: %v", found.Bad, found.Runs, found.Causes())
	}
	if r, err := s.Fault(t.Context(), schedule.Kill, 5, false); err != nil || r.Outcome.Verdict != verdict.Left {
		t.Errorf("killed when it has taken its unit: %+v %v", r.Outcome, err)
	}
}

// TestThreeCustomers: a release of who has lost the lock frees the third one's way. Each customer needs a process.
func TestThreeCustomers(t *testing.T) {
	t.Parallel()
	order := steptest.Parse(t, "A.set A.select A.update A.insert A.commit wait B.set B.select A.del C.set C.select")
	if _, err := open(t, "set-ex-nx").InTime(t.Context(), "", 2, order); err == nil || !strings.Contains(err.Error(), "want processes: 3") {
		t.Errorf("three customers at two processes: %v", err)
	}
	r, err := open(t, "set-ex-nx", "processes: 3").InTime(t.Context(), "", 2, order)
	if err != nil || r.Outcome.Verdict != verdict.Oversold || r.Outcome.Cause != verdict.ForeignDelete {
		t.Errorf("%+v %v", r.Outcome, err)
	}
}

// TestAStageThatDidNotOpen is none.
func TestAStageThatDidNotOpen(t *testing.T) {
	t.Parallel()
	on := started(t, leased(t, "scripted"))
	probe, err := on.Probe(t.Context())
	if err == nil {
		_, err = on.DB.ExecContext(t.Context(), "DROP TABLE items")
	}
	if err != nil {
		t.Fatal(err)
	}
	if s, err := step.OpenService(t.Context(), on, probe); err == nil || s != nil {
		t.Errorf("%v, and an error: %v", s, err)
	}
}

// edited replaces texts of a description, in pairs of the old one and the new one.
func edited(t *testing.T, path string, texts ...string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.NewReplacer(texts...).Replace(string(text))), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// stockInRedis are the texts for [edited] of a service that keeps its stock in Redis, which is asked for by left.
func stockInRedis(set, left string) []string {
	return []string{"set: REPLACE INTO items (id, stock) VALUES ({item}, {stock})", "set_redis: " + set, "left: SELECT stock FROM items WHERE id = {item}", left}
}

// selling describes a service that sells by lines of [scripted].
func selling(t *testing.T, lines ...string) string {
	t.Helper()
	path := described(t, "scripted", "")
	sells(t, path, lines...)
	return path
}

// leased describes a service that sells under a lock with a lease of a second.
func leased(t *testing.T, mode string) string {
	t.Helper()
	path := described(t, mode, "")
	sells(t, path, "~redis SET lock:{item} {customer} NX PX 1000", read, write, order, unlock)
	return path
}

// openFile opens a stage on a described service.
func openFile(t *testing.T, path string) *step.Service {
	t.Helper()
	_, s := opened(t, started(t, path))
	return s
}

// started is the service that a file describes.
func started(t *testing.T, path string) *service.Service {
	t.Helper()
	f, err := service.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	on, err := service.Start(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := on.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return on
}

func opened(t *testing.T, on *service.Service) (*service.Probe, *step.Service) {
	t.Helper()
	probe, err := on.Probe(t.Context())
	if err != nil || probe.Judgement.Kind != verdict.Held || len(probe.Unseen) > 0 {
		t.Fatalf("the probe: %+v %v", probe, err)
	}
	s, err := step.OpenService(t.Context(), on, probe)
	if err != nil {
		t.Fatal(err)
	}
	return probe, s
}
