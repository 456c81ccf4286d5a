package stock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	mysqldriver "github.com/go-sql-driver/mysql"
)

// These errors refuse a sale. Nothing was written.
var (
	// ErrNotFound: there is no such item, or no such run.
	ErrNotFound = errors.New("stock: not found")
	// ErrSoldOut: fewer units are left than were asked for.
	ErrSoldOut = errors.New("stock: sold out")
	// ErrNoneHeld is [ErrSoldOut] of an item of which nobody holds units, as was looked.
	ErrNoneHeld = fmt.Errorf("%w, and nobody holds any", ErrSoldOut)
	// ErrFenced: a newer holder has raised the fence. The holder of this token was overtaken.
	ErrFenced = errors.New("stock: fenced off by a newer token")
	// ErrLimit: the customer would have more units of an item than it may have. See Sale.Limit.
	ErrLimit = errors.New("stock: the customer has all units that it may have")
	// ErrConflict: the item changed between the read and the write, or the database ended this
	// transaction to resolve a deadlock. A new try with a new read may succeed.
	ErrConflict = errors.New("stock: item changed since it was read")
	// ErrNoConnection: the pool was full, and no connection was free in time. See [WithPatience].
	ErrNoConnection = errors.New("stock: no connection was free in time")
	// ErrRepeated: an order exists under the sale's idempotency key, or with its OrderID. See
	// [Store.OrderByKey] and [Store.Order].
	ErrRepeated = errors.New("stock: the idempotency key has an order")
)

// RepeatedError is [ErrRepeated] where the order under the key is known. It may be for something else than
// the sale asked for.
type RepeatedError struct{ Order Order }

func (e RepeatedError) Error() string { return ErrRepeated.Error() }

func (e RepeatedError) Unwrap() error { return ErrRepeated }

// ErrUnknown means that a COMMIT failed, and that it may still have been done.
var ErrUnknown = errors.New("stock: the outcome of the transaction is unknown")

// LineError says why a line of a basket cannot be had.
type LineError struct {
	ItemID uint64
	Err    error // [ErrSoldOut], [ErrHeld], [ErrNotFound] or [ErrLimit]
}

func (e LineError) Error() string { return fmt.Sprintf("item %d: %v", e.ItemID, e.Err) }

func (e LineError) Unwrap() error { return e.Err }

// LineErrors refuses a basket. It has an entry for each line that cannot be had, in the order of their
// items. A sale of one line fails with the error itself.
type LineErrors []LineError

func (e LineErrors) Error() string { return errors.Join(e.Unwrap()...).Error() }

// Unwrap makes [errors.Is] find the error of each line.
func (e LineErrors) Unwrap() []error {
	return each(e, func(line LineError) error { return line })
}

// Check compares the sale with the items of its lines, as they were read. An item without an id is
// none.
func (s Sale) Check(items []Item) error { return s.refusedBy(items, nil, ErrSoldOut) }

// soldOut is the error for an item of which nobody holds units, where that was read.
func (s Sale) soldOut() error {
	if s.Holds {
		return ErrNoneHeld
	}
	return ErrSoldOut
}

// refusedBy is [Sale.Check] that also compares with the units that the subject has. Either may be nil. SoldOut
// is the error for an item with too few units, of which nobody holds any.
func (s Sale) refusedBy(items []Item, had map[unitsKey]int64, soldOut error) error {
	var refused LineErrors
	for i, line := range s.Lines() {
		var err error
		if had != nil && s.Limit > 0 && line.Quantity > s.Limit-had[unitsKey{line.ItemID, s.Subject}] {
			err = ErrLimit
		}
		if items != nil && items[i].Stock < line.Quantity {
			if err = soldOut; items[i].Held > 0 {
				err = ErrHeld
			}
		}
		if items != nil && items[i].ID == 0 {
			err = ErrNotFound
		}
		if err != nil {
			refused = append(refused, LineError{line.ItemID, err})
		}
	}
	switch {
	case len(refused) == 0:
		return nil
	case len(s.More) == 0:
		return refused[0].Err
	}
	return refused
}

// Unreachable reports whether err means that the database did not answer, or that it cannot work
// now. This is no defect of the program, and the request may succeed later. A server's error that
// [serverErrors] does not list counts as such, because nobody knows better.
func Unreachable(err error) bool {
	is, number := classOf(err)
	return noAnswer(err) || number != 0 && is != refused
}

// noAnswer reports whether err means that the database did not answer.
func noAnswer(err error) bool {
	for _, transport := range []error{
		context.DeadlineExceeded, context.Canceled, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
		driver.ErrBadConn, sql.ErrConnDone, sql.ErrTxDone, mysqldriver.ErrInvalidConn,
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
	is, number := classOf(err)
	if is == unlisted && number != 0 {
		return fmt.Sprintf("MySQL answered with an error that the shop does not know: look up %d in its manual", number)
	}
	return serverErrors[number].advice
}

// class says what an error of the server means for the transaction.
type class int

const (
	unlisted    class = iota
	lost              // against another transaction, and nothing was done: all of it may be repeated
	refused           // nothing was done, and a repeat is refused, too
	unavailable       // the server cannot work now, or not for this user
	unknown           // it may have been committed
)

// classOf returns the class and the number of a server's error. The number is 0 for any other error.
func classOf(err error) (class, uint16) {
	fromServer, ok := errors.AsType[*mysqldriver.MySQLError](err)
	if !ok {
		return unlisted, 0
	}
	return serverErrors[fromServer.Number].is, fromServer.Number
}

// rolledBack reports whether a COMMIT has done nothing: the server says so, or it was not sent,
// because the time of the transaction was over.
func rolledBack(err error) bool {
	is, number := classOf(err)
	return is == lost || slices.Contains(readOnly, number) || errors.Is(err, sql.ErrTxDone)
}

// duplicate is the error of a unique key.
const duplicate = 1062

// Errors of a server that refuses to write.
var readOnly = numbers{1290, 1792, 1836, 1874}

// Errors that a session keeps, also when their cause has gone: its password had expired when it began, or
// its user had fewer rights. notReady is that of a node that has left its Galera cluster.
var (
	expired    = numbers{1820, 1862}
	noRights   = numbers{1044, 1142, 1143, 1227, 1370}
	notReady   = numbers{1047}
	ofSessions = slices.Concat(expired, noRights, notReady, readOnly)
)

// serverErrors lists, by their numbers, the errors of MySQL 8.4, MariaDB 11 and TiDB that the
// statements of a shop can meet. At COMMIT, the outcome is open after most of them: see
// [Store.transaction].
var serverErrors = byNumber([]serverError{
	// A locked row, a deadlock, a record that changed (MariaDB's innodb_snapshot_isolation), an ALTER
	// in between, rolled back by the server, certification in Group Replication. Galera says deadlock.
	{lost, "", numbers{1205, 1213, 1020, 1412, 1615, 1613, 1614, 1689, 3101, 3572}},
	{lost, "", numbers{8002, 8005, 8022, 8028, 9004, 9007}}, // TiDB

	// NULL, duplicate, syntax, size, foreign keys, range, type, CHECK.
	{refused, "", numbers{1048, 1062, 1586, 1064, 1136, 1118, 1153, 1406, 1216, 1217, 1451, 1452, 1264, 1292, 1366, 1690, 3140, 3819, 4025}},

	{unavailable, "MySQL cannot write its files: free disk space, or look for a defect of the disk", numbers{1021, 1026, 1030, 1598, 1812, 1878}},
	{unavailable, "a table of MySQL is full: free disk space, or raise the limit of the tablespace", numbers{1114}},
	{unavailable, "MySQL is out of memory, threads or locks: give it more", numbers{1037, 1038, 1041, 1135, 1197, 1206, 1637, 3170, 8001, 8175}},
	{unavailable, "MySQL has too many connections: raise max_connections, or run fewer shops", numbers{1040, 1203}},
	{unavailable, "the MySQL user has used up a resource: raise its limits, such as max_user_connections", numbers{1226, 1461}},
	{unavailable, "MySQL refuses something to this user: grant the rights of SECURITY.md", noRights},
	{unavailable, "MySQL refuses the user, its password or its database: correct SHOP_MYSQL", numbers{1045, 1049, 1251, 1524, 1698}},
	{unavailable, "MySQL refuses this host: let it in, or unblock it with FLUSH HOSTS", numbers{1129, 1130}},
	{unavailable, "the password of the MySQL user has expired: set a new one", expired},
	{unavailable, "the MySQL user is locked: unlock it", numbers{3118, 3955, 4151}},
	{unavailable, "MySQL wants TLS: add tls=true to SHOP_MYSQL", numbers{3159}},
	{unavailable, "a table or a column is missing: run shop migrate", numbers{1054, 1146}},
	{unavailable, "a column has no default: run the version of the shop that has migrated", numbers{1364}},
	{unavailable, "more was written during an ALTER than its log may hold: raise innodb_online_alter_log_max_size, and migrate when little is sold", numbers{1799}},
	{unavailable, "MySQL is read-only: point SHOP_MYSQL at the primary", readOnly},
	{unavailable, "the binlog of MySQL has statements, which READ COMMITTED does not allow: set binlog_format to ROW or MIXED", numbers{1665}},
	{unavailable, "MySQL is starting, stopping or offline: wait, or start it", numbers{1053, 1077, 1079, 3032, 3168}},
	{unavailable, "a statement or a connection was killed: find out who sends KILL to MySQL", numbers{1317, 1927, 3169}},
	{unavailable, "a statement took longer than max_statement_time or max_execution_time: raise it, or find what makes MySQL slow", numbers{1969, 3024}},
	{unavailable, "MySQL ended a connection: look at wait_timeout, and at the network", numbers{1152, 1158, 1159, 1160, 1161, 1184, 4031}},
	{unavailable, "the database cluster is not ready: look at its state", slices.Concat(notReady, numbers{3098, 8027, 9001, 9002, 9003, 9005})},

	{unknown, "MySQL could not say whether a transaction was committed: look at its log, and at its replication", numbers{1180, 3100, 8501}},
})

type numbers []uint16

type serverError struct {
	is      class
	advice  string
	numbers numbers
}

func byNumber(list []serverError) map[uint16]serverError {
	all := map[uint16]serverError{}
	for _, e := range list {
		for _, number := range e.numbers {
			all[number] = e
		}
	}
	return all
}
