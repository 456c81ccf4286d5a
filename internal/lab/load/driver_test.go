package load

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

// TestEveryOrderGetsItsOwnAnswer runs the driver against a server that answers with what it was
// sent.
func TestEveryOrderGetsItsOwnAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if id := r.Header.Get(idHeader); id != "" {
			t.Errorf("the driver's own header was sent: %s", id)
		}
		if strings.HasSuffix(r.Header.Get("X-Request-Id"), "7") {
			panic(http.ErrAbortHandler) // no answer
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "%s %s %s %s %s", r.URL.Path, r.Header.Get("X-Request-Id"), r.Header.Get(labmode.StrategyHeader), r.Header.Get(labmode.FaultHeader), body)
	}))
	defer server.Close()
	const orders = 100
	var made, answered atomic.Int64
	fault := labmode.Fault{Point: sale.Read, Action: labmode.Sleep, For: time.Second}
	next := func() (Order, bool) {
		n := made.Add(1)
		time.Sleep(20 * time.Millisecond) // which is no part of an answer's time
		return Order{Shop: server.URL, ItemID: 3, Quantity: 2, RequestID: fmt.Sprint("r", n), Strategy: "fenced", Fault: fault, Tag: n}, n <= orders
	}
	err := Load{Workers: 8, Timeout: time.Minute}.Run(t.Context(), next, func(a Answer) {
		answered.Add(1)
		id := fmt.Sprint("r", a.Order.Tag)
		want := "/api/v1/items/3/orders " + id + ` fenced read sleep 1s {"quantity":2}`
		switch lost := strings.HasSuffix(id, "7"); {
		case lost && (a.Outcome != Unknown || a.Err == nil || a.Status != 0):
			t.Errorf("%s got no answer, and is %+v", id, a)
		case !lost && (a.Outcome != Sold || string(a.Body) != want):
			t.Errorf("%s: %s %q, want %q", id, a.Outcome, a.Body, want)
		}
		if a.Sent.IsZero() || a.Latency <= 0 || a.Sent.Add(a.Latency).After(time.Now()) {
			t.Errorf("%s was sent at %v and took %v", id, a.Sent, a.Latency)
		}
	})
	if err != nil || answered.Load() != orders {
		t.Errorf("%d answers, %v, want %d", answered.Load(), err, orders)
	}
}

func TestOverEndsALoad(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusCreated) }))
	defer server.Close()
	next := func() (Order, bool) { return Order{Shop: server.URL}, true }
	n := 0
	l := Load{Shape: Steady(1000), Workers: 8, Timeout: time.Minute, Over: func(sent int) bool { return sent == 20 }}
	if err := l.Run(t.Context(), next, func(Answer) { n++ }); err != nil || n != 20 {
		t.Errorf("%d answers, %v, want 20", n, err)
	}
	n = 0
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := (Load{Workers: 8, Timeout: time.Minute}).Run(ctx, next, func(Answer) { n++ }); err != nil || n == 0 {
		t.Errorf("%d answers, %v, want some until ctx ends", n, err)
	}
}

func TestARequestThatCannotBeMadeIsAnError(t *testing.T) {
	next := func() (Order, bool) { return Order{Shop: "http://%zz"}, true }
	l := Load{Workers: 1, Timeout: time.Second, Over: func(sent int) bool { return sent == 2 }}
	if err := l.Run(t.Context(), next, func(a Answer) { t.Errorf("answered: %+v", a) }); err == nil {
		t.Error("no error")
	}
	if a := Send(t.Context(), Order{Shop: "http://%zz"}); a.Err == nil || a.Outcome != Unknown {
		t.Errorf("Send = %+v", a)
	}
}

// TestNobodyRepeatsAnOrder: an order with a key whose connection breaks, after another one was answered on it, is
// sent once.
func TestNobodyRepeatsAnOrder(t *testing.T) {
	var came atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if came.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
	}))
	defer server.Close()
	order := Order{Shop: server.URL, ItemID: 1, Quantity: 1, IdempotencyKey: "key"}
	Send(t.Context(), order)
	if a := Send(t.Context(), order); a.Outcome != Unknown || came.Load() != 2 {
		t.Errorf("%s, and %d requests came, want one for each of the two", a.Outcome, came.Load())
	}
}
