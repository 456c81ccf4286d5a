package lock

import (
	"context"
	"sync"
)

var mutexLock = Lock{
	Name:  "mutex",
	Doc:   "sync.Mutex: the limit, as it costs nothing and asks nobody; all goroutines are in one process",
	Local: true,
	Open:  func(Config) (Locker, error) { return &mutexes{}, nil },
}

// mutexes has one mutex for all keys: there is only one.
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
