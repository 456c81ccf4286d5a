package stock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	mysqldriver "github.com/go-sql-driver/mysql"
)

// These errors refuse a sale. Nothing was written.
var (
	// ErrNotFound: there is no such item, or no such run.
	ErrNotFound = errors.New("stock: not found")
	// ErrSoldOut: fewer units are left than were asked for.
	ErrSoldOut = errors.New("stock: sold out")
	// ErrFenced: a newer holder has raised the fence. The holder of this token was overtaken.
	ErrFenced = errors.New("stock: fenced off by a newer token")
	// ErrConflict: the item changed between the read and the write, or the database ended this
	// transaction to resolve a deadlock. A new try with a new read may succeed.
	ErrConflict = errors.New("stock: item changed since it was read")
	// ErrNoConnection: no connection was free in time. See [WithPatience].
	ErrNoConnection = errors.New("stock: no connection was free in time")
	// ErrRepeated: an order exists under the sale's idempotency key, or with its OrderID. See
	// [Store.OrderByKey] and [Store.Order].
	ErrRepeated = errors.New("stock: the idempotency key has an order")
)

// ErrUnknown means that the server did not answer the COMMIT of a transaction. It may have been
// committed.
var ErrUnknown = errors.New("stock: the outcome of the transaction is unknown")

// Unreachable reports whether err means that the database did not answer, or that it cannot work
// now. This is no defect of the program, and the request may succeed later.
func Unreachable(err error) bool { return noAnswer(err) || Advice(err) != "" }

// noAnswer reports whether err means that the database did not answer.
func noAnswer(err error) bool {
	for _, transport := range []error{
		context.DeadlineExceeded, context.Canceled, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
		driver.ErrBadConn, sql.ErrConnDone, mysqldriver.ErrInvalidConn,
	} {
		if errors.Is(err, transport) {
			return true
		}
	}
	_, ok := errors.AsType[net.Error](err)
	return ok
}

// Advice tells an operator what to do about a server that is up but cannot work now. It is empty
// for any other error.
func Advice(err error) string {
	if fromServer, ok := errors.AsType[*mysqldriver.MySQLError](err); ok {
		return notNow[fromServer.Number]
	}
	return ""
}

// notNow has the advice for errors of a server that is up but cannot work.
var notNow = map[uint16]string{
	1021: "the disk of MySQL is full: free space",
	1040: "MySQL has too many connections: raise max_connections, or run fewer shops",
	1044: "MySQL refuses the database to this user: grant the rights of SECURITY.md",
	1045: "MySQL refuses the user or its password: correct SHOP_MYSQL",
	1047: "the node of the MySQL cluster is not ready: let it join the cluster",
	1053: "MySQL is shutting down: wait, or start it",
	1114: "a table of MySQL is full: free disk space, or raise the limit of the tablespace",
	1142: "MySQL refuses a statement to this user: grant the rights of SECURITY.md",
	1143: "MySQL refuses a column to this user: grant the rights of SECURITY.md",
	1146: "a table is missing: run shop migrate",
	1203: "the MySQL user has too many connections: raise max_user_connections, or run fewer shops",
	1226: "the MySQL user has used up a resource: raise its limits, such as max_user_connections",
	1290: "MySQL runs read-only: point SHOP_MYSQL at the primary",
	1317: "a statement was killed: find out who sends KILL to MySQL",
	1836: "MySQL is in read-only mode: point SHOP_MYSQL at the primary",
	1927: "a connection was killed: find out who sends KILL to MySQL",
	1969: "a statement took longer than max_statement_time: raise it, or find what makes MySQL slow",
	3024: "a statement took longer than max_execution_time: raise it, or find what makes MySQL slow",
	3032: "MySQL is starting or in offline mode: wait, or switch it off",
}
