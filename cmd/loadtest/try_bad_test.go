package main

import (
	"context"
	"crypto/tls"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"stocklock/internal/lab/browsertest"
	"stocklock/internal/lab/seen"
	"stocklock/internal/redisconn"
	"stocklock/internal/testserver"
)

// badServiceEnv is set for processes in which this test binary is a service with something wrong. Its value says
// what.
const badServiceEnv = "LOADTEST_TEST_SERVICE"

// badService is a shop that sells right, with one thing wrong.
func badService(wrong string) error {
	if err := os.WriteFile(os.Getenv("PIDS")+"/"+strconv.Itoa(os.Getpid()), nil, 0o600); err != nil {
		return err
	}
	port := os.Getenv("PORT")
	switch wrong {
	case "ends at once":
		return fmt.Errorf("no such table: settings")
	case "another port":
		port = "0"
	}
	if wrong == "its environment" {
		return http.ListenAndServe("127.0.0.1:"+port, inMemory())
	}
	db, err := sql.Open("mysql", os.Getenv("MYSQL_DSN"))
	if err != nil {
		return err
	}
	if wrong == "around the proxy" {
		var itself int
		if err := db.QueryRow("SELECT @@port").Scan(&itself); err != nil {
			return err
		}
		if db, err = sql.Open("mysql", regexp.MustCompile(`:\d+\)`).ReplaceAllString(os.Getenv("MYSQL_DSN"), fmt.Sprintf(":%d)", itself))); err != nil {
			return err
		}
	}
	cache, err := redisconn.Open("redis://" + os.Getenv("REDIS"))
	if err != nil {
		return err
	}
	answer := func(r *http.Request) (int, error) {
		if wrong == "TLS to Redis" {
			if conn, err := tls.Dial("tcp", os.Getenv("REDIS"), &tls.Config{InsecureSkipVerify: true}); err == nil {
				conn.Close()
			}
		}
		if wrong == "without its lock it denies" {
			lock := "lock:" + r.PathValue("item")
			for cache.Do(r.Context(), "SET", lock, 1, "NX", "PX", 300).Value == nil {
				time.Sleep(10 * time.Millisecond)
			}
			status, err := readThenWrite(r, db)
			if cache.Do(r.Context(), "DEL", lock).Value == int64(0) {
				status = http.StatusConflict
			}
			return status, err
		}
		if wrong == "goes on without its lock" {
			lock := "lock:" + r.PathValue("item")
			for try := 0; try < 10 && cache.Do(r.Context(), "SET", lock, r.Header.Get("Customer"), "NX", "PX", 9000).Value == nil; try++ {
				time.Sleep(10 * time.Millisecond)
			}
			defer cache.Do(context.WithoutCancel(r.Context()), "DEL", lock)
			return readThenWrite(r, db)
		}
		if wrong == "read, then write" {
			return readThenWrite(r, db)
		}
		if wrong == "it waits when two items were sold twice" {
			status, err := readThenWrite(r, db)
			if sold := os.Getenv("PIDS") + "/sold-" + r.PathValue("item"); status == http.StatusCreated && os.Mkdir(sold, 0o700) != nil {
				_ = os.Mkdir(sold+"-twice", 0o700)
				if two, _ := soldTwice(os.Getenv("PIDS")); two {
					<-r.Context().Done()
				}
			}
			return status, err
		}
		if wrong == "guards the last unit alone" {
			var stock int
			if err := db.QueryRow("SELECT stock FROM items WHERE id = ?", r.PathValue("item")).Scan(&stock); err != nil {
				return 0, err
			}
			if stock > 1 {
				return readThenWrite(r, db)
			}
		}
		taken, err := db.ExecContext(r.Context(), "UPDATE items SET stock = stock - 1 WHERE id = ? AND stock > 0", r.PathValue("item"))
		if err != nil {
			return 0, err
		}
		if n, _ := taken.RowsAffected(); n == 0 {
			if wrong == "sold out is sold" {
				return http.StatusCreated, nil
			}
			return http.StatusConflict, nil
		}
		if wrong == "no order" {
			return http.StatusCreated, nil
		}
		if _, err := db.ExecContext(r.Context(), "INSERT INTO orders (item_id, customer) VALUES (?, ?)", r.PathValue("item"), r.Header.Get("Customer")); err != nil {
			return 0, err
		}
		if wrong == "sold is sold out" {
			return http.StatusConflict, nil
		}
		return http.StatusCreated, nil
	}
	http.HandleFunc("POST /items/{item}/orders", func(w http.ResponseWriter, r *http.Request) {
		status, err := answer(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.WriteHeader(status)
	})
	return http.ListenAndServe("127.0.0.1:"+port, nil)
}

func readThenWrite(r *http.Request, db *sql.DB) (int, error) {
	var stock int
	if err := db.QueryRow("SELECT stock FROM items WHERE id = ?", r.PathValue("item")).Scan(&stock); err != nil || stock < 1 {
		return http.StatusConflict, err
	}
	if _, err := db.Exec("UPDATE items SET stock = ? WHERE id = ?", stock-1, r.PathValue("item")); err != nil {
		return 0, err
	}
	_, err := db.Exec("INSERT INTO orders (item_id, customer) VALUES (?, ?)", r.PathValue("item"), r.Header.Get("Customer"))
	return http.StatusCreated, err
}

// soldTwice says whether two items were.
func soldTwice(pids string) (bool, error) {
	items, err := filepath.Glob(pids + "/sold-*-twice")
	return len(items) > 1, err
}

// inMemory is a shop without Redis and MySQL.
func inMemory() http.Handler {
	var mu sync.Mutex // guards the rest
	left, orders := map[string]int{}, map[string][]string{}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /items/{item}", func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var body struct{ Stock int }
		_ = json.NewDecoder(r.Body).Decode(&body) // the description sends it
		left[r.PathValue("item")], orders[r.PathValue("item")] = body.Stock, nil
	})
	mux.HandleFunc("GET /items/{item}", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_ = json.NewEncoder(w).Encode(map[string]any{"left": left[r.PathValue("item")], "customers": orders[r.PathValue("item")]})
	})
	mux.HandleFunc("POST /items/{item}/orders", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		item := r.PathValue("item")
		if left[item] < 1 {
			w.WriteHeader(http.StatusConflict)
			return
		}
		left[item]--
		orders[item] = append(orders[item], r.Header.Get("Customer"))
		w.WriteHeader(http.StatusCreated)
	})
	return mux
}

// TestTryBadServices: a service with something wrong has a clear line and its exit code, and leaves no process and
// no folder.
func TestTryBadServices(t *testing.T) {
	testserver.NeedsServers(t)
	for _, tt := range []struct {
		wrong string
		args  []string
		code  int
		says  []string
	}{
		{"TLS to Redis", nil, exitFailed, []string{"nothing can be said of: explore, faults", "not seen: TLS to Redis: give the service an address without it", "contention: held", "explore:    skipped: its requests are not all seen"}},
		{"TLS to Redis", []string{"--only", "explore"}, exitFailed, []string{"nothing can be said of: explore"}},
		{"its environment", []string{"--require", "contention"}, exitExpected, []string{"not seen: nothing of a sale came to {redis} or {mysql}: the service ignores its environment", "contention: held"}},
		{"around the proxy", []string{"--only", "contention,explore", "--require", "contention"}, exitExpected, []string{"not seen: connections came, and nothing of a sale: the service sells on connections around", "contention: held"}},
		{"no order", nil, exitSurprised, []string{"probe:      lied: customer 5000001 was answered as sold (201), and stock.orders found no order"}},
		{"sold out is sold", nil, exitSurprised, []string{"probe:      lied: the only unit of an item was sold, and the next customer"}},
		{"sold is sold out", nil, exitUsage, []string{"want sold"}},
		{"ends at once", nil, exitFailed, []string{"ended while it started", "no such table: settings"}},
		{"another port", nil, exitFailed, []string{"start.within is 5s; it must listen on 127.0.0.1 at {port}", "connection refused", "it has printed nothing"}},
	} {
		t.Run(fmt.Sprint(tt.wrong, tt.code), func(t *testing.T) {
			temp, pids := t.TempDir(), t.TempDir()
			t.Setenv("TMPDIR", temp)
			code, said := tryOf(t, append([]string{badlyDescribed(t, tt.wrong, pids)}, tt.args...)...)
			t.Logf("exit code %d\n%s", code, said)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			for _, words := range tt.says {
				if !strings.Contains(said, words) {
					t.Errorf("nothing says %q", words)
				}
			}
			leftBehind(t, temp, pids)
		})
	}
}

// cancels ends a context when a text was written.
type cancels struct {
	strings.Builder
	at     string
	cancel context.CancelFunc
}

func (c *cancels) Write(p []byte) (int, error) {
	n, err := c.Builder.Write(p)
	if strings.Contains(c.String(), c.at) {
		c.cancel()
	}
	return n, err
}

// TestTryInterrupted runs what mostly waits beside each other.
func TestTryInterrupted(t *testing.T) {
	testserver.NeedsServers(t)
	for name, test := range map[string]func(*testing.T){
		"between parts": interrupted, "while it searches": interruptedSearch, "while it confirms": foundStays, "by its time": timeIsUp, "after a finding": findingOfThree, "a wait that ends": findingOfAWait,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// interrupted: what was found before Ctrl-C stays, in the exit code and on the page.
func interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	pids, html := t.TempDir(), filepath.Join(t.TempDir(), "tried.html")
	out := &cancels{at: "contention: oversold", cancel: cancel}
	code := run(ctx, []string{"try", badlyDescribed(t, "read, then write", pids), "--out", html}, out, out)
	page := browsertest.Unpacked(t, html)
	if code != exitSurprised || !strings.Contains(page, `"verdict":"oversold"`) || !strings.Contains(page, `"reason":"interrupted`) {
		t.Errorf("exit code %d, said:\n%s\n%s", code, out, page)
	}
}

// interruptedSearch keeps what it has found and not played again: the first item that was sold twice.
func interruptedSearch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pids := t.TempDir()
	go func() {
		_, _ = seen.Until(ctx, time.Millisecond, func() (bool, error) { return soldTwice(pids) })
		cancel()
	}()
	var out strings.Builder
	code := run(ctx, []string{"try", badlyDescribed(t, "it waits when two items were sold twice", pids), "--only", "explore"}, &out, &out)
	if code != exitSurprised || !strings.Contains(out.String(), "explore:    oversold: every order of two sales: ") || !strings.Contains(out.String(), "; not all were played again; not all, since it was interrupted") {
		t.Errorf("exit code %d, said:\n%s", code, &out)
	}
}

// foundStays although Ctrl-C comes while the next cause of the same search is confirmed, and although the files
// cannot be written any more.
func foundStays(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	html := filepath.Join(t.TempDir(), "tried.html")
	out := &cancels{at: "--step 'A.set wait'", cancel: cancel}
	code := run(ctx, []string{"try", badlyDescribed(t, "without its lock it denies", t.TempDir()), "--only", "explore", "--out", html}, out, out)
	if code != exitSurprised || !strings.Contains(browsertest.Unpacked(t, html), `"verdict":"denied"`) || !strings.Contains(out.String(), "; not all, since it was interrupted") {
		t.Errorf("exit code %d, said:\n%s", code, out)
	}
	dir := filepath.Join(t.TempDir(), "out")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	out = &cancels{at: "probe:      lied", cancel: func() { os.RemoveAll(dir); _ = os.WriteFile(dir, nil, 0o600) }}
	if code := run(t.Context(), []string{"try", badlyDescribed(t, "sold out is sold", t.TempDir()), "--out", dir + "/tried.html"}, out, out); code != exitSurprised || !strings.Contains(out.String(), "not a directory") {
		t.Errorf("exit code %d, said:\n%s", code, out)
	}
}

// timeIsUp: what is not finished then is not held.
func timeIsUp(t *testing.T) {
	code, said := tryOf(t, badlyDescribed(t, "nothing", t.TempDir()), "--only", "contention", "--for", "1ms")
	if code != exitFailed || !strings.Contains(said, "contention: invalid: 1 of 3 rounds, since time was up: see --for") {
		t.Errorf("exit code %d, said:\n%s", code, said)
	}
}

// findingOfThree by the command that is shown with it, although the third customer makes no step of the
// shortest schedule.
func findingOfThree(t *testing.T) {
	shownAgain(t, "guards the last unit alone", "explore", "every order of two sales: ")
}

// findingOfAWait of a sale that goes on without the lock when its wait is over.
func findingOfAWait(t *testing.T) {
	shownAgain(t, "goes on without its lock", "faults", "oversold: a wait for the lock that ends before its holder goes on: ")
}

// shownAgain tries a service, and plays the schedule that a part says oversells.
func shownAgain(t *testing.T, wrong, part, says string) {
	t.Helper()
	path := badlyDescribed(t, wrong, t.TempDir())
	code, said := tryOf(t, path, "--only", part, "--fast")
	shown := regexp.MustCompile(`--step '([^']+)'`).FindAllStringSubmatch(said, -1)
	if code != exitSurprised || !strings.Contains(said, says) || shown == nil {
		t.Fatalf("exit code %d, said:\n%s", code, said)
	}
	last := shown[len(shown)-1][1]
	code, said = tryOf(t, path, "--step", last)
	if code != exitSurprised || !strings.Contains(said, "step:       oversold") {
		t.Errorf("%q: exit code %d, said:\n%s", last, code, said)
	}
}

func badlyDescribed(t *testing.T, wrong, pids string) (path string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Abs(examples + "/tables.sql")
	if err != nil {
		t.Fatal(err)
	}
	processes, within, stock := 2, "60s", `
  set: REPLACE INTO items (id, stock) VALUES ({item}, {stock})
  left: SELECT stock FROM items WHERE id = {item}
  orders: SELECT customer FROM orders WHERE item_id = {item}`
	if wrong == "another port" {
		within = "5s"
	}
	if wrong == "guards the last unit alone" {
		processes = 3
	}
	if wrong == "its environment" {
		processes, stock = 1, `
  set_request: {method: PUT, path: "/items/{item}", body: '{"stock": {stock}}'}
  left_request: {path: "/items/{item}", value: left}
  orders_request: {path: "/items/{item}", value: customers}`
	}
	path = filepath.Join(t.TempDir(), "service.yaml")
	text := fmt.Sprintf(`
name: a service with something wrong
start:
  command: [%q]
  processes: %d
  within: %s
  env: {%s: %q, PIDS: %q, PORT: "{port}", REDIS: "{redis}", MYSQL_DSN: "{mysql.dsn}"}
tables_file: %q
buy: {path: "/items/{item}/orders", headers: {Customer: "{customer}"}}
stock:%s
`, self, processes, within, badServiceEnv, wrong, pids, tables, stock)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// leftBehind wants an empty folder for temporary files, and no process of those that noted their numbers.
func leftBehind(t *testing.T, temp, pids string) {
	t.Helper()
	if entries, err := os.ReadDir(temp); err != nil || len(entries) > 0 {
		t.Errorf("left behind in the folder for temporary files: %v %v", entries, err)
	}
	noted, err := os.ReadDir(pids)
	if err != nil || len(noted) == 0 {
		t.Errorf("no process has started: %v", err)
	}
	for _, entry := range noted {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		if syscall.Kill(pid, 0) == nil {
			t.Errorf("process %d is left behind", pid)
		}
	}
}
