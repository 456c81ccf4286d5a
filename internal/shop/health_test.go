package shop

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/testserver"
)

// governed is a shop with the least rights on servers of its own, which the test governs.
type governed struct {
	*running
	admin *stock.Store
	asked string // the shop's DSN
	item  stock.Item
}

func openGoverned(t *testing.T, change func(*Config)) *governed {
	t.Helper()
	servers := testserver.Start(t)
	mysql, err := servers.MySQL(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	redis, err := servers.Redis(t.Context(), testserver.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g := &governed{}
	g.admin = stocktest.OpenAt(t, mysql.DSN())
	stocktest.Migrate(t, g.admin)
	g.item = stocktest.Item(t, g.admin, 100)
	cfg, err := mysqldriver.ParseDSN(mysql.DSN())
	if err != nil {
		t.Fatal(err)
	}
	cfg.User, cfg.Passwd = "shop", "geheim"
	g.asked = cfg.FormatDSN()
	g.running = &running{t: t} // for what comes before the shop
	g.mysql("CREATE USER shop IDENTIFIED BY 'geheim'")
	g.mysql("GRANT SELECT ON * TO shop")
	g.mysql("GRANT UPDATE ON items TO shop")
	g.mysql("GRANT INSERT ON orders TO shop")
	g.running = openUnready(t, g.asked, redis.URL(), func(c *Config) {
		c.SchemaIsManaged, c.Deps.Wait = true, 500*time.Millisecond
		if change != nil {
			change(c)
		}
	})
	t.Cleanup(func() { _ = g.admin.Close() }) // before the shop's, which looks for what goes on
	return g
}

// mysql sends a statement as the administrator.
func (g *governed) mysql(statement string, args ...any) {
	g.t.Helper()
	if _, err := g.admin.Pool().ExecContext(g.t.Context(), statement, args...); err != nil {
		g.t.Fatalf("%s: %v", statement, err)
	}
}

// command sends a command to Redis.
func (g *governed) command(line string) {
	g.t.Helper()
	words := []any{}
	for _, word := range strings.Fields(line) {
		words = append(words, word)
	}
	if err := g.locks.Redis.Do(g.t.Context(), words...).Err(); err != nil {
		g.t.Fatalf("%s: %v", line, err)
	}
}

// disconnect ends the shop's connections to MySQL: a right or a limit counts from the next one on.
func (g *governed) disconnect() {
	g.t.Helper()
	for _, id := range g.connections("") {
		_, _ = g.admin.Pool().ExecContext(g.t.Context(), "KILL "+id) // it may have gone
	}
}

// connections returns the ids of the shop's connections whose statement begins like this.
func (g *governed) connections(statement string) (ids []string) {
	g.t.Helper()
	rows, err := g.admin.Pool().QueryContext(g.t.Context(),
		"SELECT id FROM information_schema.processlist WHERE user = 'shop' AND COALESCE(info, '') LIKE ?", statement+"%")
	if err != nil {
		g.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			g.t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		g.t.Fatal(err)
	}
	return ids
}

// holdRow locks the item's row until the function that it returns.
func (g *governed) holdRow() (release func()) {
	g.t.Helper()
	tx, err := g.admin.Pool().BeginTx(g.t.Context(), nil)
	if err != nil {
		g.t.Fatal(err)
	}
	if _, err := tx.ExecContext(g.t.Context(), "UPDATE items SET name = 'held' WHERE id = ?", g.item.ID); err != nil {
		g.t.Fatal(err)
	}
	return func() { _ = tx.Rollback() }
}

// expectRefusal holds the answer of a sale to be clean: 503, with Retry-After, and no doubt.
func (g *governed) expectRefusal(name string, got answer) {
	g.t.Helper()
	if got.problem() != "unavailable" || got.header.Get("Retry-After") == "" || strings.Contains(got.body, "unknown") {
		g.t.Errorf("%s: a sale: %d %s, want unavailable, and no doubt", name, got.status, got.body)
	}
}

// TestAServerThatCannotWorkIsNoticedAndNoDefect makes Redis and MySQL refuse to work while they
// answer: a sale is answered with 503, the log says what to do, and the shop is not ready.
func TestAServerThatCannotWorkIsNoticedAndNoDefect(t *testing.T) {
	g := openGoverned(t, nil)
	for _, test := range []struct {
		name   string
		breaks func() (ends func())
		advice string
	}{
		{"Redis out of memory", g.by(g.command, "config set maxmemory 1", "config set maxmemory 0"), "raise maxmemory"},
		{"Redis as a replica", g.by(g.command, "replicaof 127.0.0.1 1", "replicaof no one"), "point SHOP_REDIS at the primary"},
		{"Redis without replicas", g.by(g.command, "config set min-replicas-to-write 1", "config set min-replicas-to-write 0"), "min-replicas-to-write"},
		{"Redis without a disk", g.failSnapshot, "Redis cannot write its snapshot"},
		{"Redis in a script", g.occupyRedis, "SCRIPT KILL"},
		{"MySQL read-only", g.by(g.statement, "SET GLOBAL read_only = 1", "SET GLOBAL read_only = 0"), "point SHOP_MYSQL at the primary"},
		{"no INSERT", g.by(g.statement, "REVOKE INSERT ON orders FROM shop", "GRANT INSERT ON orders TO shop"), "grant the rights"},
		{"a table that is gone", g.by(g.statement, "RENAME TABLE orders TO orders2", "RENAME TABLE orders2 TO orders"), "run shop migrate"},
		{"no such user", func() func() { // for a while, MySQL 9.7 takes the old one of two passwords, too
			g.mysql("RENAME USER shop TO other")
			g.disconnect()
			return func() { g.mysql("RENAME USER other TO shop") }
		}, "correct SHOP_MYSQL"},
		{"no connection left to the user", g.useUpConnections, "max_user_connections"},
	} {
		testserver.Await(t, "the shop to be ready", func() bool { return g.get("/readyz").status == http.StatusOK })
		if got := g.buy(g.item); got.status != 201 {
			t.Fatalf("%s: a sale before: %d %s", test.name, got.status, got.body)
		}
		ends := test.breaks()
		g.expectRefusal(test.name, g.buy(g.item))
		testserver.Await(t, test.name+": the shop to notice", func() bool { return g.get("/readyz").status == 503 })
		if !strings.Contains(g.log.String(), test.advice) {
			t.Errorf("%s: the log does not say %q", test.name, test.advice)
		}
		ends()
	}
}

// TestAShopWithoutTheRightsOfReservationsIsNotReady, so that an update waits for them.
func TestAShopWithoutTheRightsOfReservationsIsNotReady(t *testing.T) {
	g := openGoverned(t, func(c *Config) {
		staffed(c)
		c.Reservations, c.Limit, c.SweepInterval = &Reservations{}, 10, -1
	})
	grants := []string{
		"INSERT, UPDATE ON holds", "INSERT, UPDATE ON hold_lines", "INSERT ON hold_history", "INSERT ON hold_keys",
		"INSERT, UPDATE ON hold_customers", "INSERT, UPDATE ON payments",
	}
	for _, grant := range grants {
		g.mysql("GRANT " + grant + " TO shop")
	}
	ready := func() bool { return g.get("/readyz").status == http.StatusOK }
	for _, grant := range grants {
		testserver.Await(t, "the shop to be ready", ready)
		g.mysql("REVOKE " + grant + " FROM shop")
		testserver.Await(t, "the shop not to be ready without "+grant, func() bool { return !ready() })
		g.mysql("GRANT " + grant + " TO shop")
	}
	if !strings.Contains(g.log.String(), "grant the rights") {
		t.Error("the log does not say what to do")
	}
}

func (g *governed) statement(statement string) { g.mysql(statement) }

// by returns a case that breaks and ends with one command each.
func (g *governed) by(send func(string), breaks, ends string) func() func() {
	return func() func() {
		send(breaks)
		return func() { send(ends) }
	}
}

// failSnapshot puts a folder where Redis wants to write its snapshot.
func (g *governed) failSnapshot() func() {
	dir, err := g.locks.Redis.ConfigGet(g.t.Context(), "dir").Result()
	if err != nil {
		g.t.Fatal(err)
	}
	inTheWay := filepath.Join(dir["dir"], "dump.rdb", "folder")
	if err := os.MkdirAll(inTheWay, 0o755); err != nil {
		g.t.Fatal(err)
	}
	if err := g.locks.Redis.ConfigSet(g.t.Context(), "save", "3600 1000000").Err(); err != nil {
		g.t.Fatal(err)
	}
	_ = g.locks.Redis.BgSave(g.t.Context()).Err()
	testserver.Await(g.t, "the snapshot to fail", func() bool {
		return strings.Contains(g.locks.Redis.Info(g.t.Context(), "persistence").Val(), "rdb_last_bgsave_status:err")
	})
	return func() { _ = g.locks.Redis.ConfigSet(g.t.Context(), "save", "").Err() }
}

// occupyRedis runs a script without end.
func (g *governed) occupyRedis() func() {
	g.command("config set busy-reply-threshold 20")
	began := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		close(began)
		_ = g.locks.Redis.Eval(g.t.Context(), "while true do end", nil).Err()
	}()
	<-began
	testserver.Await(g.t, "Redis to be busy", func() bool { return redis.HasErrorPrefix(g.locks.Redis.Ping(g.t.Context()).Err(), "BUSY") })
	return func() {
		if err := g.locks.Redis.ScriptKill(g.t.Context()).Err(); err != nil {
			g.t.Error(err)
		}
		<-ended
	}
}

// useUpConnections takes the one connection that the user may still have.
func (g *governed) useUpConnections() func() {
	g.mysql("ALTER USER shop WITH MAX_USER_CONNECTIONS 1")
	db, err := sql.Open("mysql", g.asked)
	if err != nil {
		g.t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	testserver.Await(g.t, "the only connection", func() bool {
		g.disconnect()
		return db.PingContext(g.t.Context()) == nil
	})
	return func() {
		_ = db.Close()
		g.mysql("ALTER USER shop WITH MAX_USER_CONNECTIONS 0")
	}
}

// TestAStatementThatIsEndedIsNoDefect ends statements that wait for a row: by KILL QUERY, and by
// MariaDB's max_statement_time.
func TestAStatementThatIsEndedIsNoDefect(t *testing.T) {
	g := openGoverned(t, nil)
	testserver.Await(t, "the shop to be ready", func() bool { return g.get("/readyz").status == http.StatusOK })
	release := g.holdRow()
	answers := make(chan answer, 1)
	go func() { answers <- g.buy(g.item) }()
	var waiting []string
	testserver.Await(t, "a statement that waits", func() bool {
		waiting = g.connections("UPDATE")
		return len(waiting) > 0
	})
	g.mysql("KILL QUERY " + waiting[0])
	g.expectRefusal("a statement that was killed", <-answers)
	release()

	if version, err := g.admin.Version(t.Context()); err != nil || !strings.Contains(version, "MariaDB") {
		t.Logf("not tested: max_statement_time, which MySQL %s does not have", version)
		return
	}
	g.mysql("SET GLOBAL max_statement_time = 0.3")
	g.disconnect()
	release = g.holdRow()
	defer release()
	g.expectRefusal("a statement that took too long", g.buy(g.item))
	for _, advice := range []string{"who sends KILL", "max_statement_time"} {
		if !strings.Contains(g.log.String(), advice) {
			t.Errorf("the log does not say %q", advice)
		}
	}
}

// TestErrorsOfServersThatCannotWorkNowAreAdvised lists what a server says that is up: none is a
// defect of the shop, and none leaves the outcome open.
func TestErrorsOfServersThatCannotWorkNowAreAdvised(t *testing.T) {
	for _, number := range []uint16{1203, 1226, 1045, 1317, 1969, 3024, 1114, 1021, 1047, 1142} {
		err := fmt.Errorf("order 1 of item 1: %w", &mysqldriver.MySQLError{Number: number})
		if got := explain(t.Context(), err); got != errNotNow || got.Status != 503 || got.retryAfter == 0 || advice(err) == "" {
			t.Errorf("MySQL's error %d is answered with %+v, and the advice %q", number, got, advice(err))
		}
	}
	if got := explain(t.Context(), &mysqldriver.MySQLError{Number: 1064}); got.Problem != internalError {
		t.Errorf("a syntax error is answered with %+v", got)
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
		if err := d.ask(t.Context(), pingTimeout, true); err != nil {
			t.Errorf("%s while all connections are in use: %v", d.name, err)
		}
	}
}

func TestSalesThatFailMakeAShopUnready(t *testing.T) {
	h := newHealth(nil, 0, 0)
	h.commitStall = func() time.Duration { return 0 }
	for range maxFailedSales - 1 {
		h.noteSale(true)
	}
	if h.salesFail() {
		t.Error("too few failures count")
	}
	h.noteSale(true)
	if !h.salesFail() || !slices.Equal(h.missing(), []string{"sales"}) {
		t.Errorf("%d failures do not count", maxFailedSales)
	}
	h.lastFailure.Store(time.Now().Add(-failedSalesExpire).UnixNano())
	if h.salesFail() {
		t.Error("old failures count")
	}
	if h.noteSale(true); h.salesFail() {
		t.Error("old failures count with the next one")
	}
	for range maxFailedSales {
		h.noteSale(true)
	}
	h.noteSale(false)
	if h.salesFail() {
		t.Error("failures count that a sale ended")
	}
	for stall, want := range map[time.Duration][]string{0: nil, maxCommitStall: nil, maxCommitStall + 1: {"commits"}} {
		h.commitStall = func() time.Duration { return stall }
		if got := h.missing(); !slices.Equal(got, want) {
			t.Errorf("no COMMIT was answered for %s: missing %v", stall, got)
		}
	}
}

// TestARefusalEndsNoRowOfFailedSales: one item that is sold out says nothing of whether others can be sold.
func TestARefusalEndsNoRowOfFailedSales(t *testing.T) {
	s := open(t, nil)
	item := s.item(1)
	const key = "key-of-some-customer-0"
	first := s.buy(item, IdempotencyKeyHeader, key)
	for range maxFailedSales {
		s.health.noteSale(true)
	}
	for _, got := range []answer{s.buy(item), s.buy(item, IdempotencyKeyHeader, key)} {
		if !s.health.salesFail() {
			t.Errorf("failed sales are forgotten after %d %s", got.status, got.body)
		}
	}
	if got := s.buy(s.item(1)); first.status != 201 || got.status != 201 || s.health.salesFail() {
		t.Errorf("failed sales count after %d %s", got.status, got.body)
	}
}

func TestCommitsWithoutAnAnswerMakeAShopUnready(t *testing.T) {
	answered := make(chan struct{})
	s := open(t, func(c *Config) {
		c.Deps.Store = stocktest.Open(t, stock.WithPool(testserver.Intercept(testserver.Statements{Before: func(statement string, _ []driver.NamedValue) error {
			if statement == "COMMIT" {
				<-answered
			}
			return nil
		}})))
	})
	item := stocktest.Item(t, s.Deps.Store, 1)
	sold := make(chan answer)
	go func() { sold <- s.buy(item) }()
	testserver.Await(t, "the shop to be unready", func() bool { return strings.Contains(s.get("/readyz").body, "missing: commits") })
	if stall := s.scrape()["shop_commit_stall_seconds"]; stall <= maxCommitStall.Seconds() {
		t.Errorf("shop_commit_stall_seconds is %v", stall)
	}
	close(answered)
	if got := <-sold; got.status != http.StatusCreated {
		t.Errorf("the sale: %d %s", got.status, got.body)
	}
	testserver.Await(t, "the shop to be ready", func() bool { return s.get("/readyz").status == http.StatusOK })
}

// TestAServerThatIsPreparedIsWaitedFor: a migration takes longer than a shop waits for a server that does not answer.
func TestAServerThatIsPreparedIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		answers := func(context.Context) error { return nil }
		h := newHealth(slog.New(slog.DiscardHandler), time.Second, time.Second, &dependency{there: answers, ping: answers, prepare: func(ctx context.Context) error {
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
			}
			return nil
		}})
		go h.watch(ctx)
		began := time.Now()
		if err := h.wait(ctx, time.Millisecond); err != nil || time.Since(began) < time.Hour {
			t.Errorf("waited for %s, %v, want an hour", time.Since(began), err)
		}
	})
}

// TestAShopThatCannotMigrateSaysWhatToDo, while it waits for its start.
func TestAShopThatCannotMigrateSaysWhatToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		log := &logBuffer{}
		go newHealth(slog.New(slog.NewJSONHandler(log, nil)), time.Second, time.Second, &dependency{
			there:   func(context.Context) error { return nil },
			prepare: func(context.Context) error { return fmt.Errorf("migrate: %w", &mysqldriver.MySQLError{Number: 1799}) },
		}).watch(ctx)
		synctest.Wait()
		if !strings.Contains(log.String(), "raise innodb_online_alter_log_max_size") {
			t.Errorf("the log has no advice: %s", log.String())
		}
	})
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
