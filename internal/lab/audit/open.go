package audit

import (
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"

	"stocklock/internal/stock"
)

// countTimeout is how long MySQL may take to count: a million orders take longer than a shop waits.
const countTimeout = 10 * time.Minute

// Open opens the stock for an audit. The DSN is that of the shops.
func Open(dsn string) (*stock.Store, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	cfg.ReadTimeout = countTimeout
	return stock.Open(cfg.FormatDSN())
}
