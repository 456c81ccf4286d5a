package shop

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"stocklock/internal/redislock"
	"stocklock/internal/testserver"
)

func TestLockedHoldsTheLockAroundTheHandlers(t *testing.T) {
	client, err := OpenRedis("redis://"+testserver.RedisAddr(t), RedisPoolSize)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ours := redislock.New(client, redislock.Options{Wait: 50 * time.Millisecond})
	defer ours.Close(context.Background())
	theirs := redislock.New(client, redislock.Options{})
	defer theirs.Close(context.Background())

	keys := redislock.Keys("", "account:1")
	served := 0
	handler := func(c *gin.Context) {
		served++
		if _, _, err := theirs.TryAcquire(t.Context(), "account:1"); !errors.Is(err, redislock.ErrNotAcquired) {
			t.Errorf("another got the lock meanwhile: %v", err)
		}
		inner, lease, err := ours.Acquire(c.Request.Context(), "account:1")
		if err != nil || inner.Err() != nil {
			t.Fatalf("the handler could not enter again: %v", err)
		}
		_ = lease.Release()
		c.Status(http.StatusNoContent)
	}
	for _, test := range []struct {
		name    string
		acquire Acquire
	}{{"Acquire", ours.Acquire}, {"TryAcquire", ours.TryAcquire}} {
		e := gin.New()
		e.POST("/accounts/:id", Locked(test.acquire, func(c *gin.Context) string { return "account:" + c.Param("id") }), handler)
		ask := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			e.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/accounts/1", nil))
			return w
		}
		if got := ask(); got.Code != http.StatusNoContent {
			t.Errorf("%s, free: %d %s", test.name, got.Code, got.Body)
		}
		_, lease, err := theirs.Acquire(context.Background(), "account:1")
		if err != nil {
			t.Fatalf("the lock was not given back: %v", err)
		}
		before := served
		if got := ask(); got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") == "" || served != before {
			t.Errorf("%s, taken: %d %s, handler called %d times", test.name, got.Code, got.Body, served-before)
		}
		if err := lease.Release(); err != nil {
			t.Fatal(err)
		}
		// The wait that was given up is taken back in the background: it may get the lock for a
		// moment.
		for deadline := time.Now().Add(10 * time.Second); client.Exists(t.Context(), keys.Lock, keys.Queue).Val() > 0; {
			if time.Now().After(deadline) {
				t.Fatal("the lock was not given back")
			}
		}
	}
}
