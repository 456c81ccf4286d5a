package strategy

import (
	"context"
	"time"

	"stocklock/internal/sale"
)

var mutex = Strategy{
	Name:      "mutex",
	Doc:       "a mutex inside the process: right for one process, useless for two",
	Source:    "sync.Mutex, and the service that was scaled out later",
	Guard:     "a mutex of the process, bounded wait",
	Decrement: "read-then-write",
	Telling:   "contention",
	Properties: Recovers | AtomicLease | Renews | OwnerChecked | AtomicRelease | ClockFree | LossAware |
		SurvivesFailover | PauseProof,
	WithOneProcess: Exclusive,
	build: func(d Deps) (guard, decrement) {
		return localMutex{held: make(chan struct{}, 1), wait: d.Wait}, readThenWrite
	},
}

// localMutex is one mutex for all keys. It is a channel because a sync.Mutex
// cannot be waited for with a bound.
type localMutex struct {
	held chan struct{}
	wait time.Duration
}

func (m localMutex) Do(ctx context.Context, _ string, fn func(context.Context, int64) error) error {
	patience := time.NewTimer(m.wait)
	defer patience.Stop()
	select {
	case m.held <- struct{}{}:
	case <-patience.C:
		return ErrBusy
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	sale.At(ctx, sale.Acquiring)
	sale.At(ctx, sale.Acquired)
	defer func() {
		sale.At(ctx, sale.Releasing)
		<-m.held
		sale.At(ctx, sale.Released)
	}()
	return fn(ctx, 0)
}
