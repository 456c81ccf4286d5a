package exercise

import (
	"context"
	"errors"
	"fmt"

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/declared"
)

// owners has customers buy one after the other at shops that have just started, and wants another value in the lock
// of each. A counter of the process, or a fixed seed, is the same in processes that have made as many tries. The shops of the
// searches differ in that, and so do those of a run that is made again: others are started for that.
func (c *Checker) owners(ctx context.Context, a Answer, done func(words.Text)) (v Verdict, err error) {
	if !a.Exercise.GuardAlone || !a.Exercise.Properties.Has.Includes(declared.OwnerChecked) {
		return Verdict{}, nil
	}
	err = explore.ErrStop
	for try := 0; errors.Is(err, explore.ErrStop) && try < ownerTries; try++ {
		v, err = c.newOwners(ctx, a)
	}
	switch {
	case errors.Is(err, explore.ErrStop):
		err = errors.New("owners: nothing is known, check again on a quieter machine")
	case err == nil && v.Cause == "":
		done(words.Of("exercise.owners"))
	}
	return v, err
}

const ownerTries = 3

// newOwners starts shops, and compares the owners of the first run there. It returns [explore.ErrStop] where that has failed.
func (c *Checker) newOwners(ctx context.Context, a Answer) (v Verdict, err error) {
	shops, err := step.OpenShops(ctx, c.shop, step.Options{Lease: leases[len(leases)-1], RedisServer: c.RedisServer})
	if err != nil {
		return Verdict{}, err
	}
	defer func() { err = errors.Join(err, shops.Close()) }()
	on, runs := player{Shops: shops, exercise: a.Exercise, silence: c.silence}, 0
	record, err := on.Play(ctx, step.Plan{Strategy: a.Name, Customers: 3, Observe: true, RehearsedAlone: true}, func() explore.Chooser {
		if runs++; runs > 1 {
			return func(explore.Next) (int, error) { return 0, explore.ErrStop }
		}
		return explore.Follow(nil)
	})
	switch {
	case errors.Is(err, explore.ErrStop):
		return Verdict{}, err
	case err != nil:
		return failed(ctx, on, err)
	}
	if value, two := sharedOwner(record); two != nil {
		v = Verdict{Cause: verdict.SameOwner, Said: words.Of("exercise.same-owner", "first", two[0].String(), "second", two[1].String(), "value", fmt.Sprintf("%q", value))}
	}
	return v, nil
}

// sharedOwner is a value with which two customers have taken the lock, each when it was free.
func sharedOwner(r schedule.Record) (value string, two []schedule.Customer) {
	takers := map[string]schedule.Customer{}
	before := schedule.State{TTLMS: -2} // free
	for _, e := range r.Entries {
		if e.State == nil {
			continue
		}
		if taker := e.Choice.Customer; taker != 0 && e.State.Locked() && !before.Locked() {
			if other, taken := takers[e.State.Lock]; taken && other != taker {
				return e.State.Lock, []schedule.Customer{other, taker}
			}
			takers[e.State.Lock] = taker
		}
		before = *e.State
	}
	return "", nil
}
