package lock

import "context"

var noLock = Lock{
	Name: "none",
	Doc:  "no lock at all: what the sections are without one, and proof that lost updates are seen",
	Open: func(Config) (Locker, error) { return noLocker{}, nil },
}

type noLocker struct{}

func (noLocker) Lock(ctx context.Context, _ string) (Hold, error) { return noHold{ctx}, nil }
func (noLocker) Close() error                                     { return nil }

type noHold struct{ ctx context.Context }

func (h noHold) Context() context.Context { return h.ctx }
func (h noHold) Unlock() error            { return nil }
