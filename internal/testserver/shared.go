package testserver

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// NeedsServers skips a test that starts servers when only the quick tests are asked for: with
// go test -short, as make quick does.
func NeedsServers(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts servers: not run with -short")
	}
}

// Await waits until something is so, for a minute at most.
func Await(t testing.TB, what string, done func() bool) {
	t.Helper()
	for giveUp := time.Now().Add(time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(giveUp) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

// Start makes a group that ends with the test.
func Start(t testing.TB) *Group {
	t.Helper()
	NeedsServers(t)
	g, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return g
}

// shared is never closed: tests use it in any order until the binary ends, and then its reaper
// cleans up.
var shared = sync.OnceValues(New)

var sharedMySQL = sync.OnceValues(func() (*MySQL, error) {
	g, err := shared()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return g.MySQL(ctx, "--innodb-flush-log-at-trx-commit=0") // no test kills this one
})

var databases atomic.Int64

// Database returns the DSN of an empty database of the test's own. A missing server fails the test
// and says what to install.
func Database(t testing.TB) string {
	t.Helper()
	NeedsServers(t)
	server, err := sharedMySQL()
	if err != nil {
		t.Fatalf("testserver: MySQL: %v", err)
	}
	dsn, err := server.CreateDatabase(t.Context(), fmt.Sprintf("test_%d", databases.Add(1)))
	if err != nil {
		t.Fatalf("testserver: MySQL: %v", err)
	}
	return dsn
}
