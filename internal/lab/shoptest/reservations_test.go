package shoptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/stalltest"
	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/testserver"
)

// reservingEnv are the settings of a shop whose reservations end within seconds.
func reservingEnv(mysql, redis string) map[string]string {
	return map[string]string{
		"SHOP_MYSQL": mysql, "SHOP_REDIS": "redis://" + redis, "SHOP_STRATEGY": "conditional", "SHOP_LOG_LEVEL": "error",
		"SHOP_SUBJECT_HEADER": "X-Subject", "SHOP_STAFF_SUBJECT_HEADER": "X-Subject", "SHOP_LIMIT": "1000", "SHOP_RESERVATIONS": "true",
		"SHOP_OPEN_RESERVATIONS": "20", "SHOP_PAYMENT_WINDOW": "2s", "SHOP_PAYMENT_GRACE": "1s",
	}
}

// checkout is customers and a backend on shops that are killed, and what they were answered.
type checkout struct {
	t     *testing.T
	shops []*rig.Shop
	store *stock.Store
	items []stock.Item
	names atomic.Int64

	mu   sync.Mutex
	dice *rand.Rand        // guarded by mu
	paid map[string]string // the type of the last answer to a reference, empty for one that was taken
	done map[string]int    // how often each kind of customer came to its end
}

const unitsOfEach = 100

// TestReservationsBalance has customers reserve units, and pay them, pay late, twice, with another's reference, or
// not at all, while shops and MySQL are killed. What nobody pays for is for sale a second after window and grace, or after
// MySQL answers again. In the end each unit is for sale or in an order, and each payment is in the state that the
// backend was told. RESERVATIONS_SOAK says for how long, and RESERVATIONS_SEED what they do.
func TestReservationsBalance(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("RESERVATIONS_SOAK"))
	if err != nil {
		length = 4 * time.Second
	}
	mysql, err := processes.MySQL(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seed, err := strconv.ParseUint(os.Getenv("RESERVATIONS_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("RESERVATIONS_SEED=%d", seed)
	c := &checkout{t: t, dice: rand.New(rand.NewPCG(seed, 0)), paid: map[string]string{}, done: map[string]int{}}
	env := reservingEnv(mysql.DSN(), testserver.RedisAddr(t))
	for i := range 3 {
		if env["SHOP_LATE_PAYMENT"] = "return"; i == 0 {
			env["SHOP_LATE_PAYMENT"] = "take-if-free"
		}
		shop, err := processes.Shop(t.Context(), rig.ShopOptions{Name: fmt.Sprint("shop-", i), Env: env})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = shop.Kill() })
		c.shops = append(c.shops, shop)
	}
	c.store = stocktest.OpenAt(t, mysql.DSN())
	for range 5 {
		c.items = append(c.items, stocktest.Item(t, c.store, unitsOfEach))
	}
	stalls := stalltest.Start(t)
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	looking, looked := context.WithCancel(t.Context())
	defer looked()
	latest := make(chan time.Duration, 1)
	go func() { latest <- c.lateness(looking) }()
	var customers, killers sync.WaitGroup
	for range 24 {
		customers.Go(func() {
			for ctx.Err() == nil || c.few() {
				c.customer()
			}
		})
	}
	killers.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			victim := c.shops[n%len(c.shops)].Process
			if n%4 == 0 { // the first, within the shortest length
				victim = mysql.Process
			}
			select {
			case <-time.After(700 * time.Millisecond):
				if err := errors.Join(victim.Kill(), victim.Restart(t.Context())); err != nil {
					t.Error(err)
				}
			case <-ctx.Done():
			}
		}
	})
	killers.Go(func() { // a soak sells more than there is
		for n := 0; ctx.Err() == nil; n++ {
			select {
			case <-time.After(time.Second):
				for _, item := range c.items {
					_, _ = c.store.Restock(t.Context(), stock.Author{Subject: "staff", IdempotencyKey: fmt.Sprint(n, "-", item.ID)}, item.ID, 10) // MySQL may be dead: the entry says
				}
			case <-ctx.Done():
			}
		}
	})
	killers.Wait()
	customers.Wait()
	testserver.Await(t, "what nobody pays for to be ended", func() bool {
		held, _, err := c.store.CountHeld(t.Context())
		return err == nil && len(held) == 0
	})
	c.balance()
	looked()
	late := <-latest
	t.Logf("customers: %v; the latest was ended %s after its time", c.done, late)
	if late > time.Second && !t.Failed() {
		stalls.Fatalf(300*time.Millisecond, "units were held for %s too long while MySQL answered, want at most a second", late)
	}
}

// lateness looks until ctx ends, as MySQL answers, and returns for how long units were held beyond window and grace. It
// counts from when MySQL answers again.
func (c *checkout) lateness(ctx context.Context) (most time.Duration) {
	var back time.Time
	for {
		var late time.Duration
		err := c.store.Pool().QueryRowContext(ctx, "SELECT 1000 * COALESCE(TIMESTAMPDIFF(MICROSECOND, MIN(live_until), UTC_TIMESTAMP(6)), 0) FROM holds").Scan(&late)
		switch {
		case ctx.Err() != nil:
			return most
		case err != nil:
			back = time.Time{}
		case back.IsZero():
			back = time.Now()
		default:
			most = max(most, min(late, time.Since(back)))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (c *checkout) roll(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dice.IntN(n)
}

// few says whether customers have come to few of their ends yet.
func (c *checkout) few() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.done) < 5 || len(c.paid) == 0
}

// customer reserves one item or two, and does one thing with the reservation.
func (c *checkout) customer() {
	name := fmt.Sprint("customer-", c.roll(40))
	body := fmt.Sprintf(`{"item_id": %d, "quantity": %d}`, c.items[c.roll(len(c.items))].ID, 1+c.roll(2))
	if c.roll(3) == 0 {
		body += fmt.Sprintf(`, {"item_id": %d, "quantity": 1}`, c.items[c.roll(len(c.items))].ID)
	}
	var h struct{ ID string }
	if status, _ := c.ask(false, name, "/reservations", fmt.Sprintf(`{"seconds": %d, "lines": [%s]}`, 1+c.roll(2), body), &h); status != http.StatusCreated {
		time.Sleep(50 * time.Millisecond)
		return
	}
	of, reference := "/reservations/"+h.ID, func() string { return fmt.Sprint("ref-", c.names.Add(1)) }
	backend := func(path string) { c.ask(true, "backend", of+path, "", nil) }
	kind := []string{"paid", "paid at once", "twice", "late", "stolen", "forgotten", "forgotten while paying", "released", "failed"}[c.roll(9)]
	switch kind {
	case "paid":
		backend("/payment")
		c.pay(of, reference())
	case "paid at once":
		c.pay(of, reference())
	case "twice":
		same := reference()
		var both sync.WaitGroup // the browser's return, and the provider's notice
		for range 2 {
			both.Go(func() { c.pay(of, same) })
		}
		both.Wait()
		c.pay(of, reference())
	case "late":
		time.Sleep(3 * time.Second)
		c.pay(of, reference())
	case "stolen":
		c.pay(of, fmt.Sprint("ref-", 1+c.roll(int(c.names.Load())+1)))
	case "forgotten while paying":
		backend("/payment")
	case "released":
		c.ask(false, name, of+"/release", `{"reason": "changed-mind"}`, nil)
	case "failed":
		backend("/payment")
		backend("/failure")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done[kind]++
}

// pay confirms until the outcome is known, at whatever shop lives.
func (c *checkout) pay(of, reference string) {
	for {
		status, slug := c.ask(true, "backend", of+"/confirmation", `{"reference": "`+reference+`"}`, nil)
		if status == 0 || status >= 500 {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if was, known := c.paid[reference]; slug == "reference-in-use" || slug == "too-many-references" || known && was == "" {
			return // nothing was recorded of this one; what is taken stays so
		}
		c.paid[reference] = slug
		return
	}
}

// ask posts to one of the shops. The status is 0 without an answer.
func (c *checkout) ask(staff bool, subject, path, body string, into any) (status int, slug string) {
	shop := c.shops[c.roll(len(c.shops))]
	url := shop.URL
	if staff {
		url = shop.Staff
	}
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, url+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		c.t.Error(err)
		return 0, ""
	}
	request.Header = http.Header{"Content-Type": {"application/json"}, "X-Subject": {subject}, "Idempotency-Key": {fmt.Sprint("key-", c.names.Add(1))}}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, ""
	}
	var problem struct{ Type string }
	if json.Unmarshal(text, &problem) == nil {
		slug = strings.TrimPrefix(problem.Type, "/problems/")
	}
	if answer.StatusCode == http.StatusInternalServerError || answer.StatusCode == http.StatusBadRequest || answer.StatusCode == http.StatusUnprocessableEntity {
		c.t.Errorf("%s: %d %s; the log: %s", path, answer.StatusCode, text, shop.LogTail())
	}
	if into != nil && answer.StatusCode < 300 {
		if err := json.Unmarshal(text, into); err != nil {
			c.t.Error(err)
		}
	}
	return answer.StatusCode, slug
}

// balance compares units, orders, reservations and payments with each other, and with what was answered.
func (c *checkout) balance() {
	c.t.Helper()
	for _, item := range c.items {
		now, err := c.store.Read(c.t.Context(), item.ID)
		if err != nil {
			c.t.Fatal(err)
		}
		orders, err := c.store.ItemOrders(c.t.Context(), item.ID)
		if err != nil {
			c.t.Fatal(err)
		}
		sold := int64(0)
		for _, o := range orders {
			sold += o.Quantity
		}
		var came int64
		if err := c.store.Pool().QueryRowContext(c.t.Context(), "SELECT COALESCE(SUM(stock_after - stock_before), 0) FROM changes WHERE item_id = ?", item.ID).Scan(&came); err != nil {
			c.t.Error(err)
		}
		if now.Stock+sold != unitsOfEach+came || now.Stock < 0 {
			c.t.Errorf("item %d: %d units are left and %d in orders, of %d and %d restocked", item.ID, now.Stock, sold, unitsOfEach, came)
		}
	}
	for reference, slug := range c.paid {
		p, err := c.store.Payment(c.t.Context(), reference)
		want := stock.Taken
		if slug != "" {
			want = stock.ToReturn
		}
		if err != nil || p.State != want {
			c.t.Errorf("%s was answered with %q, and is %q, %v", reference, slug, p.State, err)
		}
	}
	for what, query := range map[string]string{
		"confirmed reservations without one payment":  "SELECT COUNT(*) FROM holds h WHERE state = 'confirmed' AND (SELECT COUNT(*) FROM payments WHERE paid = h.public_id AND reference = h.reference AND state = 'taken') <> 1",
		"confirmed reservations without one order":    "SELECT COUNT(*) FROM holds h WHERE state = 'confirmed' AND (SELECT COUNT(*) FROM orders WHERE public_id = h.order_id) <> 1",
		"orders without a reservation":                "SELECT COUNT(*) FROM orders o WHERE line_of IS NULL AND NOT EXISTS (SELECT 1 FROM holds WHERE order_id = o.public_id)",
		"payments of no reservation":                  "SELECT COUNT(*) FROM payments p WHERE NOT EXISTS (SELECT 1 FROM holds WHERE public_id = p.hold)",
		"reservations whose history ends differently": "SELECT COUNT(*) FROM holds h WHERE NOT EXISTS (SELECT 1 FROM hold_history WHERE hold_id = h.id AND n = h.steps AND becomes = h.state) OR (SELECT COUNT(*) FROM hold_history WHERE hold_id = h.id) <> h.steps",
		"lines that live without their reservation":   "SELECT COUNT(*) FROM hold_lines l JOIN holds h ON h.id = l.hold_id WHERE NOT (l.live_until <=> h.live_until)",
	} {
		var n int
		if err := c.store.Pool().QueryRowContext(c.t.Context(), query).Scan(&n); err != nil || n > 0 {
			c.t.Errorf("%s: %d, %v", what, n, err)
		}
	}
}

// TestTheExampleOfABackendPays runs it as docs/reservations.md says.
func TestTheExampleOfABackendPays(t *testing.T) {
	shop, err := processes.Shop(t.Context(), rig.ShopOptions{Name: "shop", Env: reservingEnv(testserver.Database(t), testserver.RedisAddr(t))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shop.Kill() })
	createItem(t, shop, 1)
	run := exec.CommandContext(t.Context(), "go", "run", "./examples/checkout", "--shop", shop.URL, "--staff", shop.Staff, "--item", "1")
	run.Dir = root
	if out, err := run.CombinedOutput(); err != nil || !strings.Contains(string(out), "is confirmed by stub_") {
		t.Errorf("%s, %v", out, err)
	}
}

// createItem creates an item with so much stock that no test buys it.
func createItem(t *testing.T, shop *rig.Shop, n int) {
	t.Helper()
	request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost, shop.Staff+"/api/v1/items", strings.NewReader(`{"name":"book","stock":1000000}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{"Content-Type": {"application/json"}, "X-Subject": {"ann"}, "Idempotency-Key": {fmt.Sprint("item-", n)}}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		t.Fatalf("create an item: %s", answer.Status)
	}
}

// TestTwoSweepsOfAClusterMeet has two shops end the same holds, each at a node of its own.
func TestTwoSweepsOfAClusterMeet(t *testing.T) {
	t.Parallel()
	if err := testserver.HasGalera(); err != nil {
		t.Skip(err)
	}
	nodes, err := testserver.Start(t).Galera(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	var stores []*stock.Store
	for _, node := range nodes {
		stores = append(stores, stocktest.OpenAt(t, node.DSN()))
	}
	stocktest.Migrate(t, stores[0])
	const holds = 200
	item := stocktest.Item(t, stores[0], holds)
	for i := range holds {
		if _, err := stores[0].Hold(t.Context(), stock.Sale{ItemID: item.ID, Quantity: 1, Subject: "ann", IdempotencyKey: fmt.Sprint(i), RequestID: "r", Holds: true}, 0, stock.Terms{Open: holds + 1}); err != nil {
			t.Fatal(err)
		}
	}
	held := func(s *stock.Store) int64 {
		now, _, err := s.CountHeld(t.Context())
		if err != nil {
			t.Error(err)
		}
		return int64(now[stock.Held].Units)
	}
	testserver.Await(t, "the other node to have the holds", func() bool { return held(stores[1]) == holds })
	var ended, lost atomic.Int64
	var sweeping sync.WaitGroup
	for _, s := range stores {
		sweeping.Go(func() {
			for held(s) > 0 && !t.Failed() {
				n, _, _, err := s.EndHolds(t.Context(), "shop", 4)
				if err != nil {
					t.Error(err)
				}
				if ended.Add(int64(n)); n == 0 {
					lost.Add(1)
				}
			}
		})
	}
	sweeping.Wait()
	for _, s := range stores {
		if now, err := s.Read(t.Context(), item.ID); err != nil || now.Stock != holds {
			t.Errorf("%d units are left, %v, want %d", now.Stock, err, holds)
		}
	}
	if ended.Load() != holds {
		t.Errorf("%d holds were ended, of %d", ended.Load(), holds)
	}
	t.Logf("%d rounds ended nothing: another node was faster", lost.Load())
}
