package stock_test

import (
	"bytes"
	"net"
	"sync/atomic"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"stocklock/internal/testserver"
)

// TestCommitsThatAreNotAnswered holds one COMMIT back: it counts until another one is answered, and
// not after its own answer.
func TestCommitsThatAreNotAnswered(t *testing.T) {
	dsn, err := mysqldriver.ParseDSN(testserver.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	direct := openAt(t, dsn.FormatDSN())
	held, other := newItem(t, direct, 1), newItem(t, direct, 1)
	release := make(chan struct{})
	var holds atomic.Bool
	dsn.Addr = proxy(t, dsn.Addr, func() meddler {
		return func(packet []byte, _, _ net.Conn) bool {
			if bytes.Contains(packet, []byte("\x03COMMIT")) && !holds.Swap(true) {
				<-release
			}
			return false
		}
	})
	store := openEmpty(t, dsn.FormatDSN())
	done := make(chan error, 1)
	go func() {
		_, err := store.Decrement(t.Context(), one(held))
		done <- err
	}()
	for store.CommitStall() < 50*time.Millisecond {
		time.Sleep(time.Millisecond)
	}
	began := time.Now()
	if _, err := store.Decrement(t.Context(), one(other)); err != nil {
		t.Fatal(err)
	}
	if stall := store.CommitStall(); stall == 0 || stall > time.Since(began) {
		t.Errorf("after the answer to another COMMIT: %s", stall)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if stall := store.CommitStall(); stall != 0 {
		t.Errorf("with no COMMIT under way: %s", stall)
	}
}
