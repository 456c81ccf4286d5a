package shoptest

import (
	"database/sql"
	"net/http"
	"os"
	"strings"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"

	"stocklock/internal/lab/rig"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
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
}
