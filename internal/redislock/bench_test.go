package redislock

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
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

// BenchmarkBesideRenewals holds a thousand locks, which were taken in one burst, and measures the
// holds of another one. In "at once" all of them are renewed in one burst again and again, as after
// the process was stopped for a moment.
func BenchmarkBesideRenewals(b *testing.B) {
	for name, holds := range map[string]int{"none": 0, "spread": 1000, "at once": 1000} {
		b.Run(name, func(b *testing.B) {
			client := redis.NewClient(&redis.Options{Addr: shared.addr})
			defer client.Close()
			var renewals atomic.Int64
			l := New(client, Options{Lease: 5 * time.Second, Hooks: Hooks{Renewed: func(context.Context, Event) { renewals.Add(1) }}})
			defer l.Close(context.Background())
			var all sync.WaitGroup
			for i := range holds {
				all.Go(func() { acquire(b, l, b.Context(), fmt.Sprint(b.Name(), i)) })
			}
			all.Wait()
			renewals.Store(0)
			var took []time.Duration
			for b.Loop() {
				if name == "at once" && len(took)%200 == 0 {
					l.mu.Lock()
					for _, n := range l.locks {
						if n.state == held {
							n.due = l.now()
							l.scheduleLocked(n)
						}
					}
					l.unlock()
				}
				time.Sleep(time.Millisecond)
				begun := time.Now()
				_, lease := acquire(b, l, b.Context(), b.Name())
				release(b, lease)
				took = append(took, time.Since(begun))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "max-ms")
			b.ReportMetric(float64(renewals.Load()), "renewals")
		})
	}
}
