package testserver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/ngrok/sqlmw"
)

// Intercept returns a replacement of [sql.OpenDB] whose statements pass an interceptor.
func Intercept(by sqlmw.Interceptor) func(driver.Connector) *sql.DB {
	return func(c driver.Connector) *sql.DB {
		wrapped, err := sqlmw.Driver(oneConnector{c}, by).(driver.DriverContext).OpenConnector("")
		if err != nil {
			panic(err) // oneConnector returns none
		}
		return sql.OpenDB(wrapped)
	}
}

// oneConnector makes a driver of a connector, which is all that package sqlmw wraps.
type oneConnector struct{ driver.Connector }

func (d oneConnector) Open(string) (driver.Conn, error) { return d.Connect(context.Background()) }

func (d oneConnector) OpenConnector(string) (driver.Connector, error) { return d.Connector, nil }

// Statements calls a function before each statement, BEGIN and COMMIT. What it returns an error for is not carried out.
type Statements struct {
	sqlmw.NullInterceptor
	Before func(statement string, args []driver.NamedValue) error
}

// ConnBeginTx is before a BEGIN.
func (s Statements) ConnBeginTx(ctx context.Context, conn driver.ConnBeginTx, options driver.TxOptions) (context.Context, driver.Tx, error) {
	if err := s.Before("BEGIN", nil); err != nil {
		return ctx, nil, err
	}
	tx, err := conn.BeginTx(ctx, options)
	return ctx, tx, err
}

// ConnExecContext is before a statement without rows.
func (s Statements) ConnExecContext(ctx context.Context, conn driver.ExecerContext, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := s.Before(query, args); err != nil {
		return nil, err
	}
	return conn.ExecContext(ctx, query, args)
}

// ConnQueryContext is before a statement with rows.
func (s Statements) ConnQueryContext(ctx context.Context, conn driver.QueryerContext, query string, args []driver.NamedValue) (context.Context, driver.Rows, error) {
	if err := s.Before(query, args); err != nil {
		return ctx, nil, err
	}
	rows, err := conn.QueryContext(ctx, query, args)
	return ctx, rows, err
}

// TxCommit is before a COMMIT.
func (s Statements) TxCommit(_ context.Context, tx driver.Tx) error {
	if err := s.Before("COMMIT", nil); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
