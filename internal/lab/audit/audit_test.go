package audit_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"stocklock/internal/lab/audit"
	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/testserver"
)

// started is a run of an item with two units, and the item as it was read.
func started(t *testing.T) (*stock.Store, audit.Run, stock.Item) {
	t.Helper()
	store := stocktest.Open(t)
	run, err := audit.Start(t.Context(), store, audit.Run{ID: "run", Strategy: "s", Scenario: "c", InitialStock: 2})
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	read, err := store.Read(t.Context(), run.ItemID)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	return store, run, read
}

func TestTheAuditCountsFromTheOrders(t *testing.T) {
	store, run, read := started(t)
	for i, request := range []string{"a", "b", "b"} { // each writes what the same read gave
		sale := stock.Sale{ItemID: run.ItemID, Quantity: 1, RequestID: request, Strategy: "test", Shop: "shop"}
		if _, err := store.Write(t.Context(), sale, read); err != nil {
			t.Fatalf("Write %d: %v", i, err)
		}
	}
	got, err := audit.Count(t.Context(), store, run)
	want := audit.Counts{InitialStock: 2, Remaining: 1, Orders: 3, Sold: 3, Oversold: 1, LostUpdates: 2}
	if err != nil || got != want {
		t.Errorf("Count = %+v, %v, want %+v", got, err, want)
	}
	if _, err := audit.Count(t.Context(), store, audit.Run{ID: "no such run"}); !errors.Is(err, stock.ErrNotFound) {
		t.Errorf("Count of no run = %v, want ErrNotFound", err)
	}
}

func TestAnIDFitsItsColumn(t *testing.T) {
	for _, seed := range []uint64{1, 1_000_000, math.MaxUint64} {
		id := audit.NewID("check-constraint-absolute", "commit-unanswered", seed, 2)
		if len(id) > audit.MaxID-2 || !strings.HasPrefix(id, "check-constraint-absolute"[:20]) || !strings.Contains(id, fmt.Sprint("-", seed, "-")) {
			t.Errorf("the id for seed %d is %q", seed, id)
		}
	}
}

func TestTheAuditCountsChanges(t *testing.T) {
	store, run, read := started(t)
	var order stock.Order
	var err error
	for _, request := range []string{"a", "b"} { // the second loses the first's update
		sale := stock.Sale{ItemID: run.ItemID, Quantity: 1, RequestID: request, Strategy: "test", Shop: "shop"}
		if order, err = store.Write(t.Context(), sale, read); err != nil {
			t.Fatalf("Write: %v", err)
		}
	}
	by := func(key string) stock.Author {
		return stock.Author{Subject: "ann", IdempotencyKey: key, RequestID: "r", Shop: "shop"}
	}
	restocked, err := store.Restock(t.Context(), by("1"), run.ItemID, 10)
	if err != nil {
		t.Fatalf("Restock: %v", err)
	}
	if _, err := store.Correct(t.Context(), by("2"), run.ItemID, func(is stock.Item) bool { return is == restocked.Item() }, 7); err != nil {
		t.Fatalf("Correct: %v", err)
	}
	if _, err := store.Cancel(t.Context(), by("3"), stock.Cancelled, order.Rows()); err != nil {
		t.Fatalf("Cancel: %v", err)
	}
	got, err := audit.Count(t.Context(), store, run)
	want := audit.Counts{InitialStock: 2, Restocked: 10, Corrected: -4, Remaining: 8, Orders: 2, Sold: 1, Cancelled: 1, LostUpdates: 1}
	if err != nil || got != want {
		t.Errorf("Count = %+v, %v, want %+v", got, err, want)
	}
}

// TestATableOfAnotherProgramStays where the lab's own migrations come to it.
func TestATableOfAnotherProgramStays(t *testing.T) {
	dsn := testserver.Database(t)
	if _, err := stocktest.OpenAt(t, dsn).Pool().ExecContext(t.Context(), "CREATE TABLE reservations (id INT PRIMARY KEY, guest TEXT)"); err != nil {
		t.Fatal(err)
	}
	store, err := audit.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if tables, err := stocktest.Tables(t.Context(), store); err != nil || tables["reservations"] == "" {
		t.Errorf("the table is gone, %v", err)
	}
}
