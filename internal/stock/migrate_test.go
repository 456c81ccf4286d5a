package stock_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/testserver"
	schema "stocklock/sql"
)

// backTo takes the notes of all later migrations away.
func backTo(t *testing.T, store *stock.Store, version int64) {
	t.Helper()
	if _, err := store.Pool().ExecContext(t.Context(), "DELETE FROM goose_db_version WHERE version_id > ?", version); err != nil {
		t.Fatal(err)
	}
}

// TestAMigrationThatWasCommittedAndNotNoted begins anew after a crash between the two.
func TestAMigrationThatWasCommittedAndNotNoted(t *testing.T) {
	all, err := fs.Glob(schema.Migrations, "migrations/*")
	if err != nil {
		t.Fatal(err)
	}
	before, store := int64(0), stocktest.Open(t) // which each migration leaves at the newest version
	for _, name := range all {
		version := before
		if before, err = goose.NumericComponent(name); err != nil {
			t.Fatal(err)
		}
		backTo(t, store, version)
		if err := store.Migrate(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
			t.Errorf("after version %d: %v", version, err)
		}
		if err := store.Migrated(t.Context(), nil); err != nil {
			t.Errorf("after version %d: %v", version, err)
		}
	}
}

// TestATableOfAnotherProgramStays has one that a version before had made under the same name.
func TestATableOfAnotherProgramStays(t *testing.T) {
	ours := map[string]string{
		"reservations":  "id BIGINT PRIMARY KEY, item_id BIGINT, quantity BIGINT, expires_at DATETIME(6)",
		"stock_buckets": "item_id BIGINT, bucket INT, stock BIGINT",
		"stock_checked": "item_id BIGINT PRIMARY KEY, stock BIGINT",
		"stock_ledger":  "item_id BIGINT, part TINYINT, entry CHAR(36), quantity BIGINT",
		"stock_units":   "item_id BIGINT, unit BIGINT",
	}
	for _, stays := range []bool{true, false} {
		store := stocktest.OpenAt(t, testserver.Database(t))
		for name, columns := range ours {
			if stays {
				columns += ", guest TEXT"
			}
			if _, err := store.Pool().ExecContext(t.Context(), "CREATE TABLE "+name+" ("+columns+")"); err != nil {
				t.Fatal(err)
			}
		}
		stocktest.Migrate(t, store)
		tables, err := stocktest.Tables(t.Context(), store)
		for name := range ours {
			if err != nil || (tables[name] != "") != stays {
				t.Errorf("another program's: %t, %s is %q, %v", stays, name, tables[name], err)
			}
		}
	}
}

// TestAProcessDiedBeforeGoosesFirstRow leaves goose's table empty, where nothing was migrated yet.
func TestAProcessDiedBeforeGoosesFirstRow(t *testing.T) {
	store := stocktest.OpenAt(t, testserver.Database(t))
	notes, err := database.NewStore(goose.DialectMySQL, goose.DefaultTablename)
	if err != nil {
		t.Fatal(err)
	}
	if err := notes.CreateVersionTable(t.Context(), store.Pool()); err != nil {
		t.Fatal(err)
	}
	stocktest.Migrate(t, store)
	if err := store.Migrated(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// readOrders begins a transaction that has the table of orders.
func readOrders(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tx.Rollback() })
	var n int
	if err := tx.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return tx
}

// undoTheLast undoes the last migration that alters the table of orders.
func undoTheLast(t *testing.T, store *stock.Store) {
	t.Helper()
	if _, err := store.Pool().ExecContext(t.Context(), "ALTER TABLE orders ADD KEY orders_created_at (created_at), ADD KEY orders_run (run, id), ADD KEY orders_item_subject (item_id, subject), DROP KEY orders_standing"); err != nil {
		t.Fatal(err)
	}
	backTo(t, store, 15)
}

func awaitRow(t *testing.T, what string, db *sql.DB, query string, args ...any) {
	t.Helper()
	// MariaDB fills its tables of transactions anew only when nobody has read them for 0.1 s.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(120 * time.Millisecond) {
		var is bool
		if err := db.QueryRowContext(t.Context(), query, args...).Scan(&is); err != nil && !errors.Is(err, sql.ErrNoRows) {
			t.Fatal(err)
		}
		if is {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

const altering = "SELECT COUNT(*) > 0 FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE 'ALTER TABLE orders%'"

// waiting says of [altering] that sales wait behind it.
const waiting = " AND state = 'Waiting for table metadata lock'"

// TestAMigrationLetsSalesPass has a transaction that reads orders for as long as a migration waits for
// the table. Sales wait behind the migration, and are still made. Meanwhile it renews its lease.
// It waits for longer than its DSN lets a statement take, because that is for sales.
func TestAMigrationLetsSalesPass(t *testing.T) {
	dsn := stocktest.Database(t)
	store, impatient := stocktest.OpenAt(t, dsn), stocktest.OpenAt(t, dsn+"?readTimeout=500ms")
	item := stocktest.Item(t, store, 100)
	undoTheLast(t, store)
	reader := readOrders(t, store.Pool())
	migrated := make(chan error, 1)
	go func() { migrated <- impatient.Migrate(t.Context(), slog.New(slog.DiscardHandler)) }()
	awaitRow(t, "the ALTER", store.Pool(), altering)
	var lease string
	if err := store.Pool().QueryRowContext(t.Context(), "SELECT expires_at FROM migrating").Scan(&lease); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		awaitRow(t, "the ALTER to wait", store.Pool(), altering+waiting)
		_, err := store.Decrement(t.Context(), one(item))
		for errors.Is(err, stock.ErrConflict) { // the next ALTER came between its statements
			_, err = store.Decrement(t.Context(), one(item))
		}
		if err != nil {
			t.Errorf("a sale behind the ALTER: %v", err)
		}
	}
	awaitRow(t, "the lease to be renewed", store.Pool(), "SELECT expires_at > CAST(? AS DATETIME(6)) FROM migrating", strings.Trim(strings.Replace(lease, "T", " ", 1), "Z"))
	select {
	case err := <-migrated:
		t.Fatalf("the migration did not wait: %v", err)
	default:
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Error(err)
	}
	awaitRow(t, "the lease to be freed", store.Pool(), "SELECT COUNT(*) = 0 FROM migrating")
}

// TestAMigrationBetweenTheStatementsOfASale has the ALTER wait for orders when a sale has updated its item. The INSERT
// waits behind it, or the server ends the sale, which can be repeated.
func TestAMigrationBetweenTheStatementsOfASale(t *testing.T) {
	store := stocktest.Open(t)
	item := stocktest.Item(t, store, 1)
	undoTheLast(t, store)
	reader := readOrders(t, store.Pool())
	migrated := make(chan error, 1)
	meanwhile := sync.OnceFunc(func() {
		go func() { migrated <- store.Migrate(t.Context(), slog.New(slog.DiscardHandler)) }()
		awaitRow(t, "the ALTER to wait", store.Pool(), altering+waiting)
	})
	sell := func() error {
		return store.Transact(t.Context(), func(tx stock.Tx) error {
			left, err := tx.Take(item.ID, 1)
			if err != nil {
				return err
			}
			meanwhile()
			_, err = tx.Record(one(item), left+1, left)
			return err
		})
	}
	err := sell()
	for errors.Is(err, stock.ErrConflict) {
		err = sell()
	}
	if left := stocktest.Left(t, store, item.ID); err != nil || left != 0 {
		t.Errorf("the sale: %v, and %d units are left, want none", err, left)
	}
	if err := errors.Join(reader.Rollback(), <-migrated); err != nil {
		t.Error(err)
	}
}

// TestTheAlterOfADeadProcessIsWaitedFor has the ALTER of a process that is gone, and the rest of its
// lease.
func TestTheAlterOfADeadProcessIsWaitedFor(t *testing.T) {
	store := stocktest.Open(t)
	undoTheLast(t, store)
	if _, err := store.Pool().ExecContext(t.Context(), "INSERT INTO migrating VALUES (1, 'dead', UTC_TIMESTAMP(6) + INTERVAL 2 SECOND)"); err != nil {
		t.Fatal(err)
	}
	reader := readOrders(t, store.Pool())
	dead := make(chan error, 1)
	go func() {
		_, err := store.Pool().ExecContext(context.WithoutCancel(t.Context()), "ALTER TABLE orders ADD KEY orders_standing (item_id, subject, cancelled_at, quantity), DROP KEY orders_item_subject, DROP KEY orders_run, DROP KEY orders_created_at")
		dead <- err
	}()
	awaitRow(t, "the ALTER of the dead process", store.Pool(), altering)
	migrated := make(chan error, 1)
	go func() { migrated <- store.Migrate(t.Context(), slog.New(slog.DiscardHandler)) }()
	awaitRow(t, "the new owner of the lease", store.Pool(), "SELECT owner <> 'dead' FROM migrating")
	awaitRow(t, "the second ALTER", store.Pool(), strings.Replace(altering, "> 0", "> 1", 1))
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-dead, <-migrated); err != nil {
		t.Error(err)
	}
	if err := store.Migrated(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// TestTheSchemaHasWhatASaleNeeds: no table of the lab, and no index that each sale writes and nobody reads.
func TestTheSchemaHasWhatASaleNeeds(t *testing.T) {
	store := stocktest.Open(t)
	for query, want := range map[string]string{
		"SELECT GROUP_CONCAT(table_name ORDER BY HEX(table_name)) FROM information_schema.tables WHERE table_schema = DATABASE()":                                        "changes,goose_db_version,hold_customers,hold_history,hold_keys,hold_lines,holds,items,migrating,orders,payments,runs",
		"SELECT GROUP_CONCAT(DISTINCT index_name ORDER BY HEX(index_name)) FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = 'orders'": "PRIMARY,orders_key_subject,orders_keyed_at,orders_public_id,orders_standing,orders_subject",
	} {
		var is string
		if err := store.Pool().QueryRowContext(t.Context(), query).Scan(&is); err != nil || is != want {
			t.Errorf("there are %s, %v; want %s", is, err, want)
		}
	}
}
