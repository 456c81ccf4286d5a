package ladder

import (
	"context"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var mutex = Declare(strategy.Strategy{
	Name:         "mutex",
	Doc:          "a mutex inside the process: right for one process, useless for two",
	WithoutRedis: true,
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return localMutex{held: make(chan struct{}, 1), wait: d.Wait}, strategy.ReadThenWrite
	},
}, declared.Strategy{
	Source:    "sync.Mutex, and the service that was scaled out later",
	Guard:     "a mutex of the process, bounded wait",
	Decrement: "read-then-write",
	Telling:   "contention",
	// The mutex has no lease and is in no Redis.
	Properties: declared.Properties{
		Has: declared.DurableAnswers | declared.Once | declared.Recovers | declared.OwnerChecked | declared.ClockFree,
		NotApplicable: declared.AtomicLease | declared.Renews | declared.AtomicRelease |
			declared.LossAware | declared.SurvivesDataLoss | declared.PauseProof,
	},
	WithOneProcess: declared.Exclusive,
})

// localMutex is one mutex for all keys. It is a channel, because a wait for a sync.Mutex has no
// bound.
type localMutex struct {
	held chan struct{}
	wait time.Duration
}

func (m localMutex) Do(ctx context.Context, _ string, fn func(context.Context, int64) error) error {
	patience := time.NewTimer(m.wait)
	defer patience.Stop()
	select {
	case m.held <- struct{}{}:
	default:
		sale.At(ctx, sale.Waiting)
		select {
		case m.held <- struct{}{}:
		case <-patience.C:
			return strategy.ErrBusy
		case <-ctx.Done():
			return context.Cause(ctx)
		}
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
