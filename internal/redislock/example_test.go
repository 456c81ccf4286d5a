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
	defer end(locker)

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
	defer end(locker)

	err := locker.Do(context.Background(), "stock:42", func(held context.Context) error {
		// Re-entry is at once, and costs nothing.
		return locker.Do(held, "stock:42", func(held context.Context) error { return sell(held, 0) })
	})
	if errors.Is(err, redislock.ErrNotAcquired) {
		fmt.Println("busy")
	}
}

// A handler says whether others have the lock or Redis does not serve it. Its commit goes on when the client has gone,
// and ends with the lock.
func ExampleLocker_Acquire_handler() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true, ReadTimeout: time.Second})
	defer client.Close()
	locker := redislock.New(client, redislock.Options{Wait: 2 * time.Second})
	defer end(locker)

	http.HandleFunc("POST /accounts/{id}/transfers", func(w http.ResponseWriter, r *http.Request) {
		key := "account:" + r.PathValue("id")
		held, lease, err := locker.Acquire(r.Context(), key)
		switch {
		case errors.Is(err, redislock.ErrNotAcquired):
			http.Error(w, "somebody else is at it: try again later", http.StatusConflict)
			return
		case err != nil: // whatever it is: without an answer here, the client gets 200
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		defer lease.Release() // what could not be released ends with its lease
		if held, lease, err = locker.Acquire(context.WithoutCancel(held), key); err == nil {
			defer lease.Release()
			err = sell(held, lease.Token()) // the commit
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
}

// Several machines start a job at each full hour, and one of them does it.
func ExampleLease_Leave_cron() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true, ReadTimeout: time.Second})
	defer client.Close()
	locker := redislock.New(client, redislock.Options{})
	defer end(locker)

	held, lease, err := locker.TryAcquire(context.Background(), "report")
	if err != nil {
		fmt.Println("not here:", err) // ErrNotAcquired: another machine does it, or has done it
		return
	}
	if err := sell(held, lease.Token()); err != nil {
		_ = lease.Release() // another machine may try
		return
	}
	if err := lease.Leave(50 * time.Minute); err != nil { // starts are less than ten minutes apart
		fmt.Println("another machine may do it again:", err)
	}
}

// A worker holds a lock for as long as it lives. It comes back when it has lost it, and when Redis was away.
func ExampleLocker_Acquire_worker() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true, ReadTimeout: time.Second})
	defer client.Close()
	locker := redislock.New(client, redislock.Options{})
	defer end(locker)

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		held, lease, err := locker.Acquire(ctx, "worker") // its deadline has Acquire wait for Redis, too
		if err != nil {
			fmt.Println("nothing to do yet:", err)
			time.Sleep(time.Second)
			continue
		}
		for held.Err() == nil { // before each step
			_ = sell(held, lease.Token())
		}
		fmt.Println("stopped:", context.Cause(held))
		_ = lease.Release()
	}
}

// end waits for who holds a lock, for ten seconds at most: a lease that is never released would keep it waiting for ever.
func end(locker *redislock.Locker) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = locker.Close(ctx)
}

// sell stands for work in a database that takes a context.
func sell(ctx context.Context, _ int64) error { return ctx.Err() }
