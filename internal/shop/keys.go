package shop

import (
	"context"
	"time"
)

// Expired idempotency keys are cleared at this interval, in batches, with a pause between two
// batches.
const (
	keyInterval = time.Minute
	keyBatch    = 1000
	keyPause    = 50 * time.Millisecond
)

// clearKeys clears the idempotency keys that are older than KeyTTL, until ctx ends. A repeat under
// a cleared key sells again.
func (s *Shop) clearKeys(ctx context.Context) {
	if s.KeyTTL == 0 {
		return
	}
	cleared := time.Unix(0, 0) // all before it are
	for ctx.Err() == nil {
		pause := keyInterval
		if s.health.started() {
			before := time.Now().UTC().Add(-s.KeyTTL)
			n, err := s.store.ClearKeys(ctx, cleared, before, keyBatch)
			switch {
			case err != nil && ctx.Err() == nil:
				s.Log.Warn("idempotency keys were not cleared", "error", err)
				s.advise(ctx, err)
			case err == nil && n == keyBatch:
				pause = keyPause
			case err == nil:
				cleared = before
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}
