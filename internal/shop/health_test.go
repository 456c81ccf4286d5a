package shop

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"stocklock/internal/stock"
	"stocklock/internal/testserver"
)

// TestAServerThatCannotWorkIsNoticedAndNoDefect makes Redis and MySQL refuse to work while they
// answer: a sale is answered with 503, the operator is told what to do, and the shop is not ready.
func TestAServerThatCannotWorkIsNoticedAndNoDefect(t *testing.T) {
	servers := testserver.Start(t)
	mysql, err := servers.MySQL(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	redis, err := servers.Redis(t.Context(), testserver.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	admin, err := stock.Open(mysql.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if err := admin.Migrate(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	cfg, err := mysqldriver.ParseDSN(mysql.DSN())
	if err != nil {
		t.Fatal(err)
	}
	asAdmin := func(statement string) {
		t.Helper()
		if _, err := admin.Pool().ExecContext(t.Context(), strings.ReplaceAll(statement, "DATABASE", cfg.DBName)); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	asAdmin("CREATE USER shop IDENTIFIED BY 'geheim'")
	asAdmin("GRANT SELECT ON DATABASE.* TO shop")
	asAdmin("GRANT UPDATE ON DATABASE.items TO shop")
	asAdmin("GRANT INSERT ON DATABASE.orders TO shop")
	asShop := *cfg
	asShop.User, asShop.Passwd = "shop", "geheim"
	s := openUnready(t, asShop.FormatDSN(), redis.URL(), func(c *Config) { c.SchemaIsManaged = true })
	item, err := admin.CreateItem(t.Context(), "book", 100)
	if err != nil {
		t.Fatal(err)
	}
	redisDo := func(args string) {
		t.Helper()
		words := []any{}
		for _, word := range strings.Fields(args) {
			words = append(words, word)
		}
		if err := s.redis.Do(t.Context(), words...).Err(); err != nil {
			t.Fatalf("%s: %v", args, err)
		}
	}
	for _, test := range []struct {
		name         string
		do           func(string)
		breaks, ends string
		advice       string
	}{
		{"Redis without room", redisDo, "config set maxmemory 1", "config set maxmemory 0", "raise maxmemory"},
		{"Redis as a replica", redisDo, "replicaof 127.0.0.1 1", "replicaof no one", "point SHOP_REDIS at the primary"},
		{"Redis without replicas", redisDo, "config set min-replicas-to-write 1", "config set min-replicas-to-write 0", "min-replicas-to-write"},
		{"MySQL read-only", asAdmin, "SET GLOBAL read_only = 1", "SET GLOBAL read_only = 0", "point SHOP_MYSQL at the primary"},
		{"no INSERT", asAdmin, "REVOKE INSERT ON DATABASE.orders FROM shop", "GRANT INSERT ON DATABASE.orders TO shop", "grant the rights"},
		{"a table that is gone", asAdmin, "RENAME TABLE orders TO orders2", "RENAME TABLE orders2 TO orders", "run shop migrate"},
	} {
		waitFor(t, "the shop to be ready", func() bool { return s.get("/readyz").status == http.StatusOK })
		if got := s.buy(item); got.status != 201 {
			t.Fatalf("%s: a sale before: %d %s", test.name, got.status, got.body)
		}
		test.do(test.breaks)
		if got := s.buy(item); got.problem() != "unavailable" || got.header.Get("Retry-After") == "" || strings.Contains(got.body, "unknown") {
			t.Errorf("%s: a sale: %d %s, want unavailable, and no doubt", test.name, got.status, got.body)
		}
		waitFor(t, test.name+": the shop to notice", func() bool { return s.get("/readyz").status == 503 })
		if !strings.Contains(s.log.String(), test.advice) {
			t.Errorf("%s: the log does not say %q", test.name, test.advice)
		}
		test.do(test.ends)
	}
}

func TestABusyPoolIsNotAMissingServer(t *testing.T) {
	s := open(t, nil)
	var held []interface{ Close() error }
	defer func() {
		for _, c := range held {
			_ = c.Close()
		}
	}()
	for range stock.PoolSize {
		conn, err := s.store.Pool().Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
	}
	for _, d := range s.health.dependencies {
		if err := d.ask(t.Context(), true); err != nil {
			t.Errorf("%s while all connections are in use: %v", d.name, err)
		}
	}
}

func TestSalesThatFailMakeAShopUnready(t *testing.T) {
	h := newHealth(nil)
	for range maxFailedSales - 1 {
		h.sold(true)
	}
	if h.salesFail() {
		t.Error("too few failures count")
	}
	h.sold(true)
	if !h.salesFail() || !slices.Equal(h.missing(), []string{"sales"}) {
		t.Errorf("%d failures do not count", maxFailedSales)
	}
	h.lastFailure.Store(time.Now().Add(-failedSalesExpire).UnixNano())
	if h.salesFail() {
		t.Error("old failures count")
	}
	h.sold(true)
	h.sold(false)
	if h.salesFail() {
		t.Error("failures count that a sale ended")
	}
}

func TestAServerIsMissingAfterThreeFailures(t *testing.T) {
	d := &dependency{}
	for i, want := range []bool{false, false, true, true} {
		d.setState(errors.New("no"))
		if missing := d.state() != nil; missing != want {
			t.Errorf("after %d failures: missing %t", i+1, missing)
		}
	}
	d.setState(nil)
	if d.state() != nil {
		t.Error("it is still missing")
	}
}
