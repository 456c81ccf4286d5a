package strategy

import "context"

var none = Strategy{
	Name:      "none",
	Doc:       "no lock at all: read the stock, compute, write it back",
	Source:    "every first version; the lost update (P4) of Berenson et al., 1995",
	Guard:     "nothing",
	Decrement: "read-then-write",
	Telling:   "contention",
	Properties: Recovers | AtomicLease | Renews | OwnerChecked | AtomicRelease | Reentrant | ClockFree | LossAware |
		SurvivesFailover | PauseProof,
	build: func(Deps) (guard, decrement) { return unguarded{}, readThenWrite },
}

// unguarded lets everybody in.
type unguarded struct{}

func (unguarded) Do(ctx context.Context, _ string, fn func(context.Context, int64) error) error {
	return fn(ctx, 0)
}
