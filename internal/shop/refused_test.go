package shop

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"stocklock/internal/stock"
	"stocklock/internal/testserver"
)

// TestAServerThatRefusesASaleIsNoDefect has MySQL and Redis refuse single statements, commands and
// connections: a sale is answered with 503 and without doubt, and the operator is told what to do.
func TestAServerThatRefusesASaleIsNoDefect(t *testing.T) {
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
	asAdmin := func(statements ...string) {
		t.Helper()
		for _, statement := range statements {
			if _, err := admin.Pool().ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
	}
	asAdmin("CREATE USER shop IDENTIFIED BY 'geheim'", "GRANT ALL ON "+cfg.DBName+".* TO shop")
	asShop := *cfg
	asShop.User, asShop.Passwd = "shop", "geheim"
	s := openUnready(t, asShop.FormatDSN(), redis.URL(), nil)
	item, err := admin.CreateItem(t.Context(), "book", 100)
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the shop to be ready", func() bool { return s.get("/readyz").status == http.StatusOK })
	redisDo := func(words ...any) {
		t.Helper()
		if err := s.redis.Do(t.Context(), words...).Err(); err != nil {
			t.Fatalf("%s: %v", words, err)
		}
	}
	// anew has the next sale open a connection.
	anew := func() {
		s.store.Pool().SetMaxIdleConns(-1)
		s.store.Pool().SetMaxIdleConns(2)
	}
	// held has the next sale wait for the item's row, until the function that it returns.
	held := func() (free func()) {
		tx, err := admin.Pool().BeginTx(context.WithoutCancel(t.Context()), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), "UPDATE items SET name = 'held' WHERE id = ?", item.ID); err != nil {
			t.Fatal(err)
		}
		return func() { _ = tx.Rollback() }
	}
	snapshot := filepath.Join(redis.Dir, "dump.rdb")
	for _, test := range []struct {
		name   string
		breaks func() (ends func())
		advice string
	}{
		{"a user with too many connections", func() func() {
			asAdmin("ALTER USER shop WITH MAX_USER_CONNECTIONS 1")
			anew()
			conn, err := s.store.Pool().Conn(t.Context()) // the one, unless the probe has it
			return func() {
				asAdmin("ALTER USER shop WITH MAX_USER_CONNECTIONS 0")
				if err == nil {
					_ = conn.Close()
				}
			}
		}, "used up a resource"},
		{"another password", func() func() {
			asAdmin("ALTER USER shop IDENTIFIED BY 'another'")
			anew()
			return func() { asAdmin("ALTER USER shop IDENTIFIED BY 'geheim'") }
		}, "correct SHOP_MYSQL"},
		{"a statement that is killed", func() func() {
			free := held()
			go func() { // until the sale waits for the row
				for killed := false; !killed && t.Context().Err() == nil; time.Sleep(10 * time.Millisecond) {
					var id int64
					err := admin.Pool().QueryRowContext(t.Context(), "SELECT id FROM information_schema.processlist WHERE user = 'shop' AND info LIKE 'UPDATE items SET stock = %'").Scan(&id)
					if err == nil {
						_, err = admin.Pool().ExecContext(t.Context(), fmt.Sprintf("KILL QUERY %d", id))
					}
					killed = err == nil
				}
			}()
			return free
		}, "a statement was killed"},
		{"a statement that takes too long", func() func() {
			version, err := admin.Version(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(version, "MariaDB") {
				return nil // MySQL bounds only SELECTs
			}
			asAdmin("SET GLOBAL max_statement_time = 0.3")
			free := held()
			anew()
			return func() { free(); asAdmin("SET GLOBAL max_statement_time = 0"); anew() }
		}, "max_statement_time"},
		{"a snapshot that cannot be written", func() func() {
			if err := os.MkdirAll(filepath.Join(snapshot, "x"), 0o755); err != nil { // nothing can be renamed to it
				t.Fatal(err)
			}
			redisDo("config", "set", "save", "3600 100000")
			redisDo("bgsave")
			waitFor(t, "the snapshot to fail", func() bool {
				return strings.Contains(s.redis.Info(t.Context(), "persistence").Val(), "rdb_last_bgsave_status:err")
			})
			return func() { redisDo("config", "set", "save", ""); _ = os.RemoveAll(snapshot) }
		}, "Redis cannot write its snapshot"},
		{"a script without end", func() func() {
			redisDo("config", "set", "busy-reply-threshold", "1")
			other := redis.Client()
			go func() {
				defer other.Close()
				_ = other.Eval(context.WithoutCancel(t.Context()), "while true do end", nil).Err()
			}()
			waitFor(t, "the script to run", func() bool {
				err := s.redis.Get(t.Context(), "x").Err()
				return err != nil && strings.HasPrefix(err.Error(), "BUSY")
			})
			return func() { redisDo("script", "kill") }
		}, "a script occupies Redis"},
	} {
		if got := s.buy(item); got.status != 201 {
			t.Fatalf("%s: a sale before: %d %s", test.name, got.status, got.body)
		}
		ends := test.breaks()
		if ends == nil {
			continue
		}
		if got := s.buy(item); got.problem() != "unavailable" || got.header.Get("Retry-After") == "" || strings.Contains(got.body, "unknown") {
			t.Errorf("%s: a sale: %d %s, want unavailable, and no doubt", test.name, got.status, got.body)
		}
		if !strings.Contains(s.log.String(), test.advice) {
			t.Errorf("%s: the log does not say %q", test.name, test.advice)
		}
		ends()
		waitFor(t, test.name+": sales to go on", func() bool { return s.buy(item).status == 201 })
	}
}
