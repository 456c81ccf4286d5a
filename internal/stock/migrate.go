package stock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"

	schema "stocklock/sql"
)

// migrationLock is a MySQL user-level lock: it is held by a connection, and
// ends with it. It keeps shops that start at once from migrating at once.
const migrationLock = "stocklock.migrate"

// Migrate brings the database to the newest version. Any number of processes
// may call it at once: one works, the others wait and then find nothing to do.
func (s *Store) Migrate(ctx context.Context) (err error) {
	conn, err := s.pool.Conn(ctx)
	if err != nil {
		return fmt.Errorf("stock: migrate: %w", err)
	}
	defer conn.Close()
	if err := lockMigration(ctx, conn); err != nil {
		return err
	}
	defer func() {
		_, unlockErr := conn.ExecContext(context.WithoutCancel(ctx), "SELECT RELEASE_LOCK(?)", migrationLock)
		err = errors.Join(err, unlockErr)
	}()
	migrations, err := s.migrations()
	if err != nil {
		return err
	}
	if _, err := migrations.Up(ctx); err != nil {
		return fmt.Errorf("stock: migrate: %w", err)
	}
	return nil
}

// Migrated says whether the database is at the version that this program needs,
// or newer, as during a rolling update. It needs no right to change the schema.
func (s *Store) Migrated(ctx context.Context) error {
	migrations, err := s.migrations()
	if err != nil {
		return err
	}
	is, needed, err := migrations.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("stock: the schema's version cannot be read: %w", err)
	}
	if is < needed {
		return fmt.Errorf("stock: the schema is at version %d, this program needs %d", is, needed)
	}
	return nil
}

func (s *Store) migrations() (*goose.Provider, error) {
	files, err := fs.Sub(schema.Migrations, "migrations")
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectMySQL, s.pool, files)
}

func lockMigration(ctx context.Context, conn *sql.Conn) error {
	const patience = 5 * time.Second // below the driver's read timeout; the loop asks again
	for {
		var got sql.NullInt64
		if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?)", migrationLock, int(patience.Seconds())).Scan(&got); err != nil {
			return fmt.Errorf("stock: migrate: wait for another process to finish migrating: %w", err)
		}
		if got.Int64 == 1 {
			return nil
		}
	}
}
