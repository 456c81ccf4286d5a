package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy"
)

// await watches, in the background, for the moment at which the request reaches its fault's point.
// Then it intervenes in the testbed as the plan says, and relieves it when the request is done.
func (a *attack) await(ctx context.Context, h *hit) {
	trace := a.bench.Shops[h.shop].Trace
	if trace == "" {
		return
	}
	a.background.Go(func() {
		if !reached(ctx, trace, h.id, h.injection.Fault.Point, h.done) {
			a.customers.missed(h.injection)
			return
		}
		a.progress.faultReached()
		if a.plan.Intervene != nil {
			a.intervene(ctx, h)
		}
	})
}

func (a *attack) intervene(ctx context.Context, h *hit) {
	intervened := a.progress.intervene()
	at := h.shop
	if a.plan.Relieve == nil {
		at = wholeTestbed
	}
	over := a.record.intervention(a.plan.Intervention, at)
	reached := scenario.Reached{Shop: h.shop, Keys: a.keys()}
	if err := a.plan.Intervene(ctx, a.bench.Testbed, reached); err != nil && ctx.Err() == nil {
		a.problems.add(fmt.Errorf("intervene: %w", err))
	}
	intervened()
	select {
	case <-h.done:
		a.record.cameLate(a.plan.Intervention)
	default:
	}
	if a.plan.Relieve != nil {
		select {
		case <-h.done:
		case <-ctx.Done():
		}
		if err := a.plan.Relieve(ctx, a.bench.Testbed, reached); err != nil && ctx.Err() == nil {
			a.problems.add(fmt.Errorf("relieve: %w", err))
		}
	}
	over()
}

// keys are where Redis has kept the item's lock or counter so far, and the rare keys that an eviction
// takes before them.
func (a *attack) keys() []string {
	return append(a.record.keys(), strategy.KeysOf(a.item.State.RareKeys, a.item.ItemID)...)
}

// reached reports whether the request has reached the point, as its shop's trace says. It waits for
// that until the request is done.
func reached(ctx context.Context, file, request string, p sale.Point, done <-chan struct{}) bool {
	found := traceFile{path: file}.follow(ctx, done, 2*time.Millisecond, func(line []byte) bool { return isAt(line, request, p) })
	return found && ctx.Err() == nil
}

func isAt(line []byte, request string, p sale.Point) bool {
	if !bytes.Contains(line, []byte(request)) {
		return false
	}
	var e labmode.Event
	return json.Unmarshal(line, &e) == nil && e.Request == request && e.Point == p
}

// restartTheDead restarts shops that a fault has killed, as an orchestrator would.
func (a *attack) restartTheDead(ctx context.Context) {
	if a.bench.Testbed == nil {
		return
	}
	for i, shop := range a.bench.Testbed.Shops {
		a.background.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-shop.Exited():
				}
				restarted := a.progress.restart()
				over := a.record.intervention(explain.Dead, i)
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
	if a.bench.Testbed == nil {
		return nil
	}
	if a.plan.Restore != nil {
		if err := a.plan.Restore(ctx, a.bench.Testbed); err != nil {
			return err
		}
	}
	return a.bench.Testbed.Repair(ctx)
}
