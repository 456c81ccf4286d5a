package labmode

import (
	"context"
	"database/sql/driver"
	"sync"

	mysqldriver "github.com/go-sql-driver/mysql"
)

// lostCommits keeps the answers to COMMITs from sales with the fault [Lose]. The transaction is the one that
// inserts the sale's order, whoever sends it: the sale, the leader of its batch, or a consumer of a queue.
// The zero value loses none. It is safe for concurrent use.
type lostCommits struct {
	lost sync.Map // of func(), by the requests of the sales: called when the answer is lost
}

// lose has the answer to a sale's COMMIT be lost, once. Then it calls lost.
func (l *lostCommits) lose(request string, lost func()) { l.lost.Store(request, lost) }

// find returns the request among a statement's values whose answer is to be lost, empty for none.
func (l *lostCommits) find(args []driver.NamedValue) string {
	for _, a := range args {
		if text, ok := a.Value.(string); ok {
			if _, armed := l.lost.Load(text); armed {
				return text
			}
		}
	}
	return ""
}

// Connector returns a connector whose connections lose answers.
func (l *lostCommits) Connector(c driver.Connector) driver.Connector { return lossyConnector{c, l} }

type lossyConnector struct {
	driver.Connector
	*lostCommits
}

func (c lossyConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &lossyConn{mysqlConn: conn.(mysqlConn), lostCommits: c.lostCommits}, nil
}

// mysqlConn has what database/sql looks for in a connection of the driver.
type mysqlConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// lossyConn is a connection. One goroutine at a time uses it.
type lossyConn struct {
	mysqlConn
	*lostCommits
	request string // whose order the transaction has inserted, and whose answer is to be lost
}

func (c *lossyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if request := c.find(args); request != "" {
		c.request = request
	}
	return c.mysqlConn.ExecContext(ctx, query, args)
}

func (c *lossyConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	c.request = ""
	tx, err := c.mysqlConn.BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	return lossyTx{tx, c}, nil
}

type lossyTx struct {
	driver.Tx
	conn *lossyConn
}

// Commit commits. Where the answer is to be lost, it hangs up, as the driver does when no answer comes.
func (t lossyTx) Commit() error {
	err := t.Tx.Commit()
	if err != nil || t.conn.request == "" {
		return err
	}
	if lost, ok := t.conn.lost.LoadAndDelete(t.conn.request); ok {
		_ = t.conn.Close()
		lost.(func())()
		return mysqldriver.ErrInvalidConn
	}
	return nil
}
