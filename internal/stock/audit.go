package stock

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	schema "stocklock/sql"
)

// Audit is what the database says of a run, counted by SQL from the orders:
// no counter of a shop is trusted.
type Audit struct {
	InitialStock int64
	Remaining    int64
	Orders       int64
	Sold         int64 // units in orders
	Oversold     int64 // units sold beyond the initial stock
	LostUpdates  int64 // units sold that the stock does not know of
	Duplicates   int64 // orders beyond the first for one request id
}

// StartRun creates an item of its own for the run, with the run's initial stock,
// and returns the run with the item's id.
func (s *Store) StartRun(ctx context.Context, run Run) (Run, error) {
	err := s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		item := Item{Name: run.ID, Stock: run.InitialStock}
		if err := tx.Create(&item).Error; err != nil {
			return err
		}
		run.ItemID = item.ID
		return tx.Create(&run).Error
	})
	if err != nil {
		return Run{}, fmt.Errorf("start run %s: %w", run.ID, err)
	}
	return run, nil
}

// Audit counts what a run sold. It is meaningful once nothing is in flight.
func (s *Store) Audit(ctx context.Context, runID string) (Audit, error) {
	var rows []Audit
	if err := s.db.WithContext(ctx).Raw(schema.AuditTotals, runID).Scan(&rows).Error; err != nil {
		return Audit{}, fmt.Errorf("audit run %s: %w", runID, err)
	}
	if len(rows) == 0 {
		return Audit{}, fmt.Errorf("audit run %s: %w", runID, ErrNotFound)
	}
	audit := rows[0]
	if err := s.db.WithContext(ctx).Raw(schema.AuditDuplicates, runID).Scan(&audit.Duplicates).Error; err != nil {
		return Audit{}, fmt.Errorf("audit run %s: %w", runID, err)
	}
	return audit, nil
}

// RequestsWithOrders says for each request id of a run how many orders it has.
func (s *Store) RequestsWithOrders(ctx context.Context, runID string) (map[string]int64, error) {
	var rows []struct {
		RequestID string
		Orders    int64
	}
	if err := s.db.WithContext(ctx).Raw(schema.AuditRequests, runID).Scan(&rows).Error; err != nil {
		return nil, fmt.Errorf("audit the requests of run %s: %w", runID, err)
	}
	orders := make(map[string]int64, len(rows))
	for _, row := range rows {
		orders[row.RequestID] = row.Orders
	}
	return orders, nil
}

// Orders returns the orders of a run in the order in which they were committed: each of
// them was made while its item's row was locked.
func (s *Store) Orders(ctx context.Context, runID string) ([]Order, error) {
	var orders []Order
	err := s.db.WithContext(ctx).Where("item_id = (SELECT item_id FROM runs WHERE id = ?)", runID).Order("id").Find(&orders).Error
	if err != nil {
		return nil, fmt.Errorf("read the orders of run %s: %w", runID, err)
	}
	return orders, nil
}

// Statements counts the statements that clients have sent to the server since it
// started. Parameters travel inside them, so that each is one round trip.
func (s *Store) Statements(ctx context.Context) (int64, error) {
	var name string
	var count int64
	if err := s.db.WithContext(ctx).Raw("SHOW GLOBAL STATUS LIKE 'Questions'").Row().Scan(&name, &count); err != nil {
		return 0, fmt.Errorf("ask MySQL for its count of statements: %w", err)
	}
	return count, nil
}
