package labmode

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/ngrok/sqlmw"

	"stocklock/internal/testserver"
)

// OpenDB makes the pool of a store whose statements are held.
func (s *Stepper) OpenDB(c driver.Connector) *sql.DB {
	return testserver.Intercept(sqlSteps{Stepper: s, conns: &sync.Map{}})(c)
}

// OpenReplica is [Stepper.OpenDB] for the replica that answers reads.
func (s *Stepper) OpenReplica(c driver.Connector) *sql.DB {
	return testserver.Intercept(sqlSteps{Stepper: s, conns: &sync.Map{}, replica: true})(c)
}

// sqlSteps holds statements. BEGIN is no step: InnoDB takes no snapshot and no lock with it.
type sqlSteps struct {
	sqlmw.NullInterceptor
	*Stepper
	conns *sync.Map // connections that have been used, with MySQL's ids
	// replica says that the statements are sent to the replica, whose connections hold nothing.
	replica bool
}

// connOf is MySQL's id of a connection, 0 where it cannot be asked.
func (h sqlSteps) connOf(ctx context.Context, conn any) uint64 {
	if ctx.Value(stepKey{}) == nil || h.replica {
		return 0
	}
	if id, known := h.conns.Load(conn); known {
		return id.(uint64)
	}
	asked, ok := conn.(driver.QueryerContext)
	if !ok {
		return 0
	}
	rows, err := asked.QueryContext(ctx, "SELECT CONNECTION_ID()", nil)
	if err != nil {
		return 0
	}
	defer rows.Close()
	answer := make([]driver.Value, 1)
	if rows.Next(answer) != nil {
		return 0
	}
	id, _ := strconv.ParseUint(strings.Trim(valueText(answer[0]), "'"), 10, 64)
	h.conns.Store(conn, id)
	return id
}

func (h sqlSteps) ConnExecContext(ctx context.Context, conn driver.ExecerContext, query string, args []driver.NamedValue) (driver.Result, error) {
	r := statement(query, args)
	r.conn, r.replica = h.connOf(ctx, conn), h.replica
	number, order := h.wait(ctx, r)
	result, err := conn.ExecContext(ctx, query, args)
	if errors.Is(err, driver.ErrSkip) {
		return result, err
	}
	if order.Lose {
		hangUp(conn)
	}
	answer := ""
	if err == nil {
		n, _ := result.RowsAffected()
		if answer = fmt.Sprintf("%d rows", n); n == 1 {
			answer = "1 row"
		}
	}
	return result, h.done(ctx, r, number, order, answer, err)
}

func (h sqlSteps) ConnQueryContext(ctx context.Context, conn driver.QueryerContext, query string, args []driver.NamedValue) (context.Context, driver.Rows, error) {
	if ctx.Value(stepKey{}) == nil { // a look of the shop's own changes nothing
		rows, err := conn.QueryContext(ctx, query, args)
		return ctx, rows, err
	}
	r := statement(query, args)
	r.conn, r.replica = h.connOf(ctx, conn), h.replica
	number, order := h.wait(ctx, r)
	rows, err := conn.QueryContext(ctx, query, args)
	if err == nil && order.Lose {
		err = rows.Close()
		hangUp(conn)
		return ctx, nil, h.done(ctx, r, number, order, "lost", err)
	}
	if err != nil {
		return ctx, nil, h.done(ctx, r, number, order, "", err)
	}
	// The answer is complete when its rows have been read.
	reading := &rowsRead{finish: func(answer string, err error) { _ = h.done(ctx, r, number, order, answer, err) }}
	return context.WithValue(ctx, rowsKey{}, reading), rows, nil
}

// hangUp closes a connection, as the driver does when no answer comes. The server then ends what the
// connection had: its transaction, and its user-level locks. Package sqlmw passes connections as the
// interfaces that it calls.
func hangUp(conn any) { _ = conn.(driver.Conn).Close() }

type rowsKey struct{}

// rowsRead collects what a query answered.
type rowsRead struct {
	lines  []string
	finish func(answer string, err error)
	once   sync.Once
}

func (h sqlSteps) RowsNext(ctx context.Context, rows driver.Rows, into []driver.Value) error {
	err := rows.Next(into)
	if reading, ok := ctx.Value(rowsKey{}).(*rowsRead); ok && err == nil {
		reading.lines = append(reading.lines, rowText(rows.Columns(), into))
	} else if ok && errors.Is(err, io.EOF) {
		reading.end(nil)
	} else if ok { // the server has sent the columns before it locked the rows
		reading.end(err)
	}
	return err
}

func (h sqlSteps) RowsClose(ctx context.Context, rows driver.Rows) error {
	err := rows.Close()
	if reading, ok := ctx.Value(rowsKey{}).(*rowsRead); ok {
		reading.end(nil)
	}
	return err
}

func (r *rowsRead) end(err error) {
	r.once.Do(func() {
		answer := strings.Join(r.lines, "; ")
		if len(r.lines) == 0 {
			answer = "no row"
		}
		r.finish(answer, err)
	})
}

func (h sqlSteps) ConnBeginTx(ctx context.Context, conn driver.ConnBeginTx, o driver.TxOptions) (context.Context, driver.Tx, error) {
	tx, err := conn.BeginTx(ctx, o)
	setTransaction(ctx, err == nil, sql.IsolationLevel(o.Isolation).String())
	return ctx, tx, err
}

func (h sqlSteps) TxCommit(ctx context.Context, tx driver.Tx) error {
	return h.end(ctx, "commit", tx.Commit)
}

func (h sqlSteps) TxRollback(ctx context.Context, tx driver.Tx) error {
	return h.end(ctx, "rollback", tx.Rollback)
}

func (h sqlSteps) end(ctx context.Context, name string, send func() error) error {
	if ctx == nil || ctx.Value(stepKey{}) == nil {
		return send()
	}
	r := request{server: MySQLServer, name: name, text: strings.ToUpper(name)}
	number, order := h.wait(ctx, r)
	setTransaction(ctx, false, "")
	err := h.done(ctx, r, number, order, "ok", send())
	if order.Lose {
		return mysqldriver.ErrInvalidConn // what the driver says of a connection that broke
	}
	return err
}

// statement is a request to MySQL with its values in place.
func statement(query string, args []driver.NamedValue) request {
	query = strings.TrimSpace(query)
	name, _, _ := strings.Cut(query, " ")
	return request{server: MySQLServer, name: strings.ToLower(name), text: interpolate(query, args)}
}

// interpolate puts values into a statement for people to read. It is never sent.
func interpolate(query string, args []driver.NamedValue) string {
	var b strings.Builder
	for _, a := range args {
		before, after, ok := strings.Cut(query, "?")
		if !ok {
			break
		}
		b.WriteString(before)
		b.WriteString(valueText(a.Value))
		query = after
	}
	b.WriteString(query)
	return b.String()
}

func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case string:
		return "'" + strings.ReplaceAll(v, "'", "''") + "'"
	case []byte:
		return valueText(string(v))
	case time.Time:
		return "'" + v.UTC().Format("2006-01-02 15:04:05.000000") + "'"
	case bool:
		return strings.ToUpper(strconv.FormatBool(v))
	}
	return fmt.Sprint(v)
}

// rowText names the columns, because a row of numbers says little.
func rowText(columns []string, row []driver.Value) string {
	cells := make([]string, 0, len(row))
	for i, v := range row {
		if b, ok := v.([]byte); ok {
			v = string(b)
		}
		cells = append(cells, fmt.Sprintf("%s=%v", columns[i], v))
	}
	return strings.Join(cells, " ")
}
