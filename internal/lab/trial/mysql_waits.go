package trial

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
)

// MySQLWaits asks a MySQL which statements wait for which locks. The benches of a server share one.
// It is safe for concurrent use.
type MySQLWaits struct {
	store   *stock.Store
	mariaDB bool

	mu   sync.Mutex // guards the rest
	last mysqlWaits
}

// mysqlWaits is what was waited for at a moment.
type mysqlWaits struct {
	begun, asked time.Time         // when the question began, and when it was answered
	transactions map[string]string // their statements, by their ids
	blockers     map[string]string // the statement that waits, by the transaction that it waits for
	userLocks    []string          // what names locks of GET_LOCK that are waited for
}

// NewMySQLWaits asks the server of a store.
func NewMySQLWaits(store *stock.Store, mariaDB bool) *MySQLWaits {
	return &MySQLWaits{store: store, mariaDB: mariaDB}
}

// cacheIdle is how long MariaDB's tables must not be read before it fills them anew.
// Source: trx_i_s_possibly_fetch_data_into_cache in storage/innobase/trx/trx0i_s.cc, 0.1 s.
const cacheIdle = 110 * time.Millisecond

// waitQueries are the questions of [MySQLWaits]. Each answers with two columns.
type waitQueries struct{ transactions, blockers, userLocks string }

var (
	onMariaDB = waitQueries{
		"SELECT trx_id, trx_query FROM information_schema.INNODB_TRX",
		"SELECT requesting_trx_id, blocking_trx_id FROM information_schema.INNODB_LOCK_WAITS",
		"SELECT info, NULL FROM information_schema.PROCESSLIST WHERE state = 'User lock'",
	}
	// MySQL has INNODB_TRX too, from the same cache. What is here is of the moment.
	onMySQL = waitQueries{
		"SELECT ENGINE_TRANSACTION_ID, PROCESSLIST_INFO FROM performance_schema.data_locks JOIN performance_schema.threads USING (THREAD_ID)",
		"SELECT REQUESTING_ENGINE_TRANSACTION_ID, BLOCKING_ENGINE_TRANSACTION_ID FROM performance_schema.data_lock_waits",
		"SELECT OBJECT_NAME, NULL FROM performance_schema.metadata_locks WHERE OBJECT_TYPE = 'USER LEVEL LOCK' AND LOCK_STATUS = 'PENDING'",
	}
)

// Waiting returns the statements that wait for a transaction.
func (w *MySQLWaits) Waiting(ctx context.Context) ([]string, error) {
	now, err := w.look(ctx)
	return slices.Collect(maps.Values(now.blockers)), err
}

// look returns what is newer than the call.
func (w *MySQLWaits) look(ctx context.Context) (mysqlWaits, error) {
	called := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last.begun.After(called) {
		return w.last, nil
	}
	ask := onMySQL
	if w.mariaDB {
		ask = onMariaDB
		select {
		case <-time.After(time.Until(w.last.asked.Add(cacheIdle))):
		case <-ctx.Done():
			return mysqlWaits{}, ctx.Err()
		}
	}
	now := mysqlWaits{begun: time.Now(), transactions: map[string]string{}, blockers: map[string]string{}}
	err := w.each(ctx, ask.transactions, func(id, statement string) { now.transactions[id] = statement })
	if err == nil {
		err = w.each(ctx, ask.blockers, func(waits, blocks string) { now.blockers[blocks] = now.transactions[waits] })
	}
	if err == nil {
		err = w.each(ctx, ask.userLocks, func(names, _ string) { now.userLocks = append(now.userLocks, names) })
	}
	if err != nil {
		return mysqlWaits{}, fmt.Errorf("ask MySQL who waits: %w", err)
	}
	now.asked = time.Now()
	w.last = now
	return now, nil
}

func (w *MySQLWaits) each(ctx context.Context, query string, row func(a, b string)) error {
	rows, err := w.store.Pool().QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var a, b sql.NullString
		if err := rows.Scan(&a, &b); err != nil {
			return err
		}
		row(a.String, b.String)
	}
	return rows.Err()
}

// onItem reports whether a statement on the item waits for a transaction that was open before, or
// for a user-level lock.
func (w mysqlWaits) onItem(item uint64, before map[string]string) bool {
	row := regexp.MustCompile(fmt.Sprintf("id`? *= *%d\\b", item))
	for id := range before {
		if statement, blocks := w.blockers[id]; blocks && row.MatchString(statement) {
			return true
		}
	}
	name := regexp.MustCompile(regexp.QuoteMeta(sale.Key(item)) + `\b`)
	for _, waited := range w.userLocks {
		if name.MatchString(waited) {
			return true
		}
	}
	return false
}
