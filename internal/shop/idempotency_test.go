package shop

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/strategy"
	"stocklock/internal/testserver"
)

func TestRepeats(t *testing.T) {
	for _, by := range strategy.All() {
		t.Run(by.Name, func(t *testing.T) {
			s := open(t, func(c *Config) { c.Strategy = by })
			aRepeatGetsTheSameAnswer(t, s)
			repeatsInFlightSellOnce(t, s)
			aKeyBelongsToOneOrder(t, s)
		})
	}
}

func aRepeatGetsTheSameAnswer(t *testing.T, s *running) {
	item := s.item(1) // the repeat finds it sold out
	const key = "key-of-some-customer-0"
	first := s.buy(item, "Idempotency-Key", key)
	again := s.buy(item, "Idempotency-Key", `"`+key+`"`)
	if first.status != 201 || first.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("first answer %d %s, replayed %q", first.status, first.body, first.header.Get("Idempotency-Replayed"))
	}
	if again.status != 201 || again.body != first.body || again.header.Get("Idempotency-Replayed") != "true" ||
		again.header.Get("Location") != first.header.Get("Location") {
		t.Errorf("second answer %d %s, replayed %q\nwant the first again: %s", again.status, again.body, again.header.Get("Idempotency-Replayed"), first.body)
	}
	if found := s.get("/api/v1/orders?idempotency_key=" + key); found.body != first.body || found.status != 200 {
		t.Errorf("found by its key %d %s, want %s", found.status, found.body, first.body)
	}
}

func repeatsInFlightSellOnce(t *testing.T, s *running) {
	for _, units := range []int64{1, 100} {
		item := s.item(units)
		const repeats = 8
		var mu sync.Mutex
		bodies, replayed := map[string]int{}, 0
		var sending sync.WaitGroup
		for range repeats {
			sending.Go(func() {
				got := s.buy(item, "Idempotency-Key", fmt.Sprint("key-of-some-customer-in-flight-", units), sleepHeader, "read 20ms")
				mu.Lock()
				defer mu.Unlock()
				bodies[got.body]++
				if got.header.Get("Idempotency-Replayed") == "true" {
					replayed++
				}
			})
		}
		sending.Wait()
		if len(bodies) != 1 || replayed != repeats-1 {
			t.Errorf("%d units: %d repeats got %d different answers, %d of them replayed: %v", units, repeats, len(bodies), replayed, bodies)
		}
		if left := s.left(item); left != units-1 {
			t.Errorf("%d units left of %d, want one sold", left, units)
		}
	}
}

func aKeyBelongsToOneOrder(t *testing.T, s *running) {
	item, other := s.item(5), s.item(5)
	s.buy(item, "Idempotency-Key", "key-of-some-customer-1").order(t)
	header := http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {"key-of-some-customer-1"}}
	for _, test := range []struct {
		name, path, body string
	}{
		{"another quantity", ordersPath(item), `{"quantity":2}`},
		{"a quantity that would be sold out", ordersPath(item), `{"quantity":99}`},
		{"another item", ordersPath(other), `{"quantity":1}`},
	} {
		if got := s.do(t.Context(), http.MethodPost, test.path, test.body, header); got.problem() != "idempotency-key-reused" || got.status != 422 {
			t.Errorf("%s: %d %s, want 422", test.name, got.status, got.body)
		}
	}
	if got := s.buy(item, "Idempotency-Key", "KEY-OF-SOME-CUSTOMER-1"); got.status != 201 || got.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("a key in capitals is another key, but got %d %s", got.status, got.body)
	}
	if s.left(item) != 3 || s.left(other) != 5 {
		t.Errorf("%d and %d units left, want 3 and 5", s.left(item), s.left(other))
	}
}

func TestASaleLooksForItsKeyAtMostOnce(t *testing.T) {
	for _, by := range strategy.All() {
		var lookUps atomic.Int64 // searches for orders
		s := open(t, func(c *Config) {
			c.Strategy, c.Deps.Store = by, stocktest.Open(t, stock.WithPool(testserver.Intercept(testserver.Statements{Before: func(statement string, _ []driver.NamedValue) error {
				if strings.HasPrefix(statement, "SELECT * FROM `orders`") || strings.HasPrefix(statement, "SELECT o.*, ") {
					lookUps.Add(1)
				}
				return nil
			}})))
		})
		item := stocktest.Item(t, s.Deps.Store, 2)
		want := int64(1)
		if by.FindsRepeats { // its INSERT does
			want = 0
		}
		if got := s.buy(item, "Idempotency-Key", "key-of-some-customer-1"); got.status != 201 || lookUps.Load() != want {
			t.Errorf("%s: %d %s, and looked for orders %d times, want %d", by.Name, got.status, got.body, lookUps.Load(), want)
		}
		// A repeat reads the order and its lines; a batch reads both at once.
		if want += 2; by.Name == "batched" {
			want--
		}
		if got := s.buy(item, "Idempotency-Key", "key-of-some-customer-1"); got.status != 201 || got.header.Get("Idempotency-Replayed") != "true" || lookUps.Load() != want {
			t.Errorf("%s, again: %d %s, and looked for orders %d times, want %d", by.Name, got.status, got.body, lookUps.Load(), want)
		}
	}
}

// TestNobodyIsToldSoldOutWhoMayHaveAnOrder loses MySQL between a repeat's failure to sell and its
// question whether the first try had sold.
func TestNobodyIsToldSoldOutWhoMayHaveAnOrder(t *testing.T) {
	mysql, err := testserver.Start(t).MySQL(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := openUnready(t, mysql.DSN(), redisURL(t), nil)
	testserver.Await(t, "the shop to be ready", func() bool { return s.get("/readyz").status == 200 })
	sale := stock.Sale{ItemID: s.item(1).ID, Quantity: 1, RequestID: "r", IdempotencyKey: "key-of-some-customer-1", Shop: "test-shop"}
	_, _, err = s.sellOnce(t.Context(), sale, func(context.Context, stock.Sale) (stock.Order, error) {
		if err := mysql.Kill(); err != nil {
			t.Error(err)
		}
		return stock.Order{}, stock.ErrSoldOut
	})
	if got := explain(t.Context(), err); got != errUnknown {
		t.Errorf("answered %v for %v, want %v: nobody knows", got, err, errUnknown)
	}
}

// TestARepeatThatCannotSeeItsOrder has a reader that is behind.
func TestARepeatThatCannotSeeItsOrder(t *testing.T) {
	s := open(t, nil)
	sale := stock.Sale{ItemID: s.item(1).ID, Quantity: 1, RequestID: "r", IdempotencyKey: "key-of-some-customer-1", Shop: "test-shop"}
	_, _, err := s.sellOnce(t.Context(), sale, func(context.Context, stock.Sale) (stock.Order, error) {
		return stock.Order{}, stock.ErrRepeated
	})
	if got := explain(t.Context(), err); got.Slug != Unavailable.Slug || got.retryAfter == 0 {
		t.Errorf("answered %q for %v, want %q and when to try again", got.Slug, err, Unavailable.Slug)
	}
}

// TestTwoCustomersMayUseTheSameKey has a gateway name them.
func TestTwoCustomersMayUseTheSameKey(t *testing.T) {
	s := open(t, func(c *Config) { c.Subject = SubjectHeader("X-Subject") })
	item := s.item(5)
	buy := func(subject string) answer {
		return s.buy(item, "X-Subject", subject, "Idempotency-Key", "1")
	}
	ann, bob := buy("ann"), buy("bob")
	if ann.status != 201 || bob.status != 201 || ann.body == bob.body || bob.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("two customers got %d %s and %d %s, want two orders", ann.status, ann.body, bob.status, bob.body)
	}
	if again := buy("ann"); again.body != ann.body || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("a repeat got %d %s, want %s", again.status, again.body, ann.body)
	}
	if got := s.buy(item, "X-Subject", "a b"); got.problem() != "malformed" {
		t.Errorf("a subject with a space: %d %s", got.status, got.body)
	}
	if got := s.buy(item, "Idempotency-Key", "1"); got.problem() != "malformed" {
		t.Errorf("a short key without a subject: %d %s", got.status, got.body)
	}
	other := open(t, nil)
	first := other.buy(other.item(2), "X-Subject", "ann", "Idempotency-Key", "key-of-some-customer-1")
	if _, err := other.store.OrderByKey(t.Context(), "", "key-of-some-customer-1"); first.status != 201 || err != nil {
		t.Errorf("a subject was believed that no setting names: %v", err)
	}
}

func TestKeysExpire(t *testing.T) {
	s := open(t, func(c *Config) { c.KeyTTL = time.Millisecond })
	item := s.item(5)
	const key = "key-of-some-customer-1"
	first := s.buy(item, "Idempotency-Key", key)
	if n, _, err := s.store.ClearKeys(t.Context(), time.Unix(0, 0), time.Hour, 10); n != 0 || err != nil {
		t.Errorf("cleared %d young keys, %v", n, err)
	}
	testserver.Await(t, "the key to be cleared", func() bool {
		_, _, err := s.store.ClearKeys(t.Context(), time.Unix(0, 0), time.Millisecond, 10)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.store.OrderByKey(t.Context(), "", key)
		return errors.Is(err, stock.ErrNotFound)
	})
	if got := s.get(first.header.Get("Location")); got.body != first.body {
		t.Errorf("the order became %s", got.body)
	}
	if again := s.buy(item, "Idempotency-Key", key); again.status != 201 || again.body == first.body {
		t.Errorf("a repeat after the key expired: %d %s, want another order", again.status, again.body)
	}
}

// TestAShopClearsExpiredKeys has more than a batch of them, the oldest of an order that is locked at first,
// and one that is young.
func TestAShopClearsExpiredKeys(t *testing.T) {
	store := stocktest.Open(t)
	item := stocktest.Item(t, store, 1)
	_, err := store.Pool().ExecContext(t.Context(), "INSERT INTO orders (item_id, quantity, stock_read, stock_written, strategy, shop, request_id, idempotency_key, public_id, keyed_at)"+
		" WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)"+
		" SELECT ?, 1, 1, 0, 'test', 'old', 'r', UUID(), UUID(), UTC_TIMESTAMP(6) - INTERVAL 3 DAY + INTERVAL a.i * 40 + b.i MINUTE FROM n a, n b", item.ID)
	if err != nil {
		t.Fatal(err)
	}
	sale := stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: "r", IdempotencyKey: "key-of-some-customer-1", Shop: "test-shop"}
	if _, err := store.Decrement(t.Context(), sale); err != nil {
		t.Fatal(err)
	}
	left := func() (n int) {
		if err := store.Pool().QueryRowContext(t.Context(), "SELECT COUNT(idempotency_key) FROM orders").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	var oldest uint64
	if err := store.Pool().QueryRowContext(t.Context(), "SELECT id FROM orders ORDER BY keyed_at LIMIT 1").Scan(&oldest); err != nil {
		t.Fatal(err)
	}
	tx, err := store.Pool().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "UPDATE orders SET cancelled_at = UTC_TIMESTAMP(6) WHERE id = ?", oldest); err != nil {
		t.Fatal(err)
	}
	open(t, func(c *Config) { c.Deps.Store, c.KeyTTL, c.KeyInterval = store, time.Hour, time.Millisecond })
	testserver.Await(t, "all expired keys but one to be cleared", func() bool { return left() == 2 })
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	testserver.Await(t, "the last expired key to be cleared", func() bool { return left() == 1 })
	if _, err := store.OrderByKey(t.Context(), "", sale.IdempotencyKey); err != nil {
		t.Errorf("the key of a young order: %v", err)
	}
}

// TestKeysAreClearedFromTheStart: not only after an interval, which a shop may not live for.
func TestKeysAreClearedFromTheStart(t *testing.T) {
	store := stocktest.Open(t)
	item := stocktest.Item(t, store, 1)
	const key = "key-of-some-customer-1"
	if _, err := store.Decrement(t.Context(), stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: "r", IdempotencyKey: key, Shop: "test-shop"}); err != nil {
		t.Fatal(err)
	}
	open(t, func(c *Config) { c.Deps.Store, c.KeyTTL, c.KeyInterval = store, time.Microsecond, time.Hour })
	testserver.Await(t, "the key to be cleared", func() bool {
		_, err := store.OrderByKey(t.Context(), "", key)
		return errors.Is(err, stock.ErrNotFound)
	})
}

// TestClearingKeysPauses: a round is in batches, with a short pause behind a full one. Rounds begin at an
// interval, where the last one ended, and one in so many at the oldest key.
func TestClearingKeysPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		at := func(minutes int) time.Time { return time.Unix(0, 0).Add(time.Duration(minutes) * time.Minute) }
		type call struct {
			from  time.Time
			pause time.Duration // before it
		}
		var calls []call
		answers := []struct {
			n    int
			upTo time.Time
			err  error
		}{
			{keyBatch, at(1), nil}, {keyBatch, at(2), nil}, {0, at(0), errStarting}, {keyBatch, at(3), nil}, {keyBatch - 1, at(4), nil}, {0, at(4), nil},
		}
		want := []call{
			{at(0), 0}, {at(1), keyPause}, {at(2), keyPause}, {at(2), keyInterval}, {at(3), keyPause}, {at(4), keyInterval},
		}
		for len(want) < len(answers)+keyRounds-2 { // two rounds were not broken off
			want = append(want, call{at(4), keyInterval})
		}
		want = append(want, call{at(0), keyInterval})
		last := time.Now()
		inRounds(ctx, keyInterval, func(from time.Time) (int, time.Time, error) {
			calls = append(calls, call{from, time.Since(last)})
			last = time.Now()
			if len(calls) == len(want) {
				cancel()
			}
			answer := answers[min(len(calls), len(answers))-1]
			return answer.n, answer.upTo, answer.err
		})
		if !slices.Equal(calls, want) {
			t.Errorf("batches were cleared from, after a pause:\n%v\nwant\n%v", calls, want)
		}
	})
}

func TestWrongKeysAreRefused(t *testing.T) {
	s := open(t, nil)
	item := s.item(1)
	for _, key := range []string{"", strings.Repeat("k", 65), "only-21-characters-00", exampleKey, "a b", `"`, `""`, `"open`, `in"side`, "ключ"} {
		if got := s.buy(item, "Idempotency-Key", key); got.problem() != "malformed" {
			t.Errorf("key %q: %d %s, want malformed", key, got.status, got.body)
		}
	}
	two := http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {"key-of-some-customer-1", "key-of-some-customer-2"}}
	if got := s.do(t.Context(), http.MethodPost, ordersPath(item), `{"quantity":1}`, two); got.problem() != "malformed" {
		t.Errorf("two keys: %d %s, want malformed", got.status, got.body)
	}
	for _, query := range []string{"", "?idempotency_key=", "?idempotency_key=a%20b"} {
		if got := s.get("/api/v1/orders" + query); got.problem() != "malformed" {
			t.Errorf("/api/v1/orders%s: %d %s, want malformed", query, got.status, got.body)
		}
	}
	if left := s.left(item); left != 1 {
		t.Errorf("%d units left, want 1", left)
	}
}
