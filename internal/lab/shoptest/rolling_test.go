package shoptest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stocklock/internal/lab/rig"
)

// TestARollingRestartFailsNoRequest restarts three shops in turn behind a reverse proxy that probes
// readiness. To its interval the delay of the drain is as the default to that of a usual proxy.
func TestARollingRestartFailsNoRequest(t *testing.T) {
	const customers = 8
	l := openShops(t, 3, "SHOP_DRAIN_DELAY", (10 * probeInterval).String(), "SHOP_LAB", "")
	item := l.item(1 << 40)
	p := openProxy(t, l.shops...)
	var ordered, sold atomic.Int64
	var buying sync.WaitGroup
	restarting, restarted := context.WithCancel(t.Context())
	for range customers { // each waits for its answer: at a fixed rate the item's lock would not be free within SHOP_WAIT
		buying.Go(func() {
			for restarting.Err() == nil {
				ordered.Add(1)
				if got := buy(t.Context(), p.front, item, ""); got == http.StatusCreated {
					sold.Add(1)
				} else {
					t.Errorf("an order was answered with %d", got)
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
		for !p.ready[i].Load() {
			time.Sleep(probeInterval / 10)
		}
		before := sold.Load()
		for sold.Load() < before+10*customers { // this one sells, too, before the next one ends
			time.Sleep(probeInterval / 10)
		}
	}
	restarted()
	buying.Wait()
	if gone := 1<<40 - l.left(item); gone != sold.Load() || gone != ordered.Load() {
		t.Errorf("%d units are gone for %d answers with 201, of %d orders", gone, sold.Load(), ordered.Load())
	}
	t.Logf("%d sold while three shops were restarted", sold.Load())
}

// probeInterval is how often a proxy asks a shop whether it is ready.
const probeInterval = 200 * time.Millisecond

// proxy is a reverse proxy in front of shops. It sends requests to those that were ready when it
// asked last, in turn, and sends none a second time.
type proxy struct {
	front *rig.Shop // has the proxy's URL
	turn  atomic.Uint64
	shops []*rig.Shop
	ready []atomic.Bool
}

func openProxy(t *testing.T, shops ...*rig.Shop) *proxy {
	t.Helper()
	p := &proxy{shops: shops, ready: make([]atomic.Bool, len(shops))}
	targets := make([]*url.URL, len(shops))
	ctx, stop := context.WithCancel(context.Background())
	var probing sync.WaitGroup
	for i, shop := range shops {
		var err error
		if targets[i], err = url.Parse(shop.URL); err != nil {
			t.Fatal(err)
		}
		p.ready[i].Store(rig.Ready(ctx, shop.URL) == nil)
		probing.Go(func() {
			for ctx.Err() == nil {
				time.Sleep(probeInterval)
				p.ready[i].Store(rig.Ready(ctx, shop.URL) == nil)
			}
		})
	}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(targets[p.next()]) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			t.Logf("%s: the proxy got no answer: %v", time.Now().Format(time.TimeOnly), err)
			w.WriteHeader(http.StatusBadGateway)
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 100},
	})
	t.Cleanup(func() {
		stop()
		probing.Wait()
		server.Close()
	})
	p.front = &rig.Shop{URL: server.URL}
	return p
}

// next returns the number of the next shop, or of the first after it that is ready.
func (p *proxy) next() int {
	n := int(p.turn.Add(1) % uint64(len(p.shops)))
	for i := range p.shops {
		if at := (n + i) % len(p.shops); p.ready[at].Load() {
			return at
		}
	}
	return n
}
