package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-sql-driver/mysql"

	"stocklock/internal/stock"
	_ "stocklock/sql/lab" // the tables that strategies keep
)

// countTimeout is how long MySQL may take to count: a million orders take longer than a shop waits.
const countTimeout = 10 * time.Minute

// Open opens the stock for an audit, and creates its tables. The DSN is that of the shops.
func Open(ctx context.Context, dsn string, options ...stock.Option) (*stock.Store, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	cfg.ReadTimeout = countTimeout
	store, err := stock.Open(cfg.FormatDSN(), options...)
	if err != nil {
		return nil, err
	}
	if err := store.Migrate(ctx, slog.New(slog.DiscardHandler)); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

// SnapshotIsolation reports whether the server is a MariaDB that refuses to write over a row which has
// changed since the snapshot of the transaction.
func SnapshotIsolation(ctx context.Context, store *stock.Store) (bool, error) {
	var value string
	err := store.Pool().QueryRowContext(ctx, "SHOW VARIABLES LIKE 'innodb_snapshot_isolation'").Scan(new(string), &value)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return value == "ON", err
}
