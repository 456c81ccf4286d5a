// Package section contains the work that is done under a lock. Most sections read a counter and
// then write it. Only the lock excludes others between the two steps, so a lost update shows.
package section

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/bench/lock"
)

// Section is one kind of work.
type Section struct {
	Name string
	Doc  string
	// Counts says that every run adds one to a counter, which makes lost updates countable.
	Counts bool
	Open   func(Config) (Work, error)
}

// Config has the servers of a section.
type Config struct {
	Redis      string // address
	MySQL      string // DSN; empty unless the section needs one
	Goroutines int
}

// Work is a section in one process. It is safe for concurrent use.
type Work interface {
	// Reset sets a counter to zero. One process calls it before any process calls Run.
	Reset(ctx context.Context, counter string) error
	// Run does the work once.
	Run(ctx context.Context, counter string) error
	// Total returns the value of the counter.
	Total(ctx context.Context, counter string) (int64, error)
	Close() error
}

// All lists the sections.
var All = []Section{
	redisSection,
	mysqlSection,
	sleeping("sleep", "1 ms of sleep", time.Millisecond),
	sleeping("sleep-10ms", "10 ms of sleep", 10*time.Millisecond),
	sleeping("empty", "nothing", 0),
}

func sleeping(name, doc string, d time.Duration) Section {
	return Section{Name: name, Doc: doc, Open: func(Config) (Work, error) { return pause(d), nil }}
}

// pause sleeps for its duration and has no counter.
type pause time.Duration

func (p pause) Run(context.Context, string) error {
	time.Sleep(time.Duration(p))
	return nil
}

func (pause) Reset(context.Context, string) error          { return nil }
func (pause) Total(context.Context, string) (int64, error) { return 0, nil }
func (pause) Close() error                                 { return nil }

var redisSection = Section{
	Name: "redis", Doc: "GET a counter from Redis, then SET it to the value plus one", Counts: true,
	Open: func(c Config) (Work, error) {
		return redisWork{lock.NewClient(c.Redis, c.Goroutines)}, nil
	},
}

type redisWork struct{ client *redis.Client }

func (w redisWork) Reset(ctx context.Context, counter string) error {
	return w.client.Set(ctx, counter, 0, 0).Err()
}

func (w redisWork) Run(ctx context.Context, counter string) error {
	n, err := w.client.Get(ctx, counter).Int64()
	if err != nil {
		return err
	}
	return w.client.Set(ctx, counter, n+1, 0).Err()
}

func (w redisWork) Total(ctx context.Context, counter string) (int64, error) {
	return w.client.Get(ctx, counter).Int64()
}

func (w redisWork) Close() error { return w.client.Close() }
