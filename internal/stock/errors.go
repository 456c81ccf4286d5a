package stock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"

	mysqldriver "github.com/go-sql-driver/mysql"
)

// What can keep a sale from being made. All of them mean that nothing was
// written.
var (
	// ErrNotFound: there is no such item, or no such run.
	ErrNotFound = errors.New("stock: not found")
	// ErrSoldOut: fewer units are left than were asked for.
	ErrSoldOut = errors.New("stock: sold out")
	// ErrFenced: a newer holder of the lock has been here; this one was overtaken.
	ErrFenced = errors.New("stock: fenced off by a newer token")
	// ErrConflict: the item changed between the read and the write, or the database
	// chose this transaction to end a deadlock. Reading anew and trying again may succeed.
	ErrConflict = errors.New("stock: item changed since it was read")
	// ErrRepeated: there is an order under the sale's idempotency key already. See
	// [Store.OrderByKey].
	ErrRepeated = errors.New("stock: the idempotency key has an order")
)

// Unreachable says whether err means that the database did not answer, or
// answered that it cannot work now. Whether a write that failed like this was
// made is unknown.
func Unreachable(err error) bool {
	for _, transport := range []error{
		context.DeadlineExceeded, context.Canceled, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
		driver.ErrBadConn, sql.ErrConnDone, mysqldriver.ErrInvalidConn,
	} {
		if errors.Is(err, transport) {
			return true
		}
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	fromServer, ok := errors.AsType[*mysqldriver.MySQLError](err)
	return ok && slices.Contains(notNow, fromServer.Number)
}

// notNow has the errors with which a server says that it is up but cannot work.
var notNow = []uint16{
	1040, // too many connections
	1053, // server shutdown in progress
	1290, // running with --read-only
	1836, // in read-only mode
	1927, // connection was killed (MariaDB)
	3032, // server is starting or stopping (offline mode)
}
