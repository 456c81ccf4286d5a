package shoptest

import (
	"database/sql"
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
		header := http.Header{labmode.StrategyHeader: {name}, "Idempotency-Key": {"key-" + name}}
		if got := post(t.Context(), shop, item, header, ""); got == nil || got.StatusCode != 201 {
			t.Errorf("%s: %+v; the log: %s", name, got, shop.LogTail())
		}
	}
}
