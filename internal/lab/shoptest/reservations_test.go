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
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/stock"
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
	paid map[string]string // the type of the last answer to a reference, empty for one that was taken
	done map[string]int    // how often each kind of customer came to its end
}

const unitsOfEach = 100

// TestReservationsBalance has customers reserve units, and pay them, pay late, twice, with another's reference, or
// not at all, while shops and MySQL are killed. In the end each unit is for sale or in an order, and each payment
// is in the state that the backend was told. RESERVATIONS_SOAK says for how long.
func TestReservationsBalance(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("RESERVATIONS_SOAK"))
	if err != nil {
		length = 4 * time.Second
	}
	mysql, err := processes.MySQL(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := &checkout{t: t, paid: map[string]string{}, done: map[string]int{}}
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
	if c.store, err = stock.Open(mysql.DSN()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.store.Close() })
	for range 5 {
		item, err := c.store.CreateItem(t.Context(), "book", unitsOfEach)
		if err != nil {
			t.Fatal(err)
		}
		c.items = append(c.items, item)
	}
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	var customers, killers sync.WaitGroup
	for range 24 {
		customers.Go(func() {
			for ctx.Err() == nil {
				c.customer()
			}
		})
	}
	killers.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			victim := c.shops[n%len(c.shops)].Process
			if n%7 == 6 {
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
	killers.Wait()
	customers.Wait()
	testserver.Await(t, "what nobody pays for to be ended", func() bool {
		held, err := c.store.CountHeld(t.Context())
		return err == nil && len(held.Units) == 0
	})
	c.balance()
	t.Logf("customers: %v", c.done)
}

// customer reserves one item or two, and does one thing with the reservation.
func (c *checkout) customer() {
	name := fmt.Sprint("customer-", rand.N(40))
	body := fmt.Sprintf(`{"item_id": %d, "quantity": %d}`, c.items[rand.N(len(c.items))].ID, 1+rand.N(2))
	if rand.N(3) == 0 {
		body += fmt.Sprintf(`, {"item_id": %d, "quantity": 1}`, c.items[rand.N(len(c.items))].ID)
	}
	var h struct{ ID string }
	if status, _ := c.ask(false, name, "/reservations", fmt.Sprintf(`{"seconds": %d, "lines": [%s]}`, 1+rand.N(2), body), &h); status != http.StatusCreated {
		time.Sleep(50 * time.Millisecond)
		return
	}
	of, reference := "/reservations/"+h.ID, func() string { return fmt.Sprint("ref-", c.names.Add(1)) }
	backend := func(path string) { c.ask(true, "backend", of+path, "", nil) }
	kind := []string{"paid", "paid at once", "twice", "late", "stolen", "forgotten", "forgotten while paying", "released", "failed"}[rand.N(9)]
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
		c.pay(of, fmt.Sprint("ref-", 1+rand.Int64N(c.names.Load()+1)))
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
	shop := c.shops[rand.N(len(c.shops))]
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
		c.t.Errorf("%s: %d %s", path, answer.StatusCode, text)
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
		if now.Stock+sold != unitsOfEach || now.Stock < 0 {
			c.t.Errorf("item %d: %d units are left and %d in orders, of %d", item.ID, now.Stock, sold, unitsOfEach)
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
