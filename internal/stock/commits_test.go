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

// TestCommitsThatAreNotAnswered holds two COMMITs back. The first counts until another one is answered,
// and none after its own answer.
func TestCommitsThatAreNotAnswered(t *testing.T) {
	release := make(chan struct{})
	var holds atomic.Int32
	direct, store := openBehind(t, func() meddler {
		return func(packet []byte, _, _ net.Conn) bool {
			if bytes.Contains(packet, []byte("\x03COMMIT")) && holds.Add(1) <= 2 {
				<-release
			}
			return false
		}
	})
	items := []stock.Item{stocktest.Item(t, direct, 1), stocktest.Item(t, direct, 1), stocktest.Item(t, direct, 1)}
	done := make(chan error, 2)
	for i := range 2 {
		go func() {
			_, err := store.Decrement(t.Context(), one(items[i]))
			done <- err
		}()
		const counts = 50 * time.Millisecond
		testserver.Await(t, "a COMMIT to be held", func() bool {
			return holds.Load() == int32(i+1) && (i > 0 || store.CommitStall() > counts)
		})
		if stall := store.CommitStall(); stall < counts {
			t.Errorf("after the beginning of another COMMIT: %s", stall)
		}
	}
	began := time.Now()
	if _, err := store.Decrement(t.Context(), one(items[2])); err != nil {
		t.Fatal(err)
	}
	if stall := store.CommitStall(); stall == 0 || stall > time.Since(began) {
		t.Errorf("after the answer to another COMMIT: %s", stall)
	}
	close(release)
	if err := errors.Join(<-done, <-done); err != nil {
		t.Error(err)
	}
	if stall := store.CommitStall(); stall != 0 {
		t.Errorf("with no COMMIT under way: %s", stall)
	}
}

// TestACommitWithoutAnAnswerEndsNoStall loses a COMMIT while another one has no answer.
func TestACommitWithoutAnAnswerEndsNoStall(t *testing.T) {
	release := make(chan struct{})
	var seen atomic.Int32
	direct, store := openBehind(t, func() meddler {
		return func(packet []byte, client, _ net.Conn) bool {
			if !bytes.Contains(packet, []byte("\x03COMMIT")) {
				return false
			}
			if seen.Add(1) == 1 {
				<-release
				return false
			}
			client.Close()
			return true
		}
	})
	items := []stock.Item{stocktest.Item(t, direct, 1), stocktest.Item(t, direct, 1)}
	done := make(chan error)
	go func() {
		_, err := store.Decrement(t.Context(), one(items[0]))
		done <- err
	}()
	testserver.Await(t, "a COMMIT to have no answer for a while", func() bool { return store.CommitStall() > 100*time.Millisecond })
	before, began := store.CommitStall(), time.Now()
	if _, err := store.Decrement(t.Context(), one(items[1])); !errors.Is(err, stock.ErrUnknown) {
		t.Errorf("a lost COMMIT: %v, want ErrUnknown", err)
	}
	if stall, passed := store.CommitStall(), time.Since(began); stall < passed+before/2 {
		t.Errorf("no COMMIT was answered for %s, want %s more than %s", stall, before, passed)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
