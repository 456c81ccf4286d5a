package shop

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/strategy"
	"stocklock/internal/testserver"
)

// running is a shop that serves on a real port, from a real database and Redis.
type running struct {
	*Shop
	t        *testing.T
	url      string
	staffURL string // empty without staff
	ofStaff  net.Listener
	internal string
	store    *stock.Store
	locks    strategy.Locks
	log      *logBuffer
	end      context.CancelFunc // what SIGTERM does
	ended    chan error         // what Serve returned
}

// open starts a shop and waits until it is ready. Change may alter its settings.
func open(t *testing.T, change func(*Config)) *running {
	t.Helper()
	s := openUnready(t, stocktest.Database(t), redisURL(t), change)
	testserver.Await(t, "the shop to be ready", func() bool { return s.get("/readyz").status == http.StatusOK })
	return s
}

// opened counts the shops that are open. Their tests do not run in parallel.
var opened int

func openUnready(t *testing.T, dsn, redisURL string, change func(*Config)) *running {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	store := stocktest.OpenAt(t, dsn)
	locks, client := openLocks(t, redisURL)
	log := &logBuffer{}
	cfg := Config{
		Name: "test-shop", Strategy: byName(t, "fenced-relative"),
		Deps: strategy.Deps{Store: store, Locks: locks, Options: strategy.Options{
			Lease: 10 * time.Second, Wait: 5 * time.Second, Retry: 5 * time.Millisecond,
		}},
		Log:            slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		StartupTimeout: time.Minute, DrainTimeout: 20 * time.Second, MaxInFlight: 1000, MaxConnections: 4000,
		PingInterval: 20 * time.Millisecond,
	}
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.UseLab(sleepy{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	internal, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var staff net.Listener
	staffURL := ""
	if cfg.Staff != nil {
		if staff, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		staffURL = "http://" + staff.Addr().String()
	}
	ctx, end := context.WithCancel(context.Background())
	r := &running{Shop: s, t: t, url: "http://" + listener.Addr().String(), staffURL: staffURL, ofStaff: staff, internal: "http://" + internal.Addr().String(), store: store, locks: locks, log: log, end: end, ended: make(chan error, 1)}
	served := make(chan struct{})
	go func() {
		defer close(served)
		r.ended <- s.Serve(ctx, listener, staff, internal)
	}()
	opened++
	t.Cleanup(func() {
		end()
		<-served
		_ = client.Close()
		_, _ = store.Close(), s.Deps.Store.Close() // which a test may have changed
		browser.CloseIdleConnections()
		if opened--; opened > 0 {
			return // another shop's probes come and go: the first to be opened is the last to be closed
		}
		goleak.VerifyNone(t, leaks, goleak.IgnoreAnyFunction("stocklock/internal/testserver.(*Process).start.func1")) // a server started again
	})
	return r
}

// sleepHeader makes a sale sleep at a point, "read 1s": it stands for slow work. With a name in pauses, as in "read NAME",
// the sale calls that function with the context of its request.
const sleepHeader = "Test-Sleep"

var pauses sync.Map

// gate returns a value of sleepHeader. Its sales stop at read until open is called, or until their requests end.
func gate(t *testing.T) (atRead string, open func()) {
	t.Helper()
	opened, name := make(chan struct{}), rand.Text()
	pauses.Store(name, func(request context.Context) {
		select {
		case <-opened:
		case <-request.Done():
		}
	})
	open = sync.OnceFunc(func() { close(opened) })
	t.Cleanup(open)
	return "read " + name, open
}

// sleepy is a lab that obeys sleepHeader.
type sleepy struct{}

func (sleepy) Requests(shop http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shop.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), sleepy{}, r)))
	})
}

func (sleepy) Holds(shop stock.Holder) stock.Holder { return shop }

func (sleepy) Sales(shop Sell) Sell {
	return func(ctx context.Context, wanted stock.Sale) (stock.Order, error) {
		client, sent := ctx.Value(sleepy{}).(*http.Request)
		if !sent { // a test has called the routes themselves
			return shop(ctx, wanted)
		}
		point, duration, asked := strings.Cut(client.Header.Get(sleepHeader), " ")
		if !asked {
			return shop(ctx, wanted)
		}
		pause, named := pauses.Load(duration)
		if !named {
			length, err := time.ParseDuration(duration)
			if err != nil {
				return stock.Order{}, Malformed(err.Error())
			}
			pause = func(context.Context) { time.Sleep(length) }
		}
		return shop(sale.WithHook(ctx, func(_ context.Context, p sale.Point, _ []slog.Attr) {
			if p == sale.Point(point) {
				pause.(func(context.Context))(client.Context())
			}
		}), wanted)
	}
}

func (sleepy) Views(shop View) View { return shop }

func (sleepy) Order(o stock.Order) any { return showToCustomer(o) }

func (sleepy) Close() error { return nil }

func (r *running) item(units int64) stock.Item {
	r.t.Helper()
	return stocktest.Item(r.t, r.store, units)
}

func (r *running) left(item stock.Item) (units int64) {
	r.t.Helper()
	return stocktest.Left(r.t, r.store, item.ID)
}

// answer is what a client saw.
type answer struct {
	status int
	header http.Header
	body   string
	last   bool // the server closes the connection after it
}

// problem is the slug of the answer's problem type, empty when it is none.
func (a answer) problem() string {
	var p problemBody
	if a.header.Get("Content-Type") != "application/problem+json" || json.Unmarshal([]byte(a.body), &p) != nil || p.Status != a.status {
		return ""
	}
	return strings.TrimPrefix(p.Type, "/problems/")
}

func (a answer) order(t *testing.T) publicOrder {
	t.Helper()
	var order publicOrder
	if err := json.Unmarshal([]byte(a.body), &order); err != nil || a.status >= 300 {
		t.Fatalf("answer %d %q is no order", a.status, a.body)
	}
	return order
}

func (r *running) get(path string) answer {
	r.t.Helper()
	return r.do(r.t.Context(), http.MethodGet, path, "", nil)
}

// buy orders one unit.
func (r *running) buy(item stock.Item, headers ...string) answer {
	r.t.Helper()
	header := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
	}
	return r.do(r.t.Context(), http.MethodPost, ordersPath(item), `{"quantity": 1}`, header)
}

func (r *running) do(ctx context.Context, method, path, body string, header http.Header) answer {
	r.t.Helper()
	a, err := r.try(ctx, method, path, body, header)
	if err != nil {
		r.t.Errorf("%s %s: %v", method, path, err)
	}
	return a
}

func (r *running) try(ctx context.Context, method, path, body string, header http.Header) (answer, error) {
	got, err := send(ctx, method, r.url+path, body, header)
	if err == nil {
		checkContract(r.t, method, path, header, got)
	}
	return got, err
}

// browser does not follow redirects: they are answers too.
var browser = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func send(ctx context.Context, method, url, body string, header http.Header) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if header != nil {
		request.Header = header
	}
	response, err := browser.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(text), response.Close}, err
}

// logBuffer keeps what a shop logs.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func decode(t *testing.T, a answer, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), into); err != nil {
		t.Fatalf("answer %d %q: %v", a.status, a.body, err)
	}
}

func byName(t testing.TB, name string) strategy.Strategy {
	t.Helper()
	by, err := strategy.Find(name, strategy.All())
	if err != nil {
		t.Fatal(err) // a copy may lack it
	}
	return by
}
