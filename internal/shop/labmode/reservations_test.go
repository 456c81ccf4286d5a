package labmode_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/shop"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
	"stocklock/internal/testserver"
)

// TestASweepIsARequest holds a sweep before it ends anything, and lets it go on. Without it, nothing ends.
func TestASweepIsARequest(t *testing.T) {
	l := open(t, labmode.Config{}, usualOptions)
	item := l.item(3)
	h, err := l.store.Hold(t.Context(), stock.Sale{ItemID: item.ID, Quantity: 3, Subject: "ann", IdempotencyKey: "k", Holds: true}, 0, stock.Terms{Open: 1})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path string, asked labmode.Experiment) (status int, s labmode.Swept) {
		request, err := http.NewRequestWithContext(t.Context(), method, l.url+path, nil)
		if err != nil {
			t.Error(err)
			return
		}
		asked.Set(request.Header)
		request.Header.Set(shop.RequestIDHeader, "the-sweep")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Error(err)
			return
		}
		defer answer.Body.Close()
		_ = json.NewDecoder(answer.Body).Decode(&s)
		return answer.StatusCode, s
	}
	swept := make(chan labmode.Swept)
	go func() {
		_, s := ask(http.MethodPost, labmode.SweepPath, labmode.Experiment{Fault: labmode.Fault{Point: sale.Write, Action: labmode.Hold, For: time.Minute}})
		swept <- s
	}()
	testserver.Await(t, "the sweep to be held", func() bool {
		now, err := l.store.HoldByID(t.Context(), h.PublicID)
		if err != nil || now.State != stock.Held {
			t.Errorf("before the sweep, the hold is %s, %v", now.State, err)
		}
		status, _ := ask(http.MethodDelete, labmode.HoldsPath+"the-sweep", labmode.Experiment{})
		return status == http.StatusNoContent
	})
	if s := <-swept; s.Ended != 1 || l.left(item) != 3 {
		t.Errorf("a sweep ended %d, and %d units are left, want 1 and 3", s.Ended, l.left(item))
	}
	if status, _ := ask(http.MethodGet, labmode.SweepPath, labmode.Experiment{}); status != http.StatusNotFound {
		t.Errorf("GET %s: %d", labmode.SweepPath, status)
	}
}
