package shop

import (
	"context"
	"database/sql/driver"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ngrok/sqlmw"

	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/testserver"
)

// splitter is a connection's end of a proxy that sends plain SELECTs to a replica.
type splitter struct {
	sqlmw.NullInterceptor
	atReplica func(query string) string // reads what the replica has
	inTx      sync.Map                  // by connection
}

// primaryTx is a transaction, which such a proxy sends to the primary.
type primaryTx struct {
	driver.Tx
	over func()
}

func (t primaryTx) Commit() error { t.over(); return t.Tx.Commit() }

func (t primaryTx) Rollback() error { t.over(); return t.Tx.Rollback() }

func (s *splitter) ConnBeginTx(ctx context.Context, conn driver.ConnBeginTx, options driver.TxOptions) (context.Context, driver.Tx, error) {
	tx, err := conn.BeginTx(ctx, options)
	s.inTx.Store(conn, true)
	return ctx, primaryTx{tx, func() { s.inTx.Delete(conn) }}, err
}

func (s *splitter) ConnQueryContext(ctx context.Context, conn driver.QueryerContext, query string, args []driver.NamedValue) (context.Context, driver.Rows, error) {
	if _, primary := s.inTx.Load(conn); !primary && !strings.HasSuffix(query, "FOR UPDATE") {
		query = s.atReplica(query)
	}
	rows, err := conn.QueryContext(ctx, query, args)
	return ctx, rows, err
}

// without is a replica that has nothing yet of what a query reads that contains one of these texts.
func without(texts ...string) func(string) string {
	return func(query string) string {
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(query, text) }) {
			query = strings.Replace(query, " WHERE ", " WHERE FALSE AND ", 1)
		}
		return query
	}
}

func openBehind(t *testing.T, replica func(string) string) *stock.Store {
	t.Helper()
	return stocktest.Open(t, stock.WithPool(testserver.Intercept(&splitter{atReplica: replica})))
}

// TestWhatWasDoneIsFoundBehindASplitter whose replica is behind.
func TestWhatWasDoneIsFoundBehindASplitter(t *testing.T) {
	store := openBehind(t, func(query string) string {
		if strings.Contains(query, "items") {
			return query
		}
		return without("")(query)
	})
	item := stocktest.Item(t, store, 2)
	r := openReserving(t, func(cfg *Config) { cfg.Deps.Store = store })
	made := r.reserve("ann", "k", one(item)).reservation(t)
	if again := r.reserve("ann", "k", one(item)).reservation(t); again.ID != made.ID {
		t.Errorf("reserved again as %s, want %s", again.ID, made.ID)
	}
	if got := r.backend("/reservations/"+made.ID+"/confirmation", `{"reference": "paid"}`); got.status != http.StatusOK {
		t.Errorf("the payment: %d %s", got.status, got.body)
	}
	for _, replayed := range []string{"", "true"} { // the last unit
		got := r.ask(http.MethodPost, ordersPath(item), `{"quantity": 1}`, "Customer", "ann", IdempotencyKeyHeader, "k")
		if got.status != http.StatusCreated || got.header.Get(ReplayedHeader) != replayed {
			t.Errorf("sold: %d %s", got.status, got.body)
		}
		got = r.ask(http.MethodPost, ItemPath(item.ID)+"/restocks", `{"quantity": 1}`, "Staff", "eve", IdempotencyKeyHeader, "k")
		if got.status != http.StatusOK || got.header.Get(ReplayedHeader) != replayed {
			t.Errorf("restocked: %d %s", got.status, got.body)
		}
	}
}

// lateItems is a replica that has the items as they were at its last copy.
func lateItems(query string) string { return strings.ReplaceAll(query, "items", "late_items") }

// replicate copies the items, and changes them as the replica has them.
func replicate(t *testing.T, store *stock.Store, set string) {
	t.Helper()
	for _, statement := range []string{"DROP TABLE IF EXISTS late_items", "CREATE TABLE late_items AS SELECT * FROM items", "UPDATE late_items SET " + set} {
		if _, err := store.Pool().ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// TestALateReplicaDecidesNoRefusal for longer than until the next sale that does not ask it.
func TestALateReplicaDecidesNoRefusal(t *testing.T) {
	store := openBehind(t, lateItems)
	item := stocktest.Item(t, store, 1)
	replicate(t, store, "stock = 1")
	r := openReserving(t, func(cfg *Config) { cfg.Deps.Store = store })
	buy := func() answer { return r.ask(http.MethodPost, ordersPath(item), `{"quantity": 1}`, "Customer", "ann") }
	if got := buy(); got.status != http.StatusCreated {
		t.Errorf("the last unit: %d %s", got.status, got.body)
	}
	if got := buy(); got.problem() != "sold-out" {
		t.Errorf("the replica has a unit, and there is none: %d %s", got.status, got.body)
	}
	replicate(t, store, "stock = 0")
	if got := r.ask(http.MethodPost, ItemPath(item.ID)+"/restocks", `{"quantity": 1}`, "Staff", "eve", IdempotencyKeyHeader, "k"); got.status != http.StatusOK {
		t.Fatalf("restocked: %d %s", got.status, got.body)
	}
	testserver.Await(t, "a sale of a unit that the replica has not", func() bool { return buy().status == http.StatusCreated })
}

// TestALateReplicaRefusesNothingThatHasJustEnded, as the request itself has ended it.
func TestALateReplicaRefusesNothingThatHasJustEnded(t *testing.T) {
	store := openBehind(t, lateItems)
	r := openReserving(t, func(cfg *Config) { cfg.Deps.Store, cfg.Strategy = store, byName(t, "for-update") })
	r.running.store = store
	for name, ask := range map[string]func(stock.Item) answer{
		"a sale": func(item stock.Item) answer {
			return r.ask(http.MethodPost, ordersPath(item), `{"quantity": 1}`, "Customer", "ben")
		},
		"a reservation": func(item stock.Item) answer { return r.reserve("ben", r.key(), one(item)) },
	} {
		item, h := r.hold()
		replicate(t, store, "stock = 0")
		for range 2 {
			if got := ask(item); got.problem() != "held-by-others" {
				t.Errorf("%s of what is held: %d %s", name, got.status, got.body)
			}
		}
		r.overdue(h.ID)
		if got := ask(item); got.status != http.StatusCreated {
			t.Errorf("%s of what was held too long: %d %s", name, got.status, got.body)
		}
	}
}

// TestALateReplicaHasNoFence, and who is fenced off by a clock that was ahead sells.
func TestALateReplicaHasNoFence(t *testing.T) {
	store := openBehind(t, lateItems)
	item := stocktest.Item(t, store, 1)
	replicate(t, store, "fence = 0")
	if err := store.RaiseFence(t.Context(), item.ID, 1<<62); err != nil {
		t.Fatal(err)
	}
	r := open(t, func(cfg *Config) { cfg.Deps.Store = store })
	if got := r.buy(item); got.status != http.StatusCreated {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestALateReplicaHidesNoMoney of an order that was cancelled.
func TestALateReplicaHidesNoMoney(t *testing.T) {
	store := openBehind(t, without("JOIN holds", "payments"))
	r := openReserving(t, func(cfg *Config) { cfg.Deps.Store = store })
	r.running.store = store
	_, paid := r.in(stock.Confirmed)
	if got := r.backend("/orders/"+*r.look(paid).OrderID+"/cancellation", ""); got.status != http.StatusOK {
		t.Fatalf("cancelled: %d %s", got.status, got.body)
	}
	if p := r.paid("first-" + paid); p.State != stock.ToReturn {
		t.Errorf("the money of a cancelled order is %+v", p)
	}
}

// TestARepeatIsNotCounted, neither where a replica has the state before it.
func TestARepeatIsNotCounted(t *testing.T) {
	store := openBehind(t, func(query string) string {
		return strings.Replace(query, "SELECT h.*", "SELECT h.*, 'paying' AS state", 1)
	})
	r := openReserving(t, func(cfg *Config) { cfg.Deps.Store = store })
	r.running.store = store
	for _, again := range []string{"/failure", "/payment", "/confirmation"} {
		_, h := r.hold()
		r.backend("/reservations/"+h.ID+"/payment", "")
		body := ""
		if again == "/confirmation" {
			body = `{"reference": "paid"}`
		}
		for range 2 {
			if got := r.backend("/reservations/"+h.ID+again, body); got.status != http.StatusOK {
				t.Errorf("%s: %d %s", again, got.status, got.body)
			}
		}
	}
	r.measures(`shop_reservations_total{state="paying"} 3`, `shop_reservations_total{state="released"} 1`, `shop_reservations_total{state="confirmed"} 1`)
}

// TestNothingIsReadInParts behind a splitter whose replicas differ: one has first rows, and another none of their lines.
func TestNothingIsReadInParts(t *testing.T) {
	r := openReserving(t, func(cfg *Config) {
		cfg.Deps.Store, cfg.Strategy = openBehind(t, without("line_of", "hold_lines")), byName(t, "fenced-relative") // it looks for the key first
	})
	var items []stock.Item
	for range 2 {
		items = append(items, stocktest.Item(t, r.Deps.Store, 5))
	}
	lines := fmt.Sprintf(`"lines": [{"item_id": %d, "quantity": 1}, {"item_id": %d, "quantity": 1}]`, items[0].ID, items[1].ID)
	for path, body := range map[string]string{OrdersOfItems: "{" + lines + "}", ReservationsPath: "{" + lines + `, "seconds": 60}`} {
		first := r.ask(http.MethodPost, path, body, "Customer", "ann", IdempotencyKeyHeader, "k")
		again := r.ask(http.MethodPost, path, body, "Customer", "ann", IdempotencyKeyHeader, "k")
		if first.status != http.StatusCreated || again.body != first.body || again.header.Get(ReplayedHeader) != "true" {
			t.Errorf("%s: %d %s\nagain: %d %s", path, first.status, first.body, again.status, again.body)
		}
	}
}

// TestAnOrderThatAReplicaLacks is found by its key and its id, and cancelled.
func TestAnOrderThatAReplicaLacks(t *testing.T) {
	r := openReserving(t, func(cfg *Config) { cfg.Deps.Store, cfg.CancelWithin = openBehind(t, without("orders")), time.Hour })
	item := stocktest.Item(t, r.Deps.Store, 2)
	for _, by := range []string{"Customer", "Staff"} {
		made := r.ask(http.MethodPost, ordersPath(item), `{"quantity": 1}`, "Customer", "ann", IdempotencyKeyHeader, by)
		if got := r.ask(http.MethodGet, OrdersOfItems+"?idempotency_key="+by, "", "Customer", "ann"); got.body != made.body || got.status != http.StatusOK {
			t.Errorf("by its key: %d %s, want %s", got.status, got.body, made.body)
		}
		if got := r.ask(http.MethodGet, made.header.Get("Location"), "", "Customer", "ann"); got.body != made.body || got.status != http.StatusOK {
			t.Errorf("at the Location of its answer: %d %s, want %s", got.status, got.body, made.body)
		}
		got := r.ask(http.MethodPost, OrdersOfItems+"/"+made.order(t).ID+"/cancellation", "", by, "ann", IdempotencyKeyHeader, by)
		if got.status != http.StatusOK || got.order(t).CancelledAt == nil {
			t.Errorf("cancelled by %s: %d %s", by, got.status, got.body)
		}
	}
	if got := r.ask(http.MethodGet, OrdersOfItems+"?idempotency_key=none", "", "Customer", "ann"); got.problem() != "not-found" {
		t.Errorf("by another key: %d %s", got.status, got.body)
	}
}

// TestACancellationBesideAnErasure of the customer, which comes as soon as the first row of the order was read.
func TestACancellationBesideAnErasure(t *testing.T) {
	dsn := stocktest.Database(t)
	read, erased := false, false
	var s *running
	s = open(t, func(cfg *Config) {
		staffed(cfg)
		cfg.Deps.Store = stocktest.OpenAt(t, dsn, stock.WithPool(testserver.Intercept(&splitter{atReplica: func(query string) string {
			if read && !erased {
				erased = true
				if n, err := s.store.Erase(t.Context(), "ann"); n != 1 || err != nil {
					t.Errorf("erased %d orders, %v", n, err)
				}
			}
			read = read || strings.Contains(query, "public_id = ?")
			return query
		}})))
	})
	s.store = stocktest.OpenAt(t, dsn)
	items := []stock.Item{s.item(5), s.item(5)}
	made := s.order(items, "X-Subject", "ann").order(t)
	got := s.staff(http.MethodPost, OrdersOfItems+"/"+made.ID+"/cancellation", "k", "")
	if now := got.order(t); len(now.Lines) != 2 || now.CancelledAt == nil || !erased {
		t.Errorf("cancelled, and erased (%v) beside it: %d %s", erased, got.status, got.body)
	}
	s.wantLeft(items, 5, 5)
}
