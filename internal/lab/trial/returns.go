package trial

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/seen"
)

// returns notes when shops that were given by address die and are ready again. The lab does not
// restart them. returns is safe for concurrent use.
type returns struct {
	ctx    context.Context
	attack *attack

	mu   sync.Mutex // guards the rest
	away map[int]bool
}

const (
	askReady = 20 * time.Millisecond
	// returnPatience is for how long nothing counts as stuck because a shop is away.
	returnPatience = 5 * time.Second
	// restartPatience is how long the next cell waits for a shop. Docker waits up to a minute
	// before it restarts what keeps dying.
	restartPatience = time.Minute
)

func newReturns(ctx context.Context, a *attack) *returns {
	return &returns{ctx: ctx, attack: a, away: map[int]bool{}}
}

// watch waits, in the background, for the return of a shop whose connection has broken.
func (r *returns) watch(h *Customer) {
	if r.attack.Testbed != nil || !broken(h.Answer) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.away[h.shop] {
		return
	}
	r.away[h.shop] = true
	r.attack.background.Go(func() {
		back := r.await(h.shop)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.away[h.shop] = !back // a shop that is not back in time is not waited for again
	})
}

// await reports whether the shop is back in time.
func (r *returns) await(shop int) bool {
	url := r.attack.Shops[shop].URL
	if rig.Ready(r.ctx, url) == nil {
		return true // only the connection broke
	}
	restarted := r.attack.progress.restart()
	over := r.attack.record.intervention(explain.Dead, shop)
	ctx, cancel := context.WithTimeout(r.ctx, returnPatience)
	defer cancel()
	back := untilReady(ctx, url)
	over()
	restarted()
	return back
}

// untilReady waits for a shop until ctx ends, and reports whether it is ready.
func untilReady(ctx context.Context, url string) bool {
	ready, _ := seen.Until(ctx, askReady, func() (bool, error) { return rig.Ready(ctx, url) == nil, nil })
	return ready
}

// broken reports whether the shop broke the connection, or could not be reached. A shop that is
// stopped does neither: its customers run out of time.
func broken(a load.Answer) bool {
	var late net.Error
	return a.Err != nil && !(errors.As(a.Err, &late) && late.Timeout())
}

// awaitShops waits for shops that were given by address, as long as a restart may take. Those that
// do not come back are found by the cell.
func (b Bench) awaitShops(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, restartPatience)
	defer cancel()
	for _, shop := range b.Shops {
		untilReady(ctx, shop.URL)
	}
}
