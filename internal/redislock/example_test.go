package redislock_test

import (
	"context"
	"errors"
	"fmt"
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

func ExampleGuard() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true, ReadTimeout: time.Second})
	defer client.Close()
	locker := redislock.New(client, redislock.Options{})
	defer locker.Close(context.Background())

	type order struct{ item, quantity int }
	place := redislock.Guard(locker,
		func(o order) string { return fmt.Sprintf("stock:%d", o.item) },
		func(held context.Context, o order) (int, error) { return o.quantity, sell(held, 0) })
	sold, err := place(context.Background(), order{item: 42, quantity: 1})
	fmt.Println(sold, err)
}

// sell stands for work in a database that takes a context.
func sell(ctx context.Context, _ int64) error { return ctx.Err() }
