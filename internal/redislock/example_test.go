package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/redislock"
)

func Example() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true, ReadTimeout: time.Second})
	defer client.Close()
	locker := redislock.New(client, redislock.Options{})
	defer locker.Close(context.Background())

	held, lease, err := locker.Acquire(context.Background(), "stock:42")
	if err != nil {
		fmt.Println("try again later:", err)
		return
	}
	defer lease.Release()

	if err := sell(held, lease.Token()); errors.Is(context.Cause(held), redislock.ErrLost) {
		fmt.Println("somebody else may be selling by now:", err)
	}
}

func ExampleLocker_Do() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true, ReadTimeout: time.Second})
	defer client.Close()
	locker := redislock.New(client, redislock.Options{})
	defer locker.Close(context.Background())

	err := locker.Do(context.Background(), "stock:42", func(held context.Context) error {
		// Re-entry is at once, and costs nothing.
		return locker.Do(held, "stock:42", func(held context.Context) error { return sell(held, 0) })
	})
	if errors.Is(err, redislock.ErrNotAcquired) {
		fmt.Println("busy")
	}
}

// A middleware holds the lock on a key of the request around a handler of net/http. The request's
// context ends when the lock is lost, and the handler may acquire the same key again with it.
func ExampleLocker_Acquire_middleware() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true, ReadTimeout: time.Second})
	defer client.Close()
	locker := redislock.New(client, redislock.Options{Wait: 2 * time.Second})
	defer locker.Close(context.Background())

	locked := func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			held, lease, err := locker.Acquire(r.Context(), "account:"+r.PathValue("id"))
			if err != nil { // whatever it is: without an answer here, the client gets 200
				http.Error(w, "busy: try again later", http.StatusServiceUnavailable)
				return
			}
			defer lease.Release() // what could not be released ends with its lease
			next(w, r.WithContext(held))
		}
	}
	http.HandleFunc("POST /accounts/{id}/transfers", locked(func(w http.ResponseWriter, r *http.Request) {
		if err := sell(r.Context(), 0); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
}

// sell stands for work in a database that takes a context.
func sell(ctx context.Context, _ int64) error { return ctx.Err() }
