package lock

import (
	"context"
	"sync"
)

var mutexLock = Lock{
	Name:  "mutex",
	Doc:   "sync.Mutex: the upper bound, because it sends no requests; all goroutines are in one process",
	Local: true,
	Open:  func(Config) (Locker, error) { return &mutexes{}, nil },
}

// mutexes uses one mutex for all keys, because a measurement uses only one key.
type mutexes struct{ sync.Mutex }

func (m *mutexes) Lock(ctx context.Context, _ string) (Hold, error) {
	m.Mutex.Lock()
	return mutexHold{ctx, m}, nil
}

func (m *mutexes) Close() error { return nil }

type mutexHold struct {
	ctx context.Context
	m   *mutexes
}

func (h mutexHold) Context() context.Context { return h.ctx }

func (h mutexHold) Unlock() error {
	h.m.Mutex.Unlock()
	return nil
}
