package main

import (
	"database/sql"
	"strings"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"

	"stocklock/internal/lab/rig"
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
	t.Setenv("SHOP_MYSQL", admin)
	for range 2 { // the second time there is nothing to do
		if code, _, stderr := command(t.Context(), "migrate"); code != 0 || !strings.Contains(stderr, "the schema is up to date") {
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
		header := map[string][]string{"X-Lab-Strategy": {name}, "Idempotency-Key": {"key-" + name}}
		if got := post(t.Context(), shop, item, header, ""); got == nil || got.StatusCode != 201 {
			t.Errorf("%s: %+v; the log: %s", name, got, shop.LogTail())
		}
	}
}

func TestAShopThatMayNotMigrateWaitsForTheSchema(t *testing.T) {
	t.Setenv("SHOP_MYSQL", testserver.Database(t))
	t.Setenv("SHOP_REDIS", "redis://"+testserver.RedisAddr(t))
	code, _, stderr := command(t.Context(), "--addr=127.0.0.1:0", "--no-migrate", "--startup-timeout=1s")
	if code != 1 || !strings.Contains(stderr, "the schema is at version 0, this program needs") {
		t.Errorf("exit code %d, said %s", code, stderr)
	}
}

func TestMigrateGivesUp(t *testing.T) {
	t.Setenv("SHOP_MYSQL", goodMySQL)
	if code, _, stderr := command(t.Context(), "migrate", "--startup-timeout=1s"); code != 1 ||
		!strings.Contains(stderr, "shop: mysql at 127.0.0.1:1: gave up after 1s") || strings.Contains(stderr, "geheim") {
		t.Errorf("exit code %d, said %s", code, stderr)
	}
	t.Setenv("SHOP_MYSQL", "")
	if code, _, stderr := command(t.Context(), "migrate"); code != 2 {
		t.Errorf("without SHOP_MYSQL: exit code %d, said %s", code, stderr)
	}
}
