package lock

import "context"

var noLock = Lock{
	Name: "none",
	Doc:  "no lock: shows the cost of the section alone, and that lost updates are detected",
	Open: func(Config) (Locker, error) { return noLocker{}, nil },
}

type noLocker struct{}

func (noLocker) Lock(ctx context.Context, _ string) (Hold, error) { return noHold{ctx}, nil }
func (noLocker) Close() error                                     { return nil }

type noHold struct{ ctx context.Context }

func (h noHold) Context() context.Context { return h.ctx }
func (h noHold) Unlock() error            { return nil }
