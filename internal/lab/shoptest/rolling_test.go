package shoptest

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stocklock/internal/lab/rig"
)

// TestARollingRestartFailsNoRequest restarts three shops in turn under load, behind
// a balancer that looks at readiness as any does: often, but not always.
func TestARollingRestartFailsNoRequest(t *testing.T) {
	l := openShops(t, 3, "SHOP_DRAIN_DELAY", "1s")
	item := l.item(1 << 40)
	ctx, stop := context.WithCancel(t.Context())
	b := &balancer{shops: l.shops, ready: make([]atomic.Bool, len(l.shops))}
	var running sync.WaitGroup
	for i := range l.shops {
		b.ready[i].Store(true)
		running.Go(func() { b.watch(ctx, i) })
	}
	var sold, other atomic.Int64
	for client := range 4 {
		running.Go(func() {
			for n := client; ctx.Err() == nil; n++ {
				shop := b.next(n)
				switch got := buy(t.Context(), shop, item, ""); got {
				case http.StatusCreated:
					sold.Add(1)
				case http.StatusServiceUnavailable:
					other.Add(1)
				default:
					t.Errorf("%s answered %d", shop.Process.Name, got)
				}
			}
		})
	}
	for i, shop := range l.shops {
		if err := shop.Stop(); err != nil {
			t.Error(err)
		}
		if err := shop.Restart(t.Context()); err != nil {
			t.Error(err)
		}
		for !b.ready[i].Load() {
			time.Sleep(10 * time.Millisecond)
		}
	}
	stop()
	running.Wait()
	if gone := 1<<40 - l.left(item); gone != sold.Load() || gone < 20 {
		t.Errorf("%d units are gone for %d answers with 201", gone, sold.Load())
	}
	t.Logf("%d sold, %d answered with 503", sold.Load(), other.Load())
}

type balancer struct {
	shops []*rig.Shop
	ready []atomic.Bool
}

func (b *balancer) watch(ctx context.Context, i int) {
	for ctx.Err() == nil {
		b.ready[i].Store(rig.Ready(ctx, b.shops[i].URL) == nil)
		time.Sleep(50 * time.Millisecond)
	}
}

// next is the n-th shop, or the first after it that is ready.
func (b *balancer) next(n int) *rig.Shop {
	for i := range b.shops {
		if at := (n + i) % len(b.shops); b.ready[at].Load() {
			return b.shops[at]
		}
	}
	return b.shops[n%len(b.shops)]
}
