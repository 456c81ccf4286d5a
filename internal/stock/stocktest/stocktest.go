// Package stocktest has migrated databases for tests.
package stocktest

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"stocklock/internal/stock"
	"stocklock/internal/testserver"
)

// Open returns a store on a database of the test's own, and closes it with the test.
func Open(t testing.TB, options ...stock.Option) *stock.Store {
	t.Helper()
	return OpenAt(t, Database(t), options...)
}

// OpenAt returns a store on a database, and closes it with the test.
func OpenAt(t testing.TB, dsn string, options ...stock.Option) *stock.Store {
	t.Helper()
	store, err := stock.Open(dsn, options...)
	if err != nil {
		t.Fatalf("open the store: %v", err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// made is what makes the newest schema, once the first test of the process has migrated a database.
var made struct {
	sync.Mutex
	statements string
}

// Database returns the DSN of a database of the test's own that has the newest schema. The first one is
// migrated, and the others are copies of it, which takes a part of the time.
func Database(t testing.TB) string {
	t.Helper()
	made.Lock()
	defer made.Unlock()
	if made.statements == "" {
		dsn := testserver.Database(t)
		statements, err := migrated(t.Context(), dsn, OpenAt(t, dsn))
		if err != nil {
			t.Fatalf("migrate: %v", err)
		}
		made.statements = statements
	}
	dsn := testserver.Database(t)
	if err := carryOut(t.Context(), dsn, made.statements); err != nil {
		t.Fatalf("copy the schema: %v", err)
	}
	return dsn
}

// migrated migrates a database, and returns the statements that make another one like it.
func migrated(ctx context.Context, dsn string, store *stock.Store) (string, error) {
	if err := store.Migrate(ctx, slog.New(slog.DiscardHandler)); err != nil {
		return "", err
	}
	from, err := mysqldriver.ParseDSN(dsn)
	if err != nil {
		return "", err
	}
	tables, err := Tables(ctx, store)
	statements := []string{"SET FOREIGN_KEY_CHECKS = 0"}
	for name, create := range tables {
		statements = append(statements, create, fmt.Sprintf("INSERT INTO `%s` SELECT * FROM `%s`.`%[1]s`", name, from.DBName))
	}
	return strings.Join(statements, ";\n"), err
}

// Tables returns the statement that makes each table of a store.
func Tables(ctx context.Context, store *stock.Store) (map[string]string, error) {
	var names []string
	rows, err := store.Pool().QueryContext(ctx, "SHOW TABLES")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		names = append(names, "")
		if err := rows.Scan(&names[len(names)-1]); err != nil {
			return nil, err
		}
	}
	tables := map[string]string{}
	for _, name := range names {
		var create string
		if err := store.Pool().QueryRowContext(ctx, "SHOW CREATE TABLE `"+name+"`").Scan(&name, &create); err != nil {
			return nil, err
		}
		tables[name] = create
	}
	return tables, rows.Err()
}

// Migrate brings the database of a store to the newest schema.
func Migrate(t testing.TB, store *stock.Store) {
	t.Helper()
	if err := store.Migrate(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatalf("migrate: %v", err)
	}
}

// Item creates an item with so many units.
func Item(t testing.TB, store *stock.Store, units int64) stock.Item {
	t.Helper()
	item, err := store.CreateItem(t.Context(), "item", units)
	if err != nil {
		t.Fatalf("create an item: %v", err)
	}
	return item
}

// Left returns how many units of an item there are.
func Left(t testing.TB, store *stock.Store, id uint64) int64 {
	t.Helper()
	item, err := store.Read(t.Context(), id)
	if err != nil {
		t.Fatalf("read item %d: %v", id, err)
	}
	return item.Stock
}

// LockWaits returns the ids of the transactions of a store's database that wait for a lock.
func LockWaits(ctx context.Context, store *stock.Store) ([]string, error) {
	var ids string
	err := store.Pool().QueryRowContext(ctx, "SELECT COALESCE(GROUP_CONCAT(t.trx_id SEPARATOR ' '), '') FROM information_schema.innodb_trx t"+
		" JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id WHERE p.db = DATABASE() AND t.trx_state = 'LOCK WAIT'").Scan(&ids)
	return strings.Fields(ids), err
}

// LockWaitsStay is the time between two questions for LockWaits. If it is asked sooner, MariaDB answers as before.
const LockWaitsStay = 150 * time.Millisecond

// AwaitLockWait waits until a transaction of a store's database waits for a lock.
func AwaitLockWait(t testing.TB, store *stock.Store) {
	t.Helper()
	testserver.Await(t, "a transaction to wait for a lock", func() bool {
		time.Sleep(LockWaitsStay)
		waiting, err := LockWaits(t.Context(), store)
		return err == nil && len(waiting) > 0
	})
}

// carryOut carries out statements in one round trip.
func carryOut(ctx context.Context, dsn, statements string) error {
	to, err := mysqldriver.ParseDSN(dsn)
	if err != nil {
		return err
	}
	to.MultiStatements = true
	connector, err := mysqldriver.NewConnector(to)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	_, err = db.ExecContext(ctx, statements)
	return err
}
