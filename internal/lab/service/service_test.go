package service

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/wire"
	"stocklock/internal/redisconn"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/testserver"
)

// TestMain is also the services of the tests: this program starts itself as one.
func TestMain(m *testing.M) {
	if mode := os.Getenv("SERVICE_MODE"); mode != "" {
		serve(mode)
		return
	}
	LongWatch = 5 * time.Second
	os.Exit(m.Run())
}

// serve is a shop that keeps its stock in memory. Mode is what is wrong with it.
func serve(mode string) {
	if mode == "never ready" {
		time.Sleep(time.Hour)
	}
	if strings.HasPrefix(mode, "robbed") {
		if answer, err := http.Get(os.Getenv("THIEF") + "/" + os.Getenv("PORT")); err == nil {
			answer.Body.Close()
		}
	}
	if mode == "tls" {
		conn, err := tls.Dial("tcp", os.Getenv("REDIS"), &tls.Config{InsecureSkipVerify: true})
		if err == nil {
			conn.Close()
		}
	}
	var cache redisconn.Client
	if mode == "locks" {
		cache, _ = redisconn.Open("redis://" + os.Getenv("REDIS"))
	}
	var mu sync.Mutex
	left, orders, many := map[string]int{}, map[string][]string{}, map[string]bool{}
	atLast, bothAt, looks := 0, make(chan struct{}), 0
	http.HandleFunc("PUT /items/{item}", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		item := r.PathValue("item")
		var body struct{ Stock int }
		_ = json.NewDecoder(r.Body).Decode(&body)
		left[item], orders[item], many[item] = body.Stock, nil, body.Stock > 1
	})
	http.HandleFunc("GET /items/{item}", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		item := r.PathValue("item")
		if looks++; mode == "late" && looks == lateLooks {
			left[item]--
		}
		type order struct {
			By string `json:"by"`
		}
		var all []order
		for _, by := range orders[item] {
			all = append(all, order{by})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"left": left[item], "orders": all})
	})
	http.HandleFunc("POST /items/{item}/buy", func(w http.ResponseWriter, r *http.Request) {
		item, by := r.PathValue("item"), r.Header.Get("Customer")
		if _, err := strconv.ParseInt(by, 10, 32); err != nil { // a column can be an INT
			w.WriteHeader(http.StatusTeapot)
			return
		}
		if cache != nil {
			cache.Do(r.Context(), "SET", "lock:"+item, 1, "NX", "PX", 500)
			defer cache.Do(r.Context(), "DEL", "lock:"+item)
		}
		mu.Lock()
		defer mu.Unlock()
		if left[item] < 1 {
			w.WriteHeader(http.StatusConflict)
			return
		}
		if mode == "slow" && many[item] && left[item] == 1 { // two sell the last unit, which each has read
			if atLast++; atLast == 2 {
				close(bothAt)
			}
			mu.Unlock()
			<-bothAt
			mu.Lock()
		}
		if looks = 0; mode != "late" {
			left[item]--
		}
		if mode != "liar" {
			orders[item] = append(orders[item], by)
		}
		if mode == "teapot" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	if err := http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// lateLooks is how often a late service is looked at, for its units and its orders, until a unit that it has sold is gone. Of a
// count that is still for two seconds there are fewer looks, and more of one that is for five.
const lateLooks = 49

// start starts the service of the tests with a mode, and a server that one that is robbed asks first. It is one process,
// since its stock is in memory.
func start(t *testing.T, mode, thief string) (*Service, error) {
	t.Helper()
	testserver.NeedsServers(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	within, ready := "60s", ""
	if mode == "never ready" {
		within = "3s"
	}
	if mode == "robbed" {
		ready = "/items/0"
	}
	file := filepath.Join(t.TempDir(), "service.yaml")
	text := fmt.Sprintf(`
start:
  command: [%q]
  processes: 1
  within: %s
  env: {SERVICE_MODE: %q, PORT: "{port}", REDIS: "{redis}", THIEF: %q}
ready: {path: %q}
buy: {path: "/items/{item}/buy", headers: {Customer: "{customer}"}}
stock:
  set_request: {method: PUT, path: "/items/{item}", body: '{"stock": {stock}}'}
  left_request: {path: "/items/{item}", value: left}
  orders_request: {path: "/items/{item}", value: orders.by}
`, self, within, mode, thief, ready)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Start(t.Context(), f)
	if err == nil {
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
	return s, err
}

func probed(t *testing.T, mode string) (*Service, *Probe, error) {
	t.Helper()
	s, err := start(t, mode, "")
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Probe(t.Context())
	return s, p, err
}

// TestAServiceThatCannotBeSeen is still contended, and its counts are right in both directions.
func TestAServiceThatCannotBeSeen(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]verdict.Kind{"good": verdict.Held, "slow": verdict.Oversold} {
		s, p, err := probed(t, mode)
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		if len(p.Unseen) != 1 || !strings.Contains(p.Unseen[0], "ignores its environment") {
			t.Errorf("%s: unseen: %q", mode, p.Unseen)
		}
		var story bytes.Buffer
		p.Print(&story)
		if !strings.Contains(story.String(), "one sale: answered with 201, sold") || !strings.Contains(story.String(), "not seen: ") {
			t.Errorf("%s: the story is\n%s", mode, &story)
		}
		bench := &trial.Bench{Service: Seller{Service: s}, Shops: []trial.Shop{{URL: s.Processes[0].URL}}}
		r, err := trial.Run(t.Context(), bench, scenario.Described, []declared.Strategy{{Name: mode}}, 1, trial.Options{})
		if err != nil || r[0].Verdict != want || r[0].Requests < scenario.DescribedCustomers {
			t.Errorf("%s: %+v %v, want %s", mode, r, err, want)
		}
	}
}

// TestAStoreThatIsNotSeen is said, although the lock is seen that the service has in Redis.
func TestAStoreThatIsNotSeen(t *testing.T) {
	t.Parallel()
	s, p, err := probed(t, "locks")
	if err != nil || len(p.Sold) != 2 || len(p.Unseen) != 1 || !strings.Contains(p.Unseen[0], "nothing of it to {mysql}") {
		t.Errorf("%+v %v", p, err)
	}
	if s.File.Stock.LeftRedis = "GET stock:{item}"; len(s.unseen(p)) > 0 {
		t.Errorf("the stock is in Redis: %v", s.unseen(p))
	}
}

// TestAWorkerThatIsLate is no unit too many, where nobody has seen one, and where one was seen.
func TestAWorkerThatIsLate(t *testing.T) {
	t.Parallel()
	s, p, err := probed(t, "late")
	if err != nil || p.Judgement.Kind != verdict.Held || !p.AfterAnswer {
		t.Fatalf("%+v %v", p, err)
	}
	item, addsUp := s.NewItem(), func(left int64, orders []Order) bool { return left+int64(len(orders)) == 1 }
	if err := s.SetStock(t.Context(), item, 1); err != nil {
		t.Fatal(err)
	}
	s.Buy(t.Context(), s.Processes[0], s.NewSale(item))
	still, err := s.Still(t.Context(), item, addsUp)
	if left, fails := s.Left(t.Context(), item); left != 0 || !still || err != nil || fails != nil {
		t.Errorf("%d left, at rest: %v, %v %v", left, still, err, fails)
	}
}

func TestALieIsFound(t *testing.T) {
	t.Parallel()
	_, p, err := probed(t, "liar")
	if err != nil || p.Judgement.Kind != verdict.Lied || !strings.Contains(p.Reason, "found no order") {
		t.Errorf("%+v %v", p, err)
	}
}

func TestAnAnswerThatTheDescriptionDoesNotKnow(t *testing.T) {
	t.Parallel()
	_, _, err := probed(t, "teapot")
	if err == nil || !strings.Contains(err.Error(), "418") || !strings.Contains(err.Error(), "no line of answers reads so") {
		t.Errorf("%v", err)
	}
}

func TestTLSIsSaid(t *testing.T) {
	t.Parallel()
	_, p, err := probed(t, "tls")
	if err != nil || !strings.Contains(strings.Join(p.Unseen, "\n"), "TLS to Redis") {
		t.Errorf("%+v %v", p, err)
	}
}

// TestAServiceThatNeverGetsReady ends with its reason, and leaves no process.
func TestAServiceThatNeverGetsReady(t *testing.T) {
	t.Parallel()
	if _, err := start(t, "never ready", ""); err == nil || !strings.Contains(err.Error(), "start.within is 3s") {
		t.Errorf("%v", err)
	}
}

// TestAPortThatAnotherProgramTakes before the service listens there: it is started at another one. Where the program is taken
// for the service, nothing is said of what it answers.
func TestAPortThatAnotherProgramTakes(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"robbed", "robbed, and takes its time"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			var once sync.Once
			fails := make(chan struct{})
			thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				once.Do(func() {
					taken, err := net.Listen("tcp", "127.0.0.1:"+path.Base(r.URL.Path))
					if err != nil {
						t.Error(err)
						return
					}
					t.Cleanup(func() { taken.Close() })
					go http.Serve(taken, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						switch {
						case r.URL.Path == "/items/0":
							w.WriteHeader(http.StatusNotFound)
						case r.Method == http.MethodPost:
							w.WriteHeader(http.StatusCreated)
						default:
							fmt.Fprint(w, `{"left": 1, "orders": []}`)
						}
					}))
					if mode != "robbed" {
						<-fails
					}
				})
			}))
			t.Cleanup(thief.Close)
			s, err := start(t, mode, thief.URL)
			if err != nil {
				t.Fatal(err)
			}
			close(fails)
			want := "has ended; it printed:\nlisten tcp"
			if mode == "robbed" {
				want = "<nil>"
			} else {
				testserver.Await(t, "the end of who was robbed", func() bool { return !s.Processes[0].Alive() })
			}
			if p, err := s.Probe(t.Context()); p != nil && p.Judgement.Kind != verdict.Held || !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%+v %v", p, err)
			}
		})
	}
}

// TestWhatIsBeyond: what a held part does not speak of is said.
func TestWhatIsBeyond(t *testing.T) {
	for sent, want := range map[string]string{
		"UPDATE shedlock SET lock_until = '2026-01-01' WHERE name = 'a' AND lock_until <= '2025-01-01'": "leases in rows were not ended",
		"UPDATE leases SET ends = NOW(3) + INTERVAL 1 SECOND WHERE ends < NOW(3)":                       "leases in rows were not ended",
		"INSERT INTO orders (item_id, customer, made) VALUES (1, 'lease', NOW())":                       "",
		"UPDATE items SET stock = stock - 1 WHERE id = 1 AND sale_ends > NOW()":                         "",
		"UPDATE jobs SET owner = 'a', ends = '2026-01-01' WHERE id = 1 AND ends < NOW()":                "leases in rows were not ended",
		"UPDATE INT_LOCK SET MADE = '2026-01-01 00:00:10' WHERE ID = 'k' AND MADE < '2026-01-01'":       "leases in rows were not ended",
		"DELETE FROM locks WHERE made<'(a time)'\nINSERT INTO locks (made) VALUES ('(a time)')":         "leases in rows were not ended",
		"UPDATE locks SET taken = 1764362400123 WHERE id = 1 AND taken < 1764362390123":                 "leases in rows were not ended",
		"UPDATE items SET stock = 0 WHERE id = 1 AND sale_ends > '2026-01-01'":                          "",
		"DELETE FROM carts WHERE made < '2026-01-01'\nINSERT INTO orders (made) VALUES ('2026-01-02')":  "",
		"UPDATE items SET stock = 0 WHERE id = 1 AND code < '1764362400'":                               "",
		"INSERT INTO orders (item_id, released_at) VALUES (1, NULL)":                                    "",
		"CALL buy(1)":                           "what a CALL does inside is one step",
		"SETNX lock:1009 1764362400123":         "leases in values of Redis were not ended",
		"SET lock:1009 1764362400 nx":           "leases in values of Redis were not ended",
		"SET page:1009 1764362400 NX EX 9":      "",
		"SETNX lock:1009 1764362400.25":         "leases in values of Redis were not ended",
		"GETSET lock:1009 1764362400123456":     "leases in values of Redis were not ended",
		"HSETNX locks 1009 1764362400123456789": "leases in values of Redis were not ended",
		"SETNX lock:1009 13812345678":           "",
		"SETNX lock:1009 1009":                  "",
		"SETNX lock:1764362400 me":              "",
		"ZADD sem:1009 1764362400.5 c1":         "",
		"ZREMRANGEBYSCORE sem:1009 -inf 1764362390.5\nZADD sem:1009 1764362400.5 c1": "leases in values of Redis were not ended",
		"MULTI; ZCOUNT sem:1009 1 2; ZADD sem:1009 1764362400.5 c1; EXEC":            "leases in values of Redis were not ended",
		"HGET lock:1009 until\nHSET lock:1009 owner me until 1764362400":             "leases in values of Redis were not ended",
		"HGET item:1009 stock\nHSET order:1009 made 1764362400":                      "",
		"GET lock:1009\nSET lock:1009 1764362400":                                    "leases in values of Redis were not ended",
		"GET lock:1009\nSET lock:1009 1764362400 PX 9":                               "",
		"UPDATE items SET stock = 0 WHERE note = 'a; b'; COMMIT":                     "several statements in one text are one step",
	} {
		p := &Probe{}
		for line := range strings.SplitSeq(sent, "\n") {
			server := wire.Redis
			if writes.MatchString(line) || strings.HasPrefix(line, "DELETE ") || procedure.MatchString(line) {
				server = wire.MySQL
			}
			p.Sold = append(p.Sold, schedule.Sent{Server: server, Sent: line})
		}
		if got := strings.Join(p.Beyond(), "; "); got != want {
			t.Errorf("%s: %q, want %q", sent, got, want)
		}
	}
	// An idle service reads another item beside each sale: that of a sale is a step.
	own, idle := "SELECT stock FROM items WHERE id = 7", []string{"GET setting", "SELECT stock FROM items WHERE id = ?"}
	p := &Probe{Sold: []schedule.Sent{{Server: wire.MySQL, Sent: own}}, Background: idle, everySale: idle}
	if got := p.Beyond(); len(got) != 1 || !strings.HasSuffix(got[0], idle[0]) {
		t.Errorf("%q, want %s alone", got, idle[0])
	}
}
