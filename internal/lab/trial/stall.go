package trial

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// stallWatch measures for how long the machine let nothing happen. In such a gap a lease can end,
// or a chance to enter can pass, without a fault. It is safe for concurrent use.
type stallWatch struct {
	gap atomic.Int64 // the longest, in nanoseconds
}

// watch measures until ctx ends.
func (s *stallWatch) watch(ctx context.Context) {
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
		if gap := int64(now.Sub(last) - every); gap > s.gap.Load() {
			s.gap.Store(gap)
		}
		last = now
	}
}

// maybeStalled says why a shop may have stalled, where no trace says how long its sales were inside:
// an ordinary sale took longer than a lease from sent to answered.
func (a *attack) maybeStalled() string {
	if len(a.traces) > 0 {
		return ""
	}
	for _, h := range a.customers.hits {
		if !h.injection.HasFault() && h.Status != 0 && h.Latency > a.o.Lease {
			return fmt.Sprintf("an ordinary request took %s, longer than a lease, and no trace says where", h.Latency.Round(time.Millisecond))
		}
	}
	return ""
}

// stalled describes the longest gap if it was long enough to change the verdict on a cell.
func (s *stallWatch) stalled(lease time.Duration) string {
	gap := time.Duration(s.gap.Load())
	if gap < lease/4 {
		return ""
	}
	return fmt.Sprintf("nothing happened for %s, with a lease of %s", gap.Round(time.Millisecond), lease)
}
