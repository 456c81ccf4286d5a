package shoptest

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"stocklock/internal/lab/rig"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/testserver"
)

// leastRights reads the statements that SECURITY.md tells operators to send.
func leastRights(t *testing.T) []string {
	t.Helper()
	script, err := os.ReadFile(root + "/sql/grants.sql")
	if err != nil {
		t.Fatal(err)
	}
	var statements []string
	for line := range strings.Lines(string(script)) {
		if statement, _, ok := strings.Cut(line, ";"); ok && strings.HasPrefix(line, "GRANT ") {
			statements = append(statements, statement)
		}
	}
	return statements
}

// TestAShopSellsWithTheLeastRights follows SECURITY.md: it creates the user, migrates, grants, and
// sells.
func TestAShopSellsWithTheLeastRights(t *testing.T) {
	admin := testserver.Database(t)
	cfg, err := mysqldriver.ParseDSN(admin)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("mysql", admin)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "CREATE USER shop IDENTIFIED BY 'geheim'"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to do
		if code, stderr := command(t, []string{"SHOP_MYSQL=" + admin}, "migrate"); code != 0 || !strings.Contains(stderr, "the schema is up to date") {
			t.Fatalf("migrate: exit code %d, %s", code, stderr)
		}
	}
	for _, grant := range leastRights(t) {
		if _, err := db.ExecContext(t.Context(), grant); err != nil {
			t.Fatalf("%s: %v", grant, err)
		}
	}
	cfg.User, cfg.Passwd = "shop", "geheim"
	shop, err := processes.Shop(t.Context(), rig.ShopOptions{Name: "shop", Env: map[string]string{
		"SHOP_MYSQL": cfg.FormatDSN(), "SHOP_REDIS": "redis://" + testserver.RedisAddr(t), "SHOP_MIGRATE": "false", "SHOP_LAB": "true",
		"SHOP_STAFF_SUBJECT_HEADER": "X-Subject", "SHOP_SUBJECT_HEADER": "X-Subject", "SHOP_LIMIT": "10", "SHOP_RESERVATIONS": "true",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shop.Kill() })
	store := stocktest.OpenAt(t, admin)
	for _, name := range []string{"owner-checked", "for-update", "optimistic", "conditional"} {
		item := stocktest.Item(t, store, 1)
		header := http.Header{labmode.StrategyHeader: {name}, "X-Subject": {"ann"}, "Idempotency-Key": {"key-of-some-customer-" + name}}
		if got := post(t.Context(), shop, item, header, ""); got == nil || got.StatusCode != 201 {
			t.Errorf("%s: %+v; the log: %s", name, got, shop.LogTail())
		}
	}
	asShop := stocktest.OpenAt(t, cfg.FormatDSN())
	if n, _, err := asShop.ClearKeys(t.Context(), time.Unix(0, 0), time.Microsecond, 10); err != nil || n != 4 {
		t.Errorf("cleared %d keys of 4, %v", n, err)
	}
	item := stocktest.Item(t, store, 1)
	order, err := store.Decrement(t.Context(), stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: "r", Strategy: "conditional", Shop: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	for n, change := range []struct{ method, path, body string }{
		{"POST", "/api/v1/items", `{"name":"tea","stock":1}`},
		{"PATCH", fmt.Sprintf("/api/v1/items/%d", item.ID), `{"name":"tea"}`},
		{"POST", "/api/v1/orders/" + order.PublicID + "/cancellation", ""},
	} {
		request, err := http.NewRequestWithContext(t.Context(), change.method, shop.Staff+change.path, strings.NewReader(change.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"Content-Type": {"application/json"}, "X-Subject": {"ann"}, "Idempotency-Key": {fmt.Sprint("change-", n)}}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode > 201 {
			t.Errorf("%s %s: %s; the log: %s", change.method, change.path, answer.Status, shop.LogTail())
		}
	}
	reserveWithTheLeastRights(t, asShop)
}

// reserveWithTheLeastRights writes to each table of reservations.
func reserveWithTheLeastRights(t *testing.T, s *stock.Store) {
	t.Helper()
	item, err := s.Add(t.Context(), stock.Author{Subject: "ann", IdempotencyKey: "add"}, "book", 3)
	if err != nil {
		t.Fatal(err)
	}
	by, terms := stock.Author{Subject: "backend", IdempotencyKey: "return"}, stock.Terms{Open: 10}
	var holds []stock.Hold
	for n := range 3 {
		wanted := stock.Sale{ItemID: item.ItemID, Quantity: 1, Subject: "ann", IdempotencyKey: fmt.Sprint("hold-", n), Holds: true, Limit: 10}
		h, err := s.Hold(t.Context(), wanted, 0, terms)
		if err != nil {
			t.Fatal(err)
		}
		holds = append(holds, h)
	}
	_, released := s.Move(t.Context(), by, holds[0].PublicID, stock.Release("test"))
	_, confirmed := s.Confirm(t.Context(), by, holds[1].PublicID, "ref", stock.Sale{Strategy: "conditional", Shop: "shop", RequestID: "r"}, terms)
	n, _, _, ended := s.EndHolds(t.Context(), "shop", 10)
	_, late := s.Confirm(t.Context(), by, holds[2].PublicID, "late", stock.Sale{}, terms)
	_, returned := s.Return(t.Context(), by, "late")
	_, cleared := s.ClearHoldKeys(t.Context(), 0, 10)
	_, forgotten := s.ForgetHolds(t.Context(), 0, 10)
	if err := errors.Join(released, confirmed, ended, returned, cleared, forgotten); err != nil || !errors.Is(late, stock.ErrPaidLate) || n != 1 {
		t.Errorf("%v, %v, %d ended", err, late, n)
	}
}
