package strategy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/testserver"
)

// deps connects to a real Redis and a migrated database of the test's own.
func deps(t *testing.T) Deps {
	t.Helper()
	store, err := stock.Open(testserver.Database(t))
	if err != nil {
		t.Fatalf("open the store: %v", err)
	}
	t.Cleanup(func() { store.Close() })
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	client := redis.NewClient(&redis.Options{Addr: testserver.RedisAddr(t), MaxRetries: -1, PoolSize: 64})
	t.Cleanup(func() { client.Close() })
	return Deps{
		Redis: client, Store: store, Quorum: []redis.UniversalClient{client}, // a majority of one
		Options: Options{Lease: 9500 * time.Millisecond, Wait: 30 * time.Second, Retry: time.Millisecond},
	}
}

func newSeller(t *testing.T, s Strategy, d Deps) *Seller {
	t.Helper()
	seller := New(s, d)
	t.Cleanup(func() { seller.Close() })
	return seller
}

func item(t *testing.T, d Deps, units int64) stock.Item {
	t.Helper()
	item, err := d.Store.CreateItem(t.Context(), t.Name(), units)
	if err != nil {
		t.Fatalf("create item: %v", err)
	}
	return item
}

// TestContention sells one item from two sellers, as two processes would, and
// wants of each strategy what its property says: exactly the stock, or more.
func TestContention(t *testing.T) {
	const stockSize, demand = 20, 60
	d := deps(t)
	for _, s := range All() {
		t.Run(s.Name, func(t *testing.T) {
			it := item(t, d, stockSize)
			sellers := []*Seller{newSeller(t, s, d), newSeller(t, s, d)}
			// The work is long against a poll, so that an overlap is seen if it is possible.
			working := sale.WithHook(t.Context(), func(_ context.Context, p sale.Point, _ []slog.Attr) {
				if p == sale.Read {
					time.Sleep(5 * time.Millisecond)
				}
			})
			sold := make(chan bool, demand)
			var wg sync.WaitGroup
			for i := range demand {
				wg.Go(func() {
					_, err := sellers[i%2].Sell(working, stock.Sale{ItemID: it.ID, Quantity: 1, RequestID: fmt.Sprint(i), Shop: "test"})
					if err != nil && !errors.Is(err, stock.ErrSoldOut) {
						t.Errorf("Sell: %v", err)
					}
					sold <- err == nil
				})
			}
			wg.Wait()
			close(sold)
			units := 0
			for ok := range sold {
				if ok {
					units++
				}
			}
			if exclusive := s.Properties.Has(Exclusive); exclusive && units != stockSize || !exclusive && units <= stockSize {
				t.Errorf("sold %d of %d, and the strategy is exclusive: %v", units, stockSize, exclusive)
			}
		})
	}
}

// TestRecipes compares the commands that one sale sends to Redis with the
// recipe that the strategy is named after.
func TestRecipes(t *testing.T) {
	d := deps(t)
	var sent commandLog
	d.Redis.AddHook(&sent)
	for name, want := range map[string]string{
		"none":            "",
		"mutex":           "",
		"setnx":           "setnx; del",
		"setnx-expire":    "setnx; pexpire; del",
		"getset":          "setnx; del",
		"set-ex-nx":       "set nx px; del",
		"lua-setex":       "evalsha; evalsha",
		"owner-get-del":   "set nx px; get; del",
		"owner-watch":     "set nx px; watch; get; multi del exec",
		"owner-checked":   "set nx px; evalsha",
		"reentrant-fixed": "evalsha; evalsha",
		"reentrant-timer": "evalsha; evalsha",
		"reentrant":       "evalsha; evalsha",
		"redlock":         "set nx px; evalsha",
		"fenced":          "evalsha; evalsha",
		"for-update":      "",
		"optimistic":      "",
		"conditional":     "",
	} {
		t.Run(name, func(t *testing.T) {
			s, err := ByName(name)
			if err != nil {
				t.Fatal(err)
			}
			seller, it := newSeller(t, s, d), item(t, d, 2)
			for range 2 { // the first time loads the scripts
				sent.reset()
				if _, err := seller.Sell(t.Context(), stock.Sale{ItemID: it.ID, Quantity: 1, RequestID: "r", Shop: "test"}); err != nil {
					t.Fatalf("Sell: %v", err)
				}
			}
			if got := sent.String(); got != want {
				t.Errorf("one sale sent %q, want %q", got, want)
			}
		})
	}
}

// TestPointsComeInOrder wants of every strategy the points that the scenarios
// strike at.
func TestPointsComeInOrder(t *testing.T) {
	d := deps(t)
	section := []sale.Point{sale.Read, sale.Write, sale.Written}
	for _, s := range All() {
		t.Run(s.Name, func(t *testing.T) {
			want := sale.Points
			if s.Guard == "nothing" {
				want = section
			}
			var passed []sale.Point
			ctx := sale.WithHook(t.Context(), func(_ context.Context, p sale.Point, _ []slog.Attr) { passed = append(passed, p) })
			seller, it := newSeller(t, s, d), item(t, d, 1)
			if _, err := seller.Sell(ctx, stock.Sale{ItemID: it.ID, Quantity: 1, RequestID: "r", Shop: "test"}); err != nil {
				t.Fatalf("Sell: %v", err)
			}
			if !slices.Equal(passed, want) {
				t.Errorf("a sale passed %v, want %v", passed, want)
			}
		})
	}
}

// TestNested wants a sale that takes its own lock again to succeed exactly where
// the strategy is reentrant.
func TestNested(t *testing.T) {
	d := deps(t)
	d.Wait = 100 * time.Millisecond // shorter than the lease: no lock frees itself meanwhile
	for _, s := range All() {
		t.Run(s.Name, func(t *testing.T) {
			seller, it := newSeller(t, s, d), item(t, d, 1)
			_, err := seller.SellNested(t.Context(), stock.Sale{ItemID: it.ID, Quantity: 1, RequestID: "r", Shop: "test"})
			if s.Properties.Has(Reentrant) && err != nil {
				t.Errorf("SellNested: %v, want a sale: it is reentrant", err)
			}
			if !s.Properties.Has(Reentrant) && !errors.Is(err, ErrBusy) {
				t.Errorf("SellNested = %v, want ErrBusy: it is not reentrant", err)
			}
		})
	}
}

func TestGetSetTakesOverAnExpiredLock(t *testing.T) {
	d := deps(t)
	s := deadlineLock{d}
	ctx := t.Context()
	if held, err := s.try(ctx, "lock"); held == nil || err != nil {
		t.Fatalf("try on a free lock = %v, %v", held, err)
	}
	if held, err := s.try(ctx, "lock"); held != nil || err != nil {
		t.Errorf("try on a held lock = %v, %v, want neither", held, err)
	}
	ahead := s
	ahead.ClockSkew = 2 * d.Lease
	if held, err := ahead.try(ctx, "lock"); held == nil || err != nil {
		t.Errorf("try by a clock that runs ahead = %v, %v, want the lock: that is the flaw", held, err)
	}
	ahead.ServerClock = true
	if held, err := ahead.try(ctx, "lock"); held != nil || err != nil {
		t.Errorf("try by the server's clock = %v, %v, want neither: the skew must not matter", held, err)
	}
}

// TestReleaseLeavesAnothersLockAlone releases a lock that has passed to somebody
// else meanwhile.
func TestReleaseLeavesAnothersLockAlone(t *testing.T) {
	d := deps(t)
	ctx := t.Context()
	for _, tt := range []struct {
		name  string
		hold  lease
		frees bool
	}{
		{"plain DEL", plainDel{d.Redis, "lock"}, true},
		{"GET, DEL", getThenDel{d.Redis, "lock", "me"}, false},
		{"WATCH, DEL", watchedDel{d.Redis, "lock", "me"}, false},
		{"script", compareAndDelete{d.Redis, "lock", "me"}, false},
	} {
		if err := d.Redis.Set(ctx, "lock", "somebody else", 0).Err(); err != nil {
			t.Fatal(err)
		}
		_ = tt.hold.release(ctx) // whether it reports the loss differs, what it leaves matters
		left, err := d.Redis.Exists(ctx, "lock").Result()
		if err != nil || (left == 0) != tt.frees {
			t.Errorf("%s: somebody else's lock still there: %v, %v, want %v", tt.name, left == 1, err, !tt.frees)
		}
	}
}

// commandLog keeps the names of the commands that a client sends.
type commandLog struct {
	mu       sync.Mutex
	commands []string
}

func (l *commandLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.commands = nil
}

func (l *commandLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.commands, "; ")
}

func (l *commandLog) add(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.commands = append(l.commands, name)
}

func (l *commandLog) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (l *commandLog) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		l.add(summary(cmd))
		return next(ctx, cmd)
	}
}

func (l *commandLog) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		names := make([]string, len(cmds))
		for i, c := range cmds {
			names[i] = summary(c)
		}
		l.add(strings.Join(names, " "))
		return next(ctx, cmds)
	}
}

// summary is a command's name, with the options that make SET a lock.
func summary(cmd redis.Cmder) string {
	name := cmd.Name()
	if name != "set" {
		return name
	}
	var options []string
	for _, a := range cmd.Args()[3:] {
		if word, ok := a.(string); ok && slices.Contains([]string{"nx", "px", "ex"}, strings.ToLower(word)) {
			options = append(options, strings.ToLower(word))
		}
	}
	slices.Sort(options)
	return strings.Join(append([]string{name}, options...), " ")
}
