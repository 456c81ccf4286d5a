package ladder

import (
	"context"
	"stocklock/internal/strategy"
	"sync"
)

// Workers is the guard that lets every sale in, with goroutines beside the sales. They run until
// Close.
type Workers struct {
	strategy.Unguarded
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// NewWorkers returns a guard without goroutines.
func NewWorkers() *Workers {
	w := &Workers{}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// Go starts a goroutine. Close cancels its context and waits for it.
func (w *Workers) Go(work func(ctx context.Context)) { w.wg.Go(func() { work(w.ctx) }) }

// Close ends the goroutines. It waits for them, whatever ctx does.
func (w *Workers) Close(context.Context) error {
	w.cancel()
	w.wg.Wait()
	return nil
}
