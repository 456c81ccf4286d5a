// Package strategytest holds the tests that every strategy must pass, against real servers.
package strategytest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/strategy"
	"stocklock/internal/testserver"
)

// Subject is a strategy with what its tests must know of it. The zero value of the rest is that of a strategy
// that holds and has one stock: the item's row.
type Subject struct {
	strategy.Strategy
	Points []sale.Point // those that a sale can pass, in order; see package sale

	Oversells bool // under contention, which its lock does not keep out
	ByClock   bool // it compares the time with that of other machines
	Expires   bool // its lock's keys in Redis expire
	Starves   bool // its sales may end each other's tries until they give up
	Elsewhere bool // units are counted in Redis, so a refused sale waits for nobody

	Prepare func(ctx context.Context, store *stock.Store, itemID uint64) error // makes an item ready; may be nil
	View    func(t *testing.T, d strategy.Deps, item stock.Item)               // tests its page views; may be nil
	Lacks   func(t *testing.T, d strategy.Deps) string                         // why this Redis cannot run it; may be nil
}

func (s Subject) guarded() bool { return slices.Contains(s.Points, sale.Acquiring) }

// All runs the tests that need nothing but the strategies themselves: what they say of themselves,
// single customers, contention, the points of a sale, and sales of several items.
func All(t *testing.T, of []Subject) {
	t.Run("Describes", func(t *testing.T) { describes(t, of) })
	t.Run("Singly", func(t *testing.T) { sellsSingly(t, of) })
	t.Run("Contention", func(t *testing.T) { contention(t, of) })
	t.Run("Points", func(t *testing.T) { pointsComeInOrder(t, of) })
	t.Run("Waiting", func(t *testing.T) { refusedSalesWait(t, of) })
	t.Run("Baskets", func(t *testing.T) { baskets(t, of) })
}

// Deps connects to a real Redis and a migrated database of the test's own, with parameters of the
// connection. No statement ends by its socket: one that waits for several rows is longer under way than
// the server waits for each.
func Deps(t *testing.T, parameters ...string) strategy.Deps {
	t.Helper()
	dsn := stocktest.Database(t) + "?readTimeout=1m" + strings.Join(parameters, "")
	store := stocktest.OpenAt(t, dsn, stock.WithExtraTime(time.Minute))
	client := redis.NewClient(&redis.Options{Addr: testserver.RedisAddr(t), MaxRetries: -1, PoolSize: 64})
	t.Cleanup(func() { client.Close() })
	return strategy.Deps{
		Locks: strategy.Locks{Redis: client, Quorum: []redis.UniversalClient{client}}, Store: store, // a majority of one
		Options: strategy.Options{Lease: 9500 * time.Millisecond, Wait: 30 * time.Second, Retry: time.Millisecond},
	}
}

// NewSeller builds a seller that ends with the test.
func NewSeller(t *testing.T, s strategy.Strategy, d strategy.Deps) *strategy.Seller {
	t.Helper()
	seller := strategy.New(s, d)
	t.Cleanup(func() { seller.Close(context.Background()) })
	return seller
}

// NewSeller builds a seller that ends with the test. It skips the test where the Redis cannot run the
// strategy.
func (s Subject) NewSeller(t *testing.T, d strategy.Deps) *strategy.Seller {
	t.Helper()
	if s.Lacks != nil {
		if why := s.Lacks(t, d); why != "" {
			t.Skipf("%s %s: run the test with its folder at the front of the PATH", s.Name, why)
		}
	}
	return NewSeller(t, s.Strategy, d)
}

// NewItem creates an item with so many units, and prepares it for the strategy.
func (s Subject) NewItem(t *testing.T, d strategy.Deps, units int64) stock.Item {
	t.Helper()
	item := stocktest.Item(t, d.Store, units)
	if s.Prepare != nil {
		if err := s.Prepare(t.Context(), d.Store, item.ID); err != nil {
			t.Fatalf("prepare an item for %s: %v", s.Name, err)
		}
	}
	return item
}

func describes(t *testing.T, of []Subject) {
	name := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	seen := map[string]bool{}
	for _, s := range of {
		if !name.MatchString(s.Name) {
			t.Errorf("strategy %q: the name must be lower-case words joined by hyphens", s.Name)
		}
		if seen[s.Name] {
			t.Errorf("strategy %q is listed twice", s.Name)
		}
		seen[s.Name] = true
		if s.Doc == "" || strings.ContainsAny(s.Doc, "\n|") {
			t.Errorf("strategy %s: Doc is %q, want one line that fits into a table", s.Name, s.Doc)
		}
		if s.Build == nil {
			t.Errorf("strategy %s cannot be built", s.Name)
		}
	}
}

// sellsSingly sells one unit after the other. Nobody is told sold out while units are left. The
// process's clock is slow, where the strategy needs none.
func sellsSingly(t *testing.T, of []Subject) {
	const units = 16
	d := Deps(t)
	for _, s := range of {
		t.Run(s.Name, func(t *testing.T) {
			d := d
			if !s.ByClock {
				d.Now = func() time.Time { return time.Now().Add(-time.Hour) }
			}
			seller, it := s.NewSeller(t, d), s.NewItem(t, d, units)
			for i := range units + 1 {
				_, err := seller.Sell(t.Context(), stock.Sale{ItemID: it.ID, Quantity: 1, RequestID: fmt.Sprint(i), Shop: "test"})
				if i < units && err != nil || i == units && !errors.Is(err, stock.ErrSoldOut) {
					t.Fatalf("sale %d of %d units: %v", i+1, units, err)
				}
			}
		})
	}
}

// contention sells one item from two sellers, as two processes would. A strategy sells exactly the
// stock, or it oversells. Who is told busy asks again: not every lock promises a turn.
// Nor does a strategy that starves: its sales give up.
func contention(t *testing.T, of []Subject) {
	const stockSize, demand = 21, 60
	d := Deps(t)
	for _, s := range of {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			it := s.NewItem(t, d, stockSize)
			sellers := []*strategy.Seller{s.NewSeller(t, d), s.NewSeller(t, d)}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // if its sales do not meet, and it should oversell
			defer cancel()
			met := newMeeting(ctx, demand)
			sold := make(chan bool, demand)
			var wg sync.WaitGroup
			for i := range demand {
				wg.Go(func() {
					err := strategy.ErrBusy
					for errors.Is(err, strategy.ErrBusy) || s.Starves && errors.Is(err, stock.ErrConflict) {
						_, err = sellers[i%2].Sell(met.of(ctx, i, s), stock.Sale{ItemID: it.ID, Quantity: 1, RequestID: fmt.Sprint(i), Shop: fmt.Sprintf("test-%d", i%2)})
						met.leaves(i)
					}
					met.ends(i)
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
			if s.Oversells && units <= stockSize || !s.Oversells && units != stockSize {
				t.Errorf("sold %d of %d, and the strategy oversells: %v", units, stockSize, s.Oversells)
			}
		})
	}
}

// meeting lets a sale write only while another one has read. So the sale of the last unit is never alone,
// and a strategy that lets two in oversells for certain. From one that does not, nobody else comes, so its
// sales wait for a moment, in which a second would read if it could.
type meeting struct {
	mu      sync.Mutex
	changed sync.Cond
	read    map[int]bool // the sales that have read and have not ended
	writer  int          // the one that has been let go on, or nobody
	left    [2]int       // of each seller, the sales that have not ended
}

const nobody = -1

func newMeeting(ctx context.Context, sales int) *meeting {
	m := &meeting{read: map[int]bool{}, writer: nobody, left: [2]int{sales / 2, sales / 2}}
	m.changed.L = &m.mu
	context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.changed.Broadcast()
	})
	return m
}

// of returns the context of a sale. It waits at its last point before the others can read what it writes.
func (m *meeting) of(ctx context.Context, i int, s Subject) context.Context {
	reads, waits := sale.Read, sale.Read
	if s.Name == "snapshot-before-lock" {
		reads = sale.Waiting
	}
	if slices.Index(s.Points, sale.Written) > slices.Index(s.Points, sale.Released) && s.guarded() {
		waits = sale.Released
	}
	return sale.WithHook(ctx, func(_ context.Context, p sale.Point, _ []slog.Attr) {
		if !s.Oversells {
			if p == sale.Read {
				time.Sleep(5 * time.Millisecond)
			}
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if p == reads || p == waits {
			m.read[i] = true
			m.changed.Broadcast()
		}
		if p == waits {
			for ctx.Err() == nil && (m.writer != nobody || len(m.read) < 2 && m.left[1-i%2] > 0) {
				m.changed.Wait()
			}
			m.writer = i
		}
	})
}

// leaves says that a try of sale i has ended, and ends that the sale has.
func (m *meeting) leaves(i int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.read, i)
	if m.writer == i {
		m.writer = nobody
	}
	m.changed.Broadcast()
}

func (m *meeting) ends(i int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left[i%2]--
	m.changed.Broadcast()
}

// passage notes the points that a sale passes.
type passage struct {
	mu     sync.Mutex
	passed []sale.Point
}

// of returns the context of the sale. It calls at, if that is not nil, at each point.
func (p *passage) of(t *testing.T, at func(sale.Point)) context.Context {
	return sale.WithHook(t.Context(), func(_ context.Context, point sale.Point, _ []slog.Attr) {
		p.mu.Lock()
		p.passed = append(p.passed, point)
		p.mu.Unlock()
		if at != nil {
			at(point)
		}
	})
}

func (p *passage) points() []sale.Point {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.passed)
}

// pointsComeInOrder wants of a sale that is not refused the points of its strategy.
func pointsComeInOrder(t *testing.T, of []Subject) {
	d := Deps(t)
	for _, s := range of {
		t.Run(s.Name, func(t *testing.T) {
			points := s.Points
			answered := slices.Index(points, sale.Answered) // by the shop
			want := slices.DeleteFunc(slices.Clone(points[:answered]), func(p sale.Point) bool { return p == sale.Waiting })
			later := slices.DeleteFunc(slices.Clone(points[answered+1:]), func(p sale.Point) bool { return slices.Contains(sale.ViewPoints, p) })
			var p passage
			seller, it := s.NewSeller(t, d), s.NewItem(t, d, 1)
			if s.View != nil {
				s.View(t, d, it)
			}
			wanted := stock.Sale{ItemID: it.ID, Quantity: 1, RequestID: "r", Shop: "test"}
			inside := func(point sale.Point) {
				if point == sale.Read && s.Expires {
					endsByItself(t, d, seller.LockKey(wanted))
				}
			}
			if _, err := seller.Sell(p.of(t, inside), wanted); err != nil {
				t.Fatalf("Sell: %v", err)
			}
			for _, point := range later {
				testserver.Await(t, fmt.Sprintf("the point %s in the background", point), func() bool { return slices.Contains(p.points(), point) })
			}
			passed := p.points()
			if len(later) > 0 && len(passed) > len(want) {
				passed = passed[:len(want)]
			}
			if !slices.Equal(passed, want) {
				t.Errorf("a sale passed %v, want %v", passed, want)
			}
		})
	}
}

// endsByItself wants what a lock keeps in Redis to expire: with the lease, or a minute after its last use.
func endsByItself(t *testing.T, d strategy.Deps, lock string) {
	keys := d.Redis.Keys(t.Context(), "*"+lock+"*").Val()
	if len(keys) == 0 {
		t.Error("the sale is in its section, and Redis has no lock")
	}
	for _, key := range keys {
		if left := d.Redis.PTTL(t.Context(), key).Val(); left <= 0 || left > max(d.Lease, time.Minute) {
			t.Errorf("%s lives for %s, and the lease is %s", key, left, d.Lease)
		}
	}
}

// refusedSalesWait runs two sales, of one process and of two. Of the two, one is refused.
func refusedSalesWait(t *testing.T, of []Subject) {
	d := Deps(t)
	for _, s := range of {
		switch {
		case s.Elsewhere || !slices.Contains(s.Points, sale.Waiting): // tested where they are
			continue
		case s.Name != "batched" && !s.Oversells: // the others refuse inside one process
			t.Run(s.Name+" in two processes", func(t *testing.T) { oneOfTwoWaits(t, s, d, false) })
		}
		t.Run(s.Name, func(t *testing.T) { oneOfTwoWaits(t, s, d, true) })
	}
}

// oneOfTwoWaits holds a sale where others can find its lock taken, until the other one has passed
// waiting or has its answer.
func oneOfTwoWaits(t *testing.T, s Subject, d strategy.Deps, oneProcess bool) {
	inside, kept, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{})
	hold := sync.OnceFunc(func() {
		close(inside)
		<-goOn
	})
	refused := sync.OnceFunc(func() { close(kept) })
	holdAt := sale.Read
	if s.Name == "batched" { // its sales queue after that point, behind one that leads
		d.Batched, holdAt = func(int, time.Duration) { hold() }, ""
	}
	it := s.NewItem(t, d, 1)
	sellers := []*strategy.Seller{s.NewSeller(t, d), nil}
	if sellers[1] = sellers[0]; !oneProcess {
		sellers[1] = s.NewSeller(t, d)
	}
	var sales [2]passage
	var wg sync.WaitGroup
	sell := func(i int, at func(sale.Point)) {
		// One customer's, at one shop: so they have the same lock whatever names it.
		_, err := sellers[i].Sell(sales[i].of(t, at), stock.Sale{ItemID: it.ID, Quantity: 1, Subject: "c", RequestID: fmt.Sprint(i), Shop: "test"})
		if err != nil && !errors.Is(err, stock.ErrSoldOut) {
			t.Errorf("Sell: %v", err)
		}
	}
	wg.Go(func() {
		sell(0, func(p sale.Point) {
			if p == holdAt {
				hold()
			}
		})
	})
	<-inside
	wg.Go(func() {
		defer refused()
		sell(1, func(p sale.Point) {
			if p == sale.Waiting {
				refused()
			}
		})
	})
	<-kept
	close(goOn)
	wg.Wait()
	times := 0
	for i := range sales {
		passed := sales[i].points()
		for at, p := range passed {
			if p != sale.Waiting {
				continue
			}
			times++
			if s.guarded() && at != 0 {
				t.Errorf("sale %d passed %v: a guard refuses before anything else", i, passed)
			}
		}
	}
	if times != 1 {
		t.Errorf("the sales passed waiting %d times: %v and %v", times, sales[0].points(), sales[1].points())
	}
}

// Recipes compares the commands that one sale sends to Redis with those that are wanted of it, by
// the strategy's name. All strategies must be there. Those without a command must declare that.
func Recipes(t *testing.T, of []Subject, want map[string]string) {
	d := Deps(t)
	var sent commandLog
	d.Redis.AddHook(&sent)
	for _, s := range of {
		t.Run(s.Name, func(t *testing.T) {
			recipe, known := want[s.Name]
			if !known {
				t.Fatal("no recipe is written down for it")
			}
			if s.WithoutRedis != (recipe == "") {
				t.Errorf("it declares that it needs no Redis: %t, and its recipe is %q", s.WithoutRedis, recipe)
			}
			seller, it := s.NewSeller(t, d), s.NewItem(t, d, 2)
			for range 2 { // the first time loads the scripts
				sent.reset()
				if _, err := seller.Sell(t.Context(), stock.Sale{ItemID: it.ID, Quantity: 1, RequestID: "r", Shop: "test"}); err != nil {
					t.Fatalf("Sell: %v", err)
				}
			}
			if got := sent.String(); got != recipe {
				t.Errorf("one sale sent %q, want %q", got, recipe)
			}
		})
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

// Repeats has the database end what a sale does after the point, because another transaction has
// locked the rows. The statement locks the rows of an item. The sale has to try again, and to be
// made.
func Repeats(t *testing.T, s Subject, point sale.Point, lock string) {
	t.Helper()
	d := Deps(t, "&innodb_lock_wait_timeout=1")
	item := s.NewItem(t, d, 1)
	tx, err := d.Store.Pool().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	waiters := map[string]bool{}
	var releasing sync.WaitGroup
	defer releasing.Wait()
	meet := sync.OnceFunc(func() {
		if _, err := tx.ExecContext(t.Context(), lock, item.ID); err != nil {
			t.Error(err)
		}
		releasing.Go(func() {
			testserver.Await(t, "a second wait for the row", func() bool {
				time.Sleep(stocktest.LockWaitsStay)
				ids, _ := stocktest.LockWaits(t.Context(), d.Store)
				for _, id := range ids {
					waiters[id] = true
				}
				return len(waiters) > 1
			})
			tx.Rollback()
		})
	})
	ctx := sale.WithHook(t.Context(), func(_ context.Context, p sale.Point, _ []slog.Attr) {
		if p == point {
			meet()
		}
	})
	_, err = s.NewSeller(t, d).Sell(ctx, stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: "r", Shop: "test"})
	if err != nil {
		t.Errorf("%s, with another transaction after the point %s: %v", s.Name, point, err)
	}
}
