package stock_test

import (
	"strings"
	"testing"

	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
)

// TestAChangeAndItsEntryAreWrittenTogether has an entry that cannot be written.
func TestAChangeAndItsEntryAreWrittenTogether(t *testing.T) {
	store := stocktest.Open(t)
	item := stocktest.Item(t, store, 5)
	sold, err := store.Decrement(t.Context(), one(item))
	if err != nil {
		t.Fatal(err)
	}
	before, err := store.Read(t.Context(), item.ID)
	if err != nil {
		t.Fatal(err)
	}
	by := stock.Author{Subject: "ann", IdempotencyKey: "k", RequestID: strings.Repeat("x", 65), Shop: "shop"} // longer than its column
	for name, change := range map[string]func() (stock.Change, error){
		"add":     func() (stock.Change, error) { return store.Add(t.Context(), by, "x", 1) },
		"rename":  func() (stock.Change, error) { return store.Rename(t.Context(), by, item.ID, nil, "x") },
		"restock": func() (stock.Change, error) { return store.Restock(t.Context(), by, item.ID, 1) },
		"correct": func() (stock.Change, error) { return store.Correct(t.Context(), by, item.ID, nil, 1) },
		"cancel":  func() (stock.Change, error) { return store.Cancel(t.Context(), by, stock.Cancelled, sold.Rows()) },
	} {
		if _, err := change(); err == nil || !strings.Contains(err.Error(), "request_id") {
			t.Errorf("%s: %v, want the error of the entry", name, err)
		}
	}
	items, err := store.Items(t.Context(), 0, 10)
	if err != nil || len(items) != 1 || items[0] != before {
		t.Errorf("the items are %+v, %v, want %+v alone", items, err, before)
	}
	if order, err := store.Order(t.Context(), sold.PublicID); err != nil || order.CancelledAt != nil {
		t.Errorf("the order is %+v, %v", order, err)
	}
}
