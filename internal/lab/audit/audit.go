// Package audit counts by SQL what a run sold. It trusts no counter and no answer of a shop: what the
// orders in the database say counts.
package audit

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"

	"stocklock/internal/stock"
)

// The queries. Each takes the run's id as its parameter.
var (
	//go:embed totals.sql
	totals string
	//go:embed duplicates.sql
	duplicates string
	//go:embed requests.sql
	requests string
)

// Run is one measured attack on an item made for it.
type Run struct {
	ID           string
	ItemID       uint64
	Strategy     string
	Scenario     string
	InitialStock int64
}

// Counts is what the database says of a run.
type Counts struct {
	InitialStock int64
	Remaining    int64
	Orders       int64
	Sold         int64 // units in orders
	Oversold     int64 // units sold beyond the initial stock
	LostUpdates  int64 // units sold that the stock does not know of
	Duplicates   int64 // orders beyond the first for one request id
}

// Start creates an item of its own for the run, with the run's initial stock, and returns the run
// with the item's id.
func Start(ctx context.Context, store *stock.Store, run Run) (Run, error) {
	item, err := store.CreateItem(ctx, run.ID, run.InitialStock)
	if err != nil {
		return Run{}, fmt.Errorf("start run %s: %w", run.ID, err)
	}
	run.ItemID = item.ID
	_, err = store.Pool().ExecContext(ctx, "INSERT INTO runs (id, item_id, strategy, scenario, initial_stock) VALUES (?, ?, ?, ?, ?)",
		run.ID, run.ItemID, run.Strategy, run.Scenario, run.InitialStock)
	if err != nil {
		return Run{}, fmt.Errorf("start run %s: %w", run.ID, err)
	}
	return run, nil
}

// Count counts what a run sold. It is meaningful once nothing is in flight. The error is
// stock.ErrNotFound where there is no such run.
func Count(ctx context.Context, store *stock.Store, runID string) (Counts, error) {
	var c Counts
	err := store.Pool().QueryRowContext(ctx, totals, runID).
		Scan(&c.InitialStock, &c.Remaining, &c.Orders, &c.Sold, &c.Oversold, &c.LostUpdates)
	if errors.Is(err, sql.ErrNoRows) {
		err = stock.ErrNotFound
	}
	if err == nil {
		err = store.Pool().QueryRowContext(ctx, duplicates, runID).Scan(&c.Duplicates)
	}
	if err != nil {
		return Counts{}, fmt.Errorf("audit run %s: %w", runID, err)
	}
	return c, nil
}

// Requests returns for each request id of a run how many orders it has.
func Requests(ctx context.Context, store *stock.Store, runID string) (map[string]int64, error) {
	rows, err := store.Pool().QueryContext(ctx, requests, runID)
	if err != nil {
		return nil, fmt.Errorf("audit the requests of run %s: %w", runID, err)
	}
	defer rows.Close()
	orders := map[string]int64{}
	for rows.Next() {
		var id string
		var n int64
		if err := rows.Scan(&id, &n); err != nil {
			return nil, fmt.Errorf("audit the requests of run %s: %w", runID, err)
		}
		orders[id] = n
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("audit the requests of run %s: %w", runID, err)
	}
	return orders, nil
}

// Statements counts the statements that clients have sent to the server since it started.
// Parameters travel inside them, so that each is one round trip.
func Statements(ctx context.Context, store *stock.Store) (int64, error) {
	var name string
	var count int64
	if err := store.Pool().QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&name, &count); err != nil {
		return 0, fmt.Errorf("ask MySQL for its count of statements: %w", err)
	}
	return count, nil
}
