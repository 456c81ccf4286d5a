package stock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	schema "stocklock/sql"
)

// migrationProgress is how often a long migration is logged.
const migrationProgress = 10 * time.Second

// Migrate brings the database to the newest version, and logs each step. Any number of processes
// may call it at once. One works, and the others wait and then find nothing to do. Migrate has no
// timeout, because an ALTER of a large table takes minutes.
func (s *Store) Migrate(ctx context.Context, log *slog.Logger) error {
	db, migrations, err := s.migrations(&migrationLock{log})
	if err != nil {
		return err
	}
	defer db.Close()
	began := time.Now()
	working, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		tick := time.NewTicker(migrationProgress)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				log.Info("still migrating", "seconds", int(time.Since(began).Seconds()))
			case <-working.Done():
				return
			}
		}
	}()
	applied, err := migrations.Up(ctx)
	if err != nil {
		return fmt.Errorf("stock: migrate: %w", err)
	}
	for _, m := range applied {
		log.Info("migrated", "migration", path.Base(m.Source.Path), "duration", m.Duration)
	}
	return nil
}

// Migrated returns an error unless the database has the version that this program needs, or a newer
// one as during a rolling update. It needs no right to change the schema.
func (s *Store) Migrated(ctx context.Context, _ *slog.Logger) error {
	is, needed, err := s.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	if is < needed {
		return fmt.Errorf("stock: the schema is at version %d, this program needs %d", is, needed)
	}
	return nil
}

// SchemaVersion returns the version of the database's schema, and the version that this program
// needs.
func (s *Store) SchemaVersion(ctx context.Context) (is, needed int64, err error) {
	db, migrations, err := s.migrations(nil)
	if err != nil {
		return 0, 0, err
	}
	defer db.Close()
	if is, needed, err = migrations.GetVersions(ctx); err != nil {
		return 0, 0, fmt.Errorf("stock: the schema's version cannot be read: %w", err)
	}
	return is, needed, nil
}

// migrations opens a provider of the migrations. Its connections have no timeout: a driver that
// hangs up does not end an ALTER, which would go on beside the next attempt. The caller closes the
// connections.
func (s *Store) migrations(lock *migrationLock) (*sql.DB, *goose.Provider, error) {
	files, err := fs.Sub(schema.Migrations, "migrations")
	if err != nil {
		return nil, nil, err
	}
	patient := s.config.Clone()
	patient.ReadTimeout, patient.WriteTimeout = 0, 0
	connector, err := mysqldriver.NewConnector(patient)
	if err != nil {
		return nil, nil, err
	}
	var options []goose.ProviderOption
	if lock != nil {
		options = append(options, goose.WithSessionLocker(lock))
	}
	db := sql.OpenDB(connector)
	provider, err := goose.NewProvider(goose.DialectMySQL, db, files, options...)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, provider, nil
}

// migrationLock lets one process migrate at a time. It is a user-level lock of MySQL on the
// connection that migrates. A server that still executes the ALTER of a dead process therefore
// holds it, too.
type migrationLock struct{ log *slog.Logger }

const (
	migrationLockName = "stocklock.migrate"
	migrationLockWait = 5 // seconds, after which the wait is logged
)

// SessionLock waits for the lock. Then it updates goose's records to the schema.
func (l *migrationLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	for {
		var got sql.NullInt64
		if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?)", migrationLockName, migrationLockWait).Scan(&got); err != nil {
			return fmt.Errorf("wait for another process to finish migrating: %w", err)
		}
		if got.Int64 == 1 {
			return l.noteCommitted(ctx, conn)
		}
		l.log.Info("another process is migrating")
	}
}

// SessionUnlock frees the lock.
func (l *migrationLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SELECT RELEASE_LOCK(?)", migrationLockName)
	return err
}

// effects has a query for each migration's effect. It counts 1 if the migration was committed.
// MySQL commits an ALTER by itself, before goose can record it.
var effects = []struct {
	version int64
	query   string
}{
	{0, "SELECT 1"}, // goose's own, there once its table is
	{1, "SELECT COUNT(*) = 3 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name IN ('items', 'orders', 'runs')"},
	{2, "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'orders' AND column_name = 'idempotency_key'"},
	{3, "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'orders' AND column_name = 'public_id'"},
	{4, "SELECT (SELECT COUNT(*) FROM goose_db_version WHERE version_id = 3 AND is_applied) > 0 AND (SELECT COUNT(*) FROM information_schema.statistics" +
		" WHERE table_schema = DATABASE() AND table_name = 'orders' AND index_name = 'orders_idempotency_key') = 0"},
	{5, "SELECT COUNT(*) = 3 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name IN ('stock_buckets', 'stock_units', 'reservations')"},
	{6, "SELECT (SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'changes') > 0 AND (SELECT COUNT(*) FROM information_schema.columns" +
		" WHERE table_schema = DATABASE() AND table_name = 'items' AND column_name = 'name' AND character_set_name = 'utf8mb4') > 0"},
	{7, "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'orders' AND column_name = 'cancelled_at'"},
}

// noteCommitted records migrations whose effect exists and whose record is missing. The process
// that applied them died, or lost its connection, between the two. It stops at the first missing
// effect. goose applies that migration and all later ones.
//
// It also creates goose's table. goose creates the table and writes the first row in one
// transaction. MySQL commits in between, and goose never writes that row again.
func (l *migrationLock) noteCommitted(ctx context.Context, conn *sql.Conn) error {
	notes, err := database.NewStore(goose.DialectMySQL, goose.DefaultTablename)
	if err != nil {
		return err
	}
	var known int
	err = conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'goose_db_version'").Scan(&known)
	if err != nil {
		return err
	}
	if known == 0 {
		if err := notes.CreateVersionTable(ctx, conn); err != nil {
			return err
		}
		return notes.Insert(ctx, conn, database.InsertRequest{Version: 0})
	}
	for _, e := range effects {
		var noted, committed int
		if err := conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM goose_db_version WHERE version_id = ? AND is_applied", e.version).Scan(&noted); err != nil {
			return err
		}
		if err := conn.QueryRowContext(ctx, e.query).Scan(&committed); err != nil {
			return err
		}
		if noted > 0 {
			continue
		}
		if committed == 0 {
			return nil
		}
		l.log.Warn("a migration was committed and not noted", "version", e.version)
		if err := notes.Insert(ctx, conn, database.InsertRequest{Version: e.version}); err != nil {
			return err
		}
	}
	return nil
}
