// Package rigtest gives tests real servers. Each test binary starts one MySQL and
// one Redis when the first test asks for them; they end with the binary. A
// missing server fails the test and says what to install.
package rigtest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stocklock/internal/rig"
)

// shared is never closed: tests in any order use it until the binary ends, and
// then the rig's reaper cleans up.
var shared = sync.OnceValues(rig.New)

var mysql = sync.OnceValues(func() (*rig.MySQL, error) {
	r, err := shared()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return r.MySQL(ctx)
})

var redis = sync.OnceValues(func() (*rig.Redis, error) {
	r, err := shared()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return r.Redis(ctx, rig.RedisOptions{})
})

var databases atomic.Int64

// MySQL returns the DSN of an empty database of the test's own.
func MySQL(t testing.TB) string {
	t.Helper()
	server, err := mysql()
	if err != nil {
		t.Fatalf("rigtest: MySQL: %v", err)
	}
	dsn, err := server.CreateDatabase(t.Context(), fmt.Sprintf("test_%d", databases.Add(1)))
	if err != nil {
		t.Fatalf("rigtest: MySQL: %v", err)
	}
	return dsn
}

// Redis returns the address of the binary's Redis, emptied. Tests that use it do
// not run in parallel.
func Redis(t testing.TB) string {
	t.Helper()
	server, err := redis()
	if err != nil {
		t.Fatalf("rigtest: Redis: %v", err)
	}
	client := server.Client()
	defer client.Close()
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatalf("rigtest: Redis: %v", err)
	}
	return server.Addr
}
