package stock

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"sync"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	schema "stocklock/sql"
)

const (
	// migrationProgress is how often a long migration is logged.
	migrationProgress = 10 * time.Second
	// tableLockPatience is how many seconds a migration waits for a table that a transaction uses.
	// Every sale waits behind it. It then lets them pass, for migrationPause, and tries again.
	tableLockPatience = "1"
	migrationPause    = 3 * time.Second
)

// Migrate brings the database to the newest version, and logs each step. Any number of processes
// may call it at once, on any nodes of a cluster. One works, and the others wait and then find
// nothing to do. Migrate has no timeout, because an ALTER of a large table takes minutes.
func (s *Store) Migrate(ctx context.Context, log *slog.Logger) error {
	db, migrations, err := s.migrations()
	if err != nil {
		return err
	}
	defer db.Close()
	lab, err := labMigrations(db)
	if err != nil {
		return err
	}
	if isDone(ctx, db, goose.DefaultTablename, migrations) && (lab == nil || isDone(ctx, db, labVersions, lab)) {
		return nil
	}
	began := time.Now()
	working, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for pause(working, migrationProgress) == nil {
			log.Info("still migrating", "seconds", int(time.Since(began).Seconds()))
		}
	}()
	free, err := takeLease(ctx, db, log)
	if err != nil {
		return fmt.Errorf("stock: wait for another process to finish migrating: %w", err)
	}
	defer free()
	if err := migrate(ctx, db, migrations, log); err != nil {
		return fmt.Errorf("stock: migrate: %w", err)
	}
	if lab != nil {
		if _, err := lab.Up(ctx); err != nil {
			return fmt.Errorf("stock: migrate the lab: %w", err)
		}
	}
	return nil
}

// labVersions is the table with the versions of the lab's own tables.
const labVersions = "lab_db_version"

// labMigrations are those of the lab's own tables, or nil in a build without the lab.
func labMigrations(db *sql.DB) (*goose.Provider, error) {
	if schema.Lab == nil {
		return nil, nil
	}
	versions, err := database.NewStore(goose.DialectMySQL, labVersions)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider("", db, schema.Lab, goose.WithStore(versions))
}

// migrate applies what is missing. It begins again where a table was in use, as by the ALTER that the
// server still executes for a process that has died, and where that ALTER is found to be done.
func migrate(ctx context.Context, db *sql.DB, migrations *goose.Provider, log *slog.Logger) error {
	if _, err := noteCommitted(ctx, db, log); err != nil {
		return err
	}
	for {
		applied, err := migrations.Up(ctx)
		if partial, ok := errors.AsType[*goose.PartialError](err); ok {
			applied = partial.Applied
		}
		for _, m := range applied {
			log.Info("migrated", "version", m.Source.Version, "migration", path.Base(m.Source.Path), "duration", m.Duration)
		}
		if err == nil {
			return nil
		}
		is, _ := classOf(err)
		if is == lost {
			log.Warn("a table is in use: the migration is tried again", "error", err)
			if cause := pause(ctx, migrationPause); cause != nil {
				return errors.Join(cause, err)
			}
		}
		noted, noteErr := noteCommitted(ctx, db, log)
		if is != lost && noted == 0 || noteErr != nil {
			return errors.Join(err, noteErr)
		}
	}
}

// isDone reports whether the schema has the newest of the migrations, or a newer one.
func isDone(ctx context.Context, db *sql.DB, versions string, migrations *goose.Provider) bool {
	var is int64
	err := db.QueryRowContext(ctx, "SELECT COALESCE(MAX(version_id), 0) FROM "+versions+" WHERE is_applied").Scan(&is)
	sources := migrations.ListSources()
	return err == nil && is >= sources[len(sources)-1].Version
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
	db, migrations, err := s.migrations()
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
// hangs up does not end an ALTER, which would go on beside the next attempt. They may be idle for as long as the server
// allows, since goose's is while a migration in Go works on another. The caller closes the connections.
func (s *Store) migrations() (*sql.DB, *goose.Provider, error) {
	files, err := fs.Sub(schema.Migrations, "migrations")
	if err != nil {
		return nil, nil, err
	}
	patient := s.config.Clone()
	patient.ReadTimeout, patient.WriteTimeout = 0, 0
	patient.Params["lock_wait_timeout"] = tableLockPatience
	delete(patient.Params, "wait_timeout")
	connector, err := mysqldriver.NewConnector(patient)
	if err != nil {
		return nil, nil, err
	}
	db := sql.OpenDB(connector)
	provider, err := goose.NewProvider(goose.DialectMySQL, db, files,
		goose.WithGoMigrations(goose.NewGoMigration(10, &goose.GoFunc{RunDB: setKeyedAt}, nil)))
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, provider, nil
}

const (
	leaseTime  = 15 * time.Second
	leaseRenew = leaseTime / 3
	leasePoll  = time.Second
)

// takeLease waits until no other process migrates. It renews the lease until free is called. The
// lease is a row, because a cluster replicates rows and no user-level locks. It expires by the clock
// of the database.
func takeLease(ctx context.Context, db *sql.DB, log *slog.Logger) (free func(), err error) {
	owner := rand.Text()
	change := func(ctx context.Context, statement string, args ...any) (rows int64, err error) {
		done, err := db.ExecContext(ctx, statement, args...)
		if is, _ := classOf(err); err != nil {
			if is == lost { // against another process
				err = nil
			}
			return 0, err
		}
		return done.RowsAffected()
	}
	if _, err := change(ctx, "CREATE TABLE IF NOT EXISTS migrating (one TINYINT NOT NULL PRIMARY KEY, owner VARCHAR(64) NOT NULL, expires_at DATETIME(6) NOT NULL) ENGINE = InnoDB"); err != nil {
		return nil, err
	}
	for waited := false; ; waited = true {
		const end = "UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND"
		rows, err := change(ctx, "INSERT IGNORE INTO migrating (one, owner, expires_at) VALUES (1, ?, "+end+")", owner, leaseTime.Microseconds())
		if rows == 0 && err == nil {
			rows, err = change(ctx, "UPDATE migrating SET owner = ?, expires_at = "+end+" WHERE expires_at < UTC_TIMESTAMP(6)", owner, leaseTime.Microseconds())
		}
		if err != nil {
			return nil, err
		}
		if rows > 0 {
			break
		}
		if !waited {
			log.Info("another process is migrating")
		}
		if err := pause(ctx, leasePoll); err != nil {
			return nil, err
		}
	}
	renewing, stop := context.WithCancel(ctx)
	var renewals sync.WaitGroup
	renewals.Go(func() {
		for pause(renewing, leaseRenew) == nil {
			rows, err := change(renewing, "UPDATE migrating SET expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND WHERE owner = ?", leaseTime.Microseconds(), owner)
			if rows == 0 && renewing.Err() == nil {
				log.Warn("the lease of the migration was not renewed", "error", err)
			}
		}
	})
	return func() {
		stop()
		renewals.Wait()
		freeing, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTime) // then it is over
		defer cancel()
		if _, err := change(freeing, "DELETE FROM migrating WHERE owner = ?", owner); err != nil {
			log.Warn("the lease of the migration was not freed", "error", err)
		}
	}, nil
}

// setKeyedAt sets keyed_at of the orders that were made before there was this column. It works in
// steps, so that nothing waits long for a row. It may be done again.
func setKeyedAt(ctx context.Context, db *sql.DB) error {
	const step = 2000
	for from := uint64(0); ; {
		var upTo sql.Null[uint64]
		err := db.QueryRowContext(ctx, "SELECT MAX(id) FROM (SELECT id FROM orders WHERE id > ? ORDER BY id LIMIT ?) step", from, step).Scan(&upTo)
		if err != nil || !upTo.Valid {
			return err
		}
		_, err = db.ExecContext(ctx, "UPDATE orders SET keyed_at = created_at WHERE id > ? AND id <= ? AND keyed_at IS NULL AND idempotency_key IS NOT NULL", from, upTo.V)
		if err != nil {
			return err
		}
		from = upTo.V
	}
}

// pause waits. It returns the cause if ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

const keyedAtIndex = "SELECT COUNT(*) > 0 FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = 'orders' AND index_name = 'orders_keyed_at'"

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
	{6, "SELECT (SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'changes') > 0 AND (SELECT COUNT(*) FROM information_schema.columns" +
		" WHERE table_schema = DATABASE() AND table_name = 'items' AND column_name = 'name' AND character_set_name = 'utf8mb4') > 0"},
	{7, "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'orders' AND column_name = 'cancelled_at'"},
	{8, "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'orders' AND column_name = 'keyed_at'"},
	{9, "SELECT COUNT(column_default) FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'orders' AND column_name = 'keyed_at'"},
	{10, keyedAtIndex}, // the index comes after it
	{11, keyedAtIndex},
	{13, "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'orders' AND column_name = 'line_of'"},
	{14, "SELECT COUNT(*) > 0 FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = 'orders' AND index_name = 'orders_subject'"},
	{15, "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'changes' AND column_name = 'idempotency_key' AND is_nullable = 'YES'"},
	{16, "SELECT COUNT(*) > 0 FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = 'orders' AND index_name = 'orders_standing'"},
	{17, "SELECT COUNT(*) = 0 FROM information_schema.table_constraints WHERE table_schema = DATABASE() AND table_name = 'orders' AND constraint_name = 'orders_item_fk'"},
	{18, "SELECT COUNT(*) = 6 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name IN ('holds', 'hold_lines', 'hold_history', 'hold_keys', 'hold_customers', 'payments')"},
	{19, "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'items' AND column_name = 'withdrawn'"},
	{20, "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'changes' AND column_name = 'withdrawn'"},
}

// noteCommitted records migrations whose effect exists and whose record is missing, and returns how
// many. The process that applied them died, or lost its connection, between the two. It stops at the
// first missing effect. goose applies that migration and all later ones.
//
// It also creates goose's table. goose creates the table and writes the first row in one
// transaction. MySQL commits in between, and goose never writes that row again.
func noteCommitted(ctx context.Context, db *sql.DB, log *slog.Logger) (noted int, err error) {
	notes, err := database.NewStore(goose.DialectMySQL, goose.DefaultTablename)
	if err != nil {
		return 0, err
	}
	count := func(query string, args ...any) (n int, err error) {
		err = db.QueryRowContext(ctx, query, args...).Scan(&n)
		return n, err
	}
	known, err := count("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'goose_db_version'")
	if err != nil {
		return 0, err
	}
	if known == 0 {
		if err := notes.CreateVersionTable(ctx, db); err != nil {
			return 0, err
		}
	}
	for _, e := range effects {
		is, err := count("SELECT COUNT(*) FROM goose_db_version WHERE version_id = ? AND is_applied", e.version)
		if err != nil {
			return noted, err
		}
		if is > 0 {
			continue
		}
		if done, err := count(e.query); err != nil || done == 0 {
			return noted, err
		}
		if e.version > 0 {
			log.Warn("a migration was committed and not noted", "version", e.version)
		}
		if err := notes.Insert(ctx, db, database.InsertRequest{Version: e.version}); err != nil {
			return noted, err
		}
		noted++
	}
	return noted, nil
}
