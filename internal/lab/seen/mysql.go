package seen

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
)

// MySQL asks a MySQL which statements wait for which locks. The benches of a server share one.
// It is safe for concurrent use.
type MySQL struct {
	ask     Asker
	mariaDB bool

	mu   sync.Mutex // guards the rest
	last Waits
}

// Waits is what was waited for at a moment.
type Waits struct {
	begun, asked time.Time           // when the question began, and when it was answered
	Transactions map[string]string   // their statements, by their ids
	blockers     map[string][]string // the statements that wait, by the transaction that they wait for
	userLocks    []string            // what names locks of GET_LOCK that are waited for
}

// Asker calls a question with connections to a server.
type Asker func(ctx context.Context, question func(*sql.DB) error) error

// NewMySQL asks the server of a store.
func NewMySQL(store *stock.Store, mariaDB bool) *MySQL {
	return &MySQL{ask: func(_ context.Context, question func(*sql.DB) error) error { return question(store.Pool()) }, mariaDB: mariaDB}
}

// At asks another server of the same kind.
func (w *MySQL) At(ask Asker) *MySQL { return &MySQL{ask: ask, mariaDB: w.mariaDB} }

// cacheIdle is how long MariaDB's tables must not be read before it fills them anew.
// Source: trx_i_s_possibly_fetch_data_into_cache in storage/innobase/trx/trx0i_s.cc, 0.1 s.
const cacheIdle = 110 * time.Millisecond

// waitQueries are the questions of [MySQL]. Each answers with two columns.
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

// Look returns what is newer than the call.
func (w *MySQL) Look(ctx context.Context) (Waits, error) {
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
			return Waits{}, ctx.Err()
		}
	}
	now := Waits{begun: time.Now(), Transactions: map[string]string{}, blockers: map[string][]string{}}
	err := w.ask(ctx, func(db *sql.DB) error {
		err := each(ctx, db, ask.transactions, func(id, statement string) { now.Transactions[id] = statement })
		if err == nil {
			err = each(ctx, db, ask.blockers, func(waits, blocks string) {
				now.blockers[blocks] = append(now.blockers[blocks], now.Transactions[waits])
			})
		}
		if err == nil {
			err = each(ctx, db, ask.userLocks, func(names, _ string) { now.userLocks = append(now.userLocks, names) })
		}
		return err
	})
	now.asked = time.Now()
	w.last.asked = now.asked // also where only some of it was read: the server keeps that
	if err != nil {
		return Waits{}, fmt.Errorf("ask MySQL who waits: %w", err)
	}
	w.last = now
	return now, nil
}

func each(ctx context.Context, db *sql.DB, query string, row func(a, b string)) error {
	rows, err := db.QueryContext(ctx, query)
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

// OnItem reports whether a statement on the item waits for a transaction that was open before, or
// for a user-level lock.
func (w Waits) OnItem(item uint64, before map[string]string) bool {
	row := regexp.MustCompile(fmt.Sprintf("id`? *= *%d\\b", item))
	for id := range before {
		if slices.ContainsFunc(w.blockers[id], row.MatchString) {
			return true
		}
	}
	name := regexp.MustCompile(regexp.QuoteMeta(sale.Key(item)) + `\b`)
	return slices.ContainsFunc(w.userLocks, name.MatchString)
}

// On reports whether a statement for which names reports true waits for another's transaction.
func (w Waits) On(names func(statement string) bool) bool {
	return slices.ContainsFunc(slices.Concat(slices.Collect(maps.Values(w.blockers))...), names)
}

// ConnWaits says whether the statement of a connection waits for a lock. What InnoDB prints is of this
// moment. Its table of transactions is not: the server keeps it for a tenth of a second.
func ConnWaits(ctx context.Context, db *sql.DB, conn uint64) (bool, error) {
	var kind, name, status string
	if err := db.QueryRowContext(ctx, "SHOW ENGINE INNODB STATUS").Scan(&kind, &name, &status); err != nil {
		return false, fmt.Errorf("look for who waits: %w", err)
	}
	_, status, _ = strings.Cut(status, "LIST OF TRANSACTIONS FOR EACH SESSION") // before it stands the last deadlock
	thread := fmt.Sprintf(" thread id %d, ", conn)
	for transaction := range strings.SplitSeq(status, "---TRANSACTION") {
		if strings.Contains(transaction, thread) {
			if strings.Contains(transaction, "\nLOCK WAIT ") {
				return true, nil
			}
			break
		}
	}
	err := db.QueryRowContext(ctx, "SELECT COALESCE(state, '') FROM information_schema.processlist WHERE id = ?", conn).Scan(&status)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return err == nil && (status == "User lock" || strings.HasPrefix(status, "Waiting for ")), err
}

// ConnGone waits until MySQL has noticed the end of a connection, and freed what it held. It does not notice
// that while the connection's statement waits for a lock.
func ConnGone(ctx context.Context, db *sql.DB, conn uint64) error {
	ctx, cancel := context.WithTimeout(ctx, gonePatience)
	defer cancel()
	gone, err := Until(ctx, 2*time.Millisecond, func() (bool, error) {
		var n int
		err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.processlist WHERE id = ?", conn).Scan(&n)
		if err != nil || n == 0 {
			return true, err
		}
		return ConnWaits(ctx, db, conn)
	})
	if err == nil && !gone {
		err = errors.New("MySQL still has a connection that has ended")
	}
	return err
}

// gonePatience bounds how long MySQL may have a connection that has ended.
const gonePatience = 10 * time.Second
