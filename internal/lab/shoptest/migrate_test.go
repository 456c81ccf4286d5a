package shoptest

import (
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"

	"stocklock/internal/lab/rig"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
	"stocklock/internal/testserver"
)

// leastRights is what SECURITY.md tells operators to grant.
var leastRights = []string{
	"CREATE USER shop IDENTIFIED BY 'geheim'",
	"GRANT SELECT ON DATABASE.* TO shop",
	"GRANT UPDATE ON DATABASE.items TO shop",
	"GRANT INSERT ON DATABASE.orders TO shop",
	"GRANT UPDATE (idempotency_key) ON DATABASE.orders TO shop",
	"GRANT INSERT ON DATABASE.items TO shop",
	"GRANT UPDATE (cancelled_at) ON DATABASE.orders TO shop",
	"GRANT INSERT ON DATABASE.changes TO shop",
}

func TestAShopSellsWithTheLeastRights(t *testing.T) {
	admin := testserver.Database(t)
	cfg, err := mysqldriver.ParseDSN(admin)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to do
		if code, stderr := command(t, []string{"SHOP_MYSQL=" + admin}, "migrate"); code != 0 || !strings.Contains(stderr, "the schema is up to date") {
			t.Fatalf("migrate: exit code %d, %s", code, stderr)
		}
	}
	db, err := sql.Open("mysql", admin)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, grant := range leastRights {
		if _, err := db.ExecContext(t.Context(), strings.ReplaceAll(grant, "DATABASE", cfg.DBName)); err != nil {
			t.Fatalf("%s: %v", grant, err)
		}
	}
	cfg.User, cfg.Passwd = "shop", "geheim"
	shop, err := processes.Shop(t.Context(), rig.ShopOptions{Name: "shop", Env: map[string]string{
		"SHOP_MYSQL": cfg.FormatDSN(), "SHOP_REDIS": "redis://" + testserver.RedisAddr(t), "SHOP_MIGRATE": "false", "SHOP_LAB": "true",
		"SHOP_STAFF": "true", "SHOP_SUBJECT_HEADER": "X-Subject",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shop.Kill() })
	store, err := stock.Open(admin)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, name := range []string{"owner-checked", "for-update", "optimistic", "conditional"} {
		item, err := store.CreateItem(t.Context(), "book", 1)
		if err != nil {
			t.Fatal(err)
		}
		header := http.Header{labmode.StrategyHeader: {name}, "Idempotency-Key": {"key-of-some-customer-" + name}}
		if got := post(t.Context(), shop, item, header, ""); got == nil || got.StatusCode != 201 {
			t.Errorf("%s: %+v; the log: %s", name, got, shop.LogTail())
		}
	}
	item, err := store.CreateItem(t.Context(), "book", 1)
	if err != nil {
		t.Fatal(err)
	}
	order, err := store.Decrement(t.Context(), stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: "r", Strategy: "conditional", Shop: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	for n, change := range []struct{ method, path, body string }{
		{"POST", "/api/v1/items", `{"name":"tea","stock":1}`},
		{"PATCH", fmt.Sprintf("/api/v1/items/%d", item.ID), `{"name":"tea"}`},
		{"POST", "/api/v1/orders/" + order.PublicID + "/cancellation", ""},
	} {
		request, err := http.NewRequestWithContext(t.Context(), change.method, shop.Internal+change.path, strings.NewReader(change.body))
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
}
