package audit_test

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"stocklock/internal/lab/audit"
	"stocklock/internal/stock"
	"stocklock/internal/testserver"
)

func TestTheAuditCountsFromTheOrders(t *testing.T) {
	store, err := stock.Open(testserver.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if err := store.Migrate(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	run, err := audit.Start(t.Context(), store, audit.Run{ID: "run", Strategy: "s", Scenario: "c", InitialStock: 2})
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	read, err := store.Read(t.Context(), run.ItemID)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	for i, request := range []string{"a", "b", "b"} { // each writes what the same read gave
		sale := stock.Sale{ItemID: run.ItemID, Quantity: 1, RequestID: request, Strategy: "test", Shop: "shop"}
		if _, err := store.Write(t.Context(), sale, read); err != nil {
			t.Fatalf("Write %d: %v", i, err)
		}
	}
	got, err := audit.Count(t.Context(), store, run)
	want := audit.Counts{InitialStock: 2, Remaining: 1, Orders: 3, Sold: 3, Oversold: 1, LostUpdates: 2, Duplicates: 1}
	if err != nil || got != want {
		t.Errorf("Count = %+v, %v, want %+v", got, err, want)
	}
	orders, err := audit.Requests(t.Context(), store, "run")
	if err != nil || fmt.Sprint(orders) != "map[a:1 b:2]" {
		t.Errorf("Requests = %v, %v, want map[a:1 b:2]", orders, err)
	}
	if _, err := audit.Count(t.Context(), store, audit.Run{ID: "no such run"}); !errors.Is(err, stock.ErrNotFound) {
		t.Errorf("Count of no run = %v, want ErrNotFound", err)
	}
}
