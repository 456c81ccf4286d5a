// Package audit counts the sales of a run by SQL. Only the orders in the database count. It trusts
// no counter and no answer of a shop.
//
// # Decisions
//
// The orders are the evidence. A lost update can oversell while the stock stays at zero or above. A
// plausible final stock therefore proves nothing. The audit counts order rows with SQL, on a
// connection that does not belong to a shop.
//
// Observing is not counted as cost. The audit counts what a sale costs MySQL, and subtracts the
// statements that only observe.
package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	_ "embed"

	"stocklock/internal/stock"
	"stocklock/internal/strategy/declared"
)

// totals is the query. All its parameters are the run's id.
//
//go:embed totals.sql
var totals string

// Run is one measured attack on an item made for it.
type Run struct {
	ID           string
	ItemID       uint64
	Strategy     string
	Scenario     string
	InitialStock int64
	// State is what the strategy keeps of the item besides the item's row.
	State declared.State
}

// Counts is what the database says of a run.
type Counts struct {
	InitialStock int64
	Restocked    int64 // units that came
	Corrected    int64 // units that corrections added, less those that they took
	Remaining    int64
	Orders       int64
	Sold         int64 // units in orders that stand
	Cancelled    int64 // units in cancelled orders
	Oversold     int64 // units sold beyond what was there and came
	LostUpdates  int64 // units sold that the stock does not know of
}

// MaxID is the longest id of a run and of a request, in bytes: that of their columns.
const MaxID = 64

// NewID makes the id of a run that begins now. Names that would make it too long are cut. With room, it is as
// much shorter than MaxID.
func NewID(strategy, scenario string, seed uint64, room int) string {
	names, unique := strategy+"-"+scenario, fmt.Sprintf("-%d-%s", seed, time.Now().UTC().Format("150405.000000"))
	return names[:min(len(names), MaxID-room-len(unique))] + unique
}

// Start creates an item of its own for the run, with the run's initial stock, prepares it for the
// run's strategy, and returns the run with the item's id.
func Start(ctx context.Context, store *stock.Store, run Run) (Run, error) {
	runs := []Run{run}
	if err := StartAll(ctx, store, runs); err != nil {
		return Run{}, err
	}
	return runs[0], nil
}

// atOnce is how many runs StartAll starts in a transaction: one commit for each item is hours for a million.
const atOnce = 500

// StartAll is [Start] for each of the runs, whose ids are different. It sets the ids of their items.
func StartAll(ctx context.Context, store *stock.Store, runs []Run) error {
	for some := range slices.Chunk(runs, atOnce) {
		if err := store.Transact(ctx, func(tx stock.Tx) error { return start(tx, some) }); err != nil {
			return fmt.Errorf("start run %s: %w", some[0].ID, err)
		}
	}
	return nil
}

func start(tx stock.Tx, runs []Run) error {
	var items, names, rows []any
	for _, run := range runs {
		items, names = append(items, run.ID, run.InitialStock), append(names, run.ID)
	}
	_, first, err := tx.Exec("INSERT INTO items (name, stock) VALUES (?, ?)"+strings.Repeat(", (?, ?)", len(runs)-1), items...)
	if err != nil {
		return err
	}
	var made []uint64 // with gaps, where the server counts in steps
	if err := tx.Query(&made, "SELECT id FROM items WHERE id >= ? AND name IN ? ORDER BY id", first, names); err != nil {
		return err
	}
	for i, id := range made {
		runs[i].ItemID = id
		rows = append(rows, runs[i].ID, id, runs[i].Strategy, runs[i].Scenario, runs[i].InitialStock)
		if err := prepare(tx, runs[i].State, id); err != nil {
			return fmt.Errorf("prepare the item for %s: %w", runs[i].Strategy, err)
		}
	}
	_, _, err = tx.Exec("INSERT INTO runs (id, item_id, strategy, scenario, initial_stock) VALUES (?, ?, ?, ?, ?)"+
		strings.Repeat(", (?, ?, ?, ?, ?)", len(runs)-1), rows...)
	return err
}

// Prepare makes the units of an item's row ready to be sold by a strategy with this state. It is called for a
// new item and after a restock.
func Prepare(ctx context.Context, store *stock.Store, state declared.State, itemID uint64) error {
	if len(state.Setup) == 0 {
		return nil
	}
	return store.Transact(ctx, func(tx stock.Tx) error { return prepare(tx, state, itemID) })
}

func prepare(tx stock.Tx, state declared.State, itemID uint64) error {
	for _, statement := range state.Setup {
		if _, _, err := tx.Exec(statement, itemID); err != nil {
			return err
		}
	}
	return nil
}

// Count counts what a run sold. While orders are in flight, a lost update is one of those. It is one
// statement, and a second one for a strategy that keeps units besides the item's row. The error is
// stock.ErrNotFound where there is no such run.
func Count(ctx context.Context, store *stock.Store, run Run) (Counts, error) {
	var c Counts
	err := store.Pool().QueryRowContext(ctx, totals, run.ID, run.ID, run.ID).
		Scan(&c.InitialStock, &c.Restocked, &c.Corrected, &c.Remaining, &c.Orders, &c.Sold, &c.Cancelled, &c.Oversold, &c.LostUpdates)
	if errors.Is(err, sql.ErrNoRows) {
		err = stock.ErrNotFound
	}
	var besides int64 // units that the strategy keeps besides the item's row
	if err == nil && run.State.Remaining != "" {
		err = store.Pool().QueryRowContext(ctx, run.State.Remaining, run.ItemID).Scan(&besides)
	}
	if err != nil {
		return Counts{}, fmt.Errorf("audit run %s: %w", run.ID, err)
	}
	c.Remaining, c.LostUpdates = c.Remaining+besides, c.LostUpdates+besides
	return c, nil
}

// Statements counts the statements that clients have sent to the server since it started.
// Parameters travel inside them, so that each is one round trip.
func Statements(ctx context.Context, store *stock.Store) (int64, error) {
	var count int64
	if err := store.Pool().QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Questions'").Scan(new(string), &count); err != nil {
		return 0, fmt.Errorf("ask MySQL for its count of statements: %w", err)
	}
	return count, nil
}

// Deadlocks counts the deadlocks that the server has resolved since it started. MariaDB says it in its
// status, and MySQL in a table of its own, which needs the right PROCESS.
func Deadlocks(ctx context.Context, store *stock.Store) (count int64, err error) {
	err = store.Pool().QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'").Scan(new(string), &count)
	if errors.Is(err, sql.ErrNoRows) {
		err = store.Pool().QueryRowContext(ctx, "SELECT `COUNT` FROM information_schema.INNODB_METRICS WHERE NAME = 'lock_deadlocks'").Scan(&count)
	}
	if err != nil {
		return 0, fmt.Errorf("ask MySQL for its count of deadlocks: %w", err)
	}
	return count, nil
}
