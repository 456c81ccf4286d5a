package stock

import (
	"database/sql"
	"database/sql/driver"
	"time"

	"github.com/XSAM/otelsql"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Option changes how [Open] opens a store.
type Option func(*opening)

type opening struct {
	extra time.Duration
	pool  func(driver.Connector) *sql.DB
	size  int
}

// WithPoolSize replaces [PoolSize]. Probes and migrations have further connections of their own.
func WithPoolSize(connections int) Option {
	return func(o *opening) { o.size = connections }
}

// WithExtraTime adds to the timeout of every transaction. Only a lab that stops programs in the
// middle of a transaction needs it.
func WithExtraTime(extra time.Duration) Option {
	return func(o *opening) { o.extra = extra }
}

// WithPool replaces [sql.OpenDB] for opening the store's connections.
func WithPool(open func(driver.Connector) *sql.DB) Option {
	return func(o *opening) { o.pool = open }
}

// WithTracing makes every statement a span.
func WithTracing(provider trace.TracerProvider) Option {
	return func(o *opening) {
		o.pool = func(c driver.Connector) *sql.DB {
			return otelsql.OpenDB(c,
				otelsql.WithTracerProvider(provider),
				otelsql.WithAttributes(attribute.String("db.system.name", "mysql")),
				// The text has question marks in place of the customers' values.
				otelsql.WithSpanOptions(otelsql.SpanOptions{OmitConnResetSession: true, OmitRows: true, OmitConnectorConnect: true}))
		}
	}
}
