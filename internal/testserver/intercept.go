package testserver

import (
	"context"
	"database/sql"
	"database/sql/driver"

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
