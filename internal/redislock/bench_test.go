package redislock

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func BenchmarkUncontended(b *testing.B) {
	l, _ := newLocker(b, Options{})
	b.ReportAllocs()
	for b.Loop() {
		_, lease := acquire(b, l, b.Context(), b.Name())
		release(b, lease)
	}
}

func BenchmarkHandOffInsideAProcess(b *testing.B) {
	l, _ := newLocker(b, Options{})
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			_, lease, err := l.Acquire(b.Context(), b.Name())
			if err != nil {
				b.Error(err)
				return
			}
			lease.Release()
		}
	})
}

// BenchmarkBesideRenewals holds a thousand locks, and measures the holds of another one. "spread"
// are the renewals of locks that were taken in one burst. In a "burst" all are renewed at once, every
// 400 holds, as after the process was stopped for a moment; in "pipelines" the same is done by
// sending a hundred renewals together. first-ms is the median of the holds right after a burst.
func BenchmarkBesideRenewals(b *testing.B) {
	const locks, every, together = 1000, 400, 100
	for _, c := range []struct {
		name  string
		lease time.Duration // of the locks beside; zero for none
		burst func(b *testing.B, l *Locker, client *redis.Client)
	}{
		{"none", 0, nil},
		{"spread", 5 * time.Second, nil},
		{"burst", 10 * time.Minute, func(_ *testing.B, l *Locker, _ *redis.Client) {
			l.mu.Lock()
			defer l.unlock()
			for _, n := range l.locks {
				if n.state == held {
					n.due = l.now()
					l.scheduleLocked(n)
				}
			}
		}},
		{"pipelines", 10 * time.Minute, func(b *testing.B, l *Locker, client *redis.Client) {
			l.mu.Lock()
			defer l.unlock()
			pipe := client.Pipeline()
			for _, n := range l.locks {
				if n.state != held {
					continue
				}
				if _ = pipe.Process(b.Context(), l.server.command(renewScript, n, n.attempt, n.lease.Milliseconds())); pipe.Len() == together {
					go pipe.Exec(context.Background())
					pipe = client.Pipeline()
				}
			}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			client := redis.NewClient(&redis.Options{Addr: shared.addr})
			defer client.Close()
			if err := client.ScriptLoad(b.Context(), renewScript.source).Err(); err != nil {
				b.Fatal(err)
			}
			l := New(client, Options{Lease: c.lease})
			defer l.Close(context.Background())
			var all sync.WaitGroup
			for i := range locks {
				if c.lease > 0 {
					all.Go(func() { acquire(b, l, b.Context(), fmt.Sprint(b.Name(), i)) })
				}
			}
			all.Wait()
			var took, first []time.Duration // first are those right after a burst
			for b.Loop() {
				burst := c.burst != nil && len(took)%every == 0
				if burst {
					c.burst(b, l, client)
				}
				time.Sleep(time.Millisecond)
				begun := time.Now()
				_, lease := acquire(b, l, b.Context(), b.Name())
				release(b, lease)
				took = append(took, time.Since(begun))
				if burst {
					first = append(first, took[len(took)-1])
				}
			}
			if slices.Sort(first); len(first) > 0 {
				b.ReportMetric(first[len(first)/2].Seconds()*1000, "first-ms")
			}
			slices.Sort(took)
			for name, i := range map[string]int{"p50-ms": len(took) / 2, "p99-ms": len(took) * 99 / 100, "max-ms": len(took) - 1} {
				b.ReportMetric(took[i].Seconds()*1000, name)
			}
		})
	}
}
