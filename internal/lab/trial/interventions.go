package trial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/seen"
	"stocklock/internal/strategy/declared"
)

// keys are where Redis has kept the item's lock or counter so far, and the rare keys that an eviction
// takes before them.
func (a *attack) keys() []string {
	return append(a.record.keys(), declared.KeysOf(a.item.State.RareKeys, a.item.ItemID)...)
}

// restartTheDead restarts shops that a fault has killed, as an orchestrator would.
func (a *attack) restartTheDead(ctx context.Context) {
	if a.Testbed == nil {
		return
	}
	for i, shop := range a.Testbed.Shops {
		a.background.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-shop.Exited():
				}
				restarted := a.progress.restart()
				over := a.record.intervention(explain.Dead, i)
				a.play.shopExited(i)
				err := shop.Restart(ctx)
				over()
				restarted()
				if err != nil {
					if ctx.Err() == nil {
						a.problems.add(fmt.Errorf("restart: %w", err))
					}
					return
				}
			}
		})
	}
}

// repair makes the testbed ready for the next cell.
func (a *attack) repair(ctx context.Context) error {
	if a.Testbed == nil {
		return nil
	}
	if restore := a.Scenario.Crowd.Restore; restore != nil {
		if err := restore(ctx, a.Testbed); err != nil {
			return err
		}
	}
	return a.Testbed.Repair(ctx)
}

const (
	askReady = 20 * time.Millisecond
	// returnPatience is for how long nothing counts as stuck because a shop is away.
	returnPatience = 5 * time.Second
	// restartPatience is how long the next cell waits for a shop. Docker waits up to a minute
	// before it restarts what keeps dying.
	restartPatience = time.Minute
)

// awaitReturn waits, in the background, for the return of a shop that was given by address and whose connection has
// broken. The lab does not restart those.
func (a *attack) awaitReturn(h *Customer) {
	if a.Testbed != nil || !broken(h.Answer) {
		return
	}
	if _, awaited := a.away.LoadOrStore(h.shop, true); awaited {
		return
	}
	a.background.Go(func() {
		if a.returns(h.shop) { // a shop that is not back in time is not waited for again
			a.away.Delete(h.shop)
		}
	})
}

// returns reports whether a shop is back in time.
func (a *attack) returns(shop int) bool {
	url := a.Shops[shop].URL
	if rig.Ready(a.ctx, url) == nil {
		return true // only the connection broke
	}
	restarted := a.progress.restart()
	over := a.record.intervention(explain.Dead, shop)
	ctx, cancel := context.WithTimeout(a.ctx, returnPatience)
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
	late, network := errors.AsType[net.Error](a.Err)
	return a.Err != nil && !(network && late.Timeout())
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
