package stock_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"stocklock/internal/stock"
	"stocklock/internal/testserver"
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
	for version := range int64(7) {
		store := open(t)
		backTo(t, store, version)
		if err := store.Migrate(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
			t.Errorf("after version %d: %v", version, err)
		}
		if err := store.Migrated(t.Context(), nil); err != nil {
			t.Errorf("after version %d: %v", version, err)
		}
	}
}

// TestAProcessDiedBeforeGoosesFirstRow leaves goose's table empty, where nothing was migrated yet.
func TestAProcessDiedBeforeGoosesFirstRow(t *testing.T) {
	store := openEmpty(t, testserver.Database(t))
	notes, err := database.NewStore(goose.DialectMySQL, goose.DefaultTablename)
	if err != nil {
		t.Fatal(err)
	}
	if err := notes.CreateVersionTable(t.Context(), store.Pool()); err != nil {
		t.Fatal(err)
	}
	if err := store.Migrate(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if err := store.Migrated(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// TestAMigrationMayTakeLongerThanTheDriversTimeout makes an ALTER wait for a transaction that has
// the table, longer than the driver waits for an answer.
func TestAMigrationMayTakeLongerThanTheDriversTimeout(t *testing.T) {
	dsn := testserver.Database(t) + "?readTimeout=500ms"
	store := openEmpty(t, dsn)
	log := slog.New(slog.DiscardHandler)
	if err := store.Migrate(t.Context(), log); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"ALTER TABLE orders DROP KEY orders_key_subject, DROP KEY orders_public_id, DROP KEY orders_created_at, DROP COLUMN subject, DROP COLUMN public_id, DROP COLUMN idempotency_key, DROP COLUMN cancelled_at",
		"DELETE FROM goose_db_version WHERE version_id > 1",
	} {
		if _, err := store.Pool().ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	tx, err := store.Pool().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "UPDATE orders SET quantity = quantity WHERE id = 0"); err != nil {
		t.Fatal(err)
	}
	migrated := make(chan error)
	go func() { migrated <- store.Migrate(t.Context(), log) }()
	select {
	case err := <-migrated:
		t.Fatalf("the migration did not wait: %v", err)
	case <-time.After(2 * time.Second):
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Error(err)
	}
	if err := store.Migrated(t.Context(), nil); err != nil {
		t.Error(err)
	}
}
