package trial

import (
	"context"
	"fmt"

	"stocklock/internal/lab/explain"
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
