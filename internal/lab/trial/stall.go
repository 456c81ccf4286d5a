package trial

import (
	"context"
	"fmt"
	"time"
)

// watchTheMachine measures for how long the machine lets nothing happen: a lease can end in such a gap, or a chance to
// enter pass by, with nobody at fault.
func (a *attack) watchTheMachine(ctx context.Context) {
	const every = 5 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		a.mu.Lock()
		a.gap = max(a.gap, now.Sub(last)-every)
		a.mu.Unlock()
		last = now
	}
}

// stall says whether the longest gap was long enough to change how a cell ends; it is empty when it was not.
func (a *attack) stall() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gap < a.o.Lease/4 {
		return ""
	}
	return fmt.Sprintf("nothing happened for %s, with a lease of %s", a.gap.Round(time.Millisecond), a.o.Lease)
}
