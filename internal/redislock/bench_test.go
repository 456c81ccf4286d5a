package redislock

import "testing"

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
