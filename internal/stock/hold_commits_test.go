package stock_test

import (
	"bytes"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/testserver"
)

// TestACommitThatWroteNothingEndsNoStall has looks at the primary, and a transition that is made already, beside a COMMIT
// without an answer.
func TestACommitThatWroteNothingEndsNoStall(t *testing.T) {
	release := make(chan struct{})
	var seen atomic.Int32
	direct, store := openBehind(t, func() meddler {
		return func(packet []byte, _, _ net.Conn) bool {
			if bytes.Contains(packet, []byte("\x03COMMIT")) && seen.Add(1) == 1 {
				<-release
			}
			return false
		}
	})
	item := stocktest.Item(t, direct, 2)
	terms := stock.Terms{Open: 1, Longest: time.Hour, Window: time.Hour}
	hold, err := direct.Hold(t.Context(), stock.Sale{ItemID: item.ID, Quantity: 1, Subject: "ann", IdempotencyKey: "k", Holds: true}, 60, terms)
	if err != nil {
		t.Fatal(err)
	}
	by := stock.Author{Subject: "ann"}
	if _, err := direct.Move(t.Context(), by, hold.PublicID, stock.Release("test")); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := store.Decrement(t.Context(), one(item))
		done <- err
	}()
	testserver.Await(t, "a COMMIT to have no answer for a while", func() bool { return store.CommitStall() > 100*time.Millisecond })
	before, began := store.CommitStall(), time.Now()
	_, looked := stock.AtPrimary(t.Context(), store, func(at *stock.Store) (stock.Item, error) { return at.Read(t.Context(), item.ID) })
	again, moved := store.Move(t.Context(), by, hold.PublicID, stock.Release("test"))
	if err := errors.Join(looked, moved); err != nil || again.State != stock.Released || seen.Load() != 3 {
		t.Fatalf("%v, the reservation is %s, %d COMMITs, want 3", err, again.State, seen.Load())
	}
	if stall, passed := store.CommitStall(), time.Since(began); stall < passed+before/2 {
		t.Errorf("no COMMIT that wrote was answered for %s, want %s more than %s", stall, before, passed)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
