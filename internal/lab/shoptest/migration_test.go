//go:build migration

package shoptest

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3"

	"stocklock/internal/lab/rig"
	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/testserver"
	schema "stocklock/sql"
)

// millions is how many orders there are: half of them of three years, without keys, and the others of
// a day, with keys.
func millions(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("MILLIONS"), "3"))
	if err != nil {
		t.Fatalf("MILLIONS: %v", err)
	}
	return n
}

// TestAMigrationOfMillionsOfOrders has customers order all the time. First three shops start at once
// on an old schema with millions of orders, which one of them migrates. Then, while all three sell,
// the table is altered once more, as the next version's migration would. Every answer is a sale or a
// clean 503. At the end it measures how long the shop's statements take that could grow with the orders. What it measures
// goes to the file SAVE, too: see scripts/measure.sh.
func TestAMigrationOfMillionsOfOrders(t *testing.T) {
	mysql, err := testserver.Start(t).MySQL(t.Context(), "--innodb-buffer-pool-size=512M")
	if err != nil {
		t.Fatal(err)
	}
	db := patient(t, mysql.DSN())
	item := fillOldSchema(t, db)

	env := map[string]string{"SHOP_MYSQL": mysql.DSN(), "SHOP_REDIS": "redis://" + testserver.RedisAddr(t), "SHOP_DRAIN_DELAY": ""}
	var shops []*rig.Shop
	for i := range 3 {
		shop, err := processes.Shop(t.Context(), rig.ShopOptions{Name: fmt.Sprint("shop-", i), Env: env, Live: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = shop.Kill() })
		shops = append(shops, shop)
	}
	customers := openCustomers(t, shops, item)
	began := time.Now()
	for i, shop := range shops {
		for rig.Ready(t.Context(), shop.URL) != nil {
			if time.Since(began) > 20*time.Minute {
				t.Fatalf("shop %d is not ready; its log: %s", i, shop.LogTail())
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	migrated := time.Since(began)
	time.Sleep(3 * time.Second)
	customers.report("while one shop migrated and two waited, for "+migrated.Round(time.Second).String(), true)
	saved := results{of: millions(t)}
	saved.add("the migration", seconds(migrated))

	time.Sleep(10 * time.Second)
	customers.report("10 s of sales", false)
	began = time.Now()
	for _, alter := range []string{
		"ALTER TABLE orders ADD COLUMN region VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT ''," +
			" ADD UNIQUE KEY orders_key_region (idempotency_key, subject, region), ADD KEY orders_region (region, created_at)",
		"ALTER TABLE orders DROP KEY orders_key_region",
	} {
		if _, err := db.ExecContext(t.Context(), alter); err != nil {
			t.Fatalf("%s: %v", alter, err)
		}
	}
	altered := time.Since(began)
	sales, others, longest := customers.report("while the table was altered under three shops that sell, for "+altered.Round(time.Second).String(), true)
	saved.add("the alteration", seconds(altered), fmt.Sprint(sales, " sales"), fmt.Sprint(others, " refused"))
	saved.add("the longest sale meanwhile", seconds(longest))
	customers.stop()
	var left int64
	if err := db.QueryRowContext(t.Context(), "SELECT stock FROM items WHERE id = ?", item.ID).Scan(&left); err != nil {
		t.Fatal(err)
	}
	if gone := item.Stock - left; gone != customers.sold {
		t.Errorf("%d units are gone for %d answers with 201", gone, customers.sold)
	}
	measureStatements(t, mysql.DSN(), item, &saved)
	if path := os.Getenv("SAVE"); path != "" && !t.Failed() {
		if err := os.WriteFile(path, []byte(saved.text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// results are what was measured, in the format of Go's benchmarks.
type results struct {
	of   int // million orders
	text strings.Builder
}

func (r *results) add(what string, values ...string) {
	fmt.Fprintf(&r.text, "BenchmarkMigration/%d_million/%s 1 %s\n", r.of, strings.ReplaceAll(what, " ", "_"), strings.Join(values, " "))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// patient opens connections that wait as long as a statement takes.
func patient(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	cfg, err := mysqldriver.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MultiStatements = true
	db, err := sql.Open("mysql", cfg.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// fillOldSchema makes the schema as it was before orders had public ids, with millions of orders.
func fillOldSchema(t *testing.T, db *sql.DB) stock.Item {
	t.Helper()
	files, err := fs.Sub(schema.Migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	migrations, err := goose.NewProvider(goose.DialectMySQL, db, files)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrations.UpTo(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	item := stock.Item{ID: 1, Stock: 1 << 40}
	if _, err := db.ExecContext(t.Context(), "INSERT INTO items (id, name, stock) VALUES (1, 'book', ?)", item.Stock); err != nil {
		t.Fatal(err)
	}
	began, n := time.Now(), millions(t)
	for i := range n {
		made := "UTC_TIMESTAMP(6) - INTERVAL 1 + FLOOR(RAND() * 1094) DAY, NULL"
		if i >= n/2 {
			made = "UTC_TIMESTAMP(6) - INTERVAL FLOOR(RAND() * 80000) SECOND, UUID()"
		}
		_, err := db.ExecContext(t.Context(), "INSERT INTO orders (item_id, quantity, stock_read, stock_written, strategy, shop, request_id, created_at, idempotency_key)"+
			" WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)"+
			" SELECT 1, 1, 1, 0, 'conditional', 'old', UUID(), "+made+" FROM n a, n b, n c")
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d million orders in %s", n, time.Since(began).Round(time.Second))
	return item
}

// measureStatements measures what a shop sends besides sales.
func measureStatements(t *testing.T, dsn string, item stock.Item, saved *results) {
	t.Helper()
	store := stocktest.OpenAt(t, dsn)
	made, err := store.Decrement(t.Context(), stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: "r", Strategy: "conditional", Shop: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	clear := func(ttl time.Duration) func() error {
		return func() error { _, _, err := store.ClearKeys(t.Context(), time.Unix(0, 0), ttl, 1000); return err }
	}
	by := stock.Author{Subject: "ann", IdempotencyKey: "k", RequestID: "r", Shop: "shop"}
	for _, s := range []struct {
		what string
		do   func() error
	}{
		{"look for expired keys, and find none", clear(24 * time.Hour)},
		{"clear a thousand keys", clear(time.Hour)},
		{"clear the next thousand", clear(time.Hour)},
		{"cancel the newest order", func() error { _, err := store.Cancel(t.Context(), by, stock.Cancelled, made.Rows()); return err }},
		{"cancel the oldest order", func() error {
			by.IdempotencyKey = "oldest"
			_, err := store.Cancel(t.Context(), by, stock.Cancelled, []stock.Order{{ID: 1, ItemID: item.ID, Quantity: 1}})
			return err
		}},
		{"list 50 items", func() error { _, err := store.Items(t.Context(), 0, 50); return err }},
		{"look for a key", func() error {
			_, err := store.OrderByKey(t.Context(), "", made.PublicID)
			return ignore(err, stock.ErrNotFound)
		}},
	} {
		began := time.Now()
		if err := s.do(); err != nil {
			t.Errorf("%s: %v", s.what, err)
		}
		took := time.Since(began)
		t.Logf("%s: %s", s.what, took.Round(100*time.Microsecond))
		saved.add(s.what, fmt.Sprintf("%.1f ms", 1e3*took.Seconds()))
	}
}

func ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// customers order from all shops in turn.
type customers struct {
	t     *testing.T
	close context.CancelFunc
	wait  sync.WaitGroup

	mu        sync.Mutex // guards the rest
	sold      int64
	statuses  map[string]int // since the last report
	longest   time.Duration  // since the last report
	mostSales time.Duration  // the longest time to a sale since the last report
}

func openCustomers(t *testing.T, shops []*rig.Shop, item stock.Item) *customers {
	ctx, stop := context.WithCancel(context.Background())
	c := &customers{t: t, close: stop, statuses: map[string]int{}}
	const each, pause = 4, 50 * time.Millisecond
	for _, shop := range shops {
		for range each {
			c.wait.Go(func() {
				for ctx.Err() == nil {
					c.order(shop, item)
					time.Sleep(pause)
				}
			})
		}
	}
	t.Cleanup(c.stop)
	return c
}

func (c *customers) stop() {
	c.close()
	c.wait.Wait()
}

func (c *customers) order(shop *rig.Shop, item stock.Item) {
	began := time.Now()
	answer, err := http.Post(fmt.Sprintf("%s/api/v1/items/%d/orders", shop.URL, item.ID), "application/json", strings.NewReader(`{"quantity":1}`))
	what := "no answer"
	if err == nil {
		body, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		var problem struct{ Type, Detail string }
		_ = json.Unmarshal(body, &problem)
		what = strings.TrimSpace(fmt.Sprint(answer.StatusCode, " ", problem.Detail))
		clean := answer.StatusCode == http.StatusServiceUnavailable && answer.Header.Get("Retry-After") != "" && strings.Contains(problem.Detail, "nothing")
		if answer.StatusCode != http.StatusCreated && !clean {
			c.t.Errorf("an order was answered with %s after %s", what, time.Since(began))
		}
	} else {
		c.t.Errorf("an order was not answered: %v", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.statuses[what]++
	c.longest = max(c.longest, time.Since(began))
	if what == "201" {
		c.sold++
		c.mostSales = max(c.mostSales, time.Since(began))
	}
}

// report logs the answers since the last report. It returns how many were sales, how many were not, and the longest
// time to a sale.
func (c *customers) report(when string, needsSales bool) (sales, others int, longest time.Duration) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t.Logf("%s: %v, the longest answer after %s, the longest sale %s", when, c.statuses,
		c.longest.Round(time.Millisecond), c.mostSales.Round(time.Millisecond))
	if needsSales && c.statuses["201"] == 0 {
		c.t.Errorf("%s: nothing was sold", when)
	}
	for what, n := range c.statuses {
		if what == "201" {
			sales = n
		} else {
			others += n
		}
	}
	longest = c.mostSales
	c.statuses, c.longest, c.mostSales = map[string]int{}, 0, 0
	return sales, others, longest
}
