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
// of each. A counter of the process, or a fixed seed, is the same in processes of the same age. The shops of the
// searches have had sales enough to differ.
func (c *Checker) owners(ctx context.Context, a Answer, done func(words.Text)) (v Verdict, err error) {
	if !a.Exercise.GuardAlone || !a.Exercise.Properties.Has.Includes(declared.OwnerChecked) {
		return Verdict{}, nil
	}
	shops, err := step.OpenShops(ctx, c.shop, step.Options{Lease: leases[len(leases)-1], RedisServer: c.RedisServer})
	if err != nil {
		return Verdict{}, err
	}
	defer func() { err = errors.Join(err, shops.Close()) }()
	on := player{Shops: shops, exercise: a.Exercise, silence: c.silence}
	record, err := on.Play(ctx, step.Plan{Strategy: a.Name, Customers: 3, Observe: true}, func() explore.Chooser { return explore.Follow(nil) })
	if err != nil {
		return failed(ctx, on, err)
	}
	if value, two := sharedOwner(record); two != nil {
		return Verdict{Cause: verdict.SameOwner, Said: words.Of("exercise.same-owner", "first", two[0].String(), "second", two[1].String(), "value", fmt.Sprintf("%q", value))}, nil
	}
	done(words.Of("exercise.owners"))
	return Verdict{}, nil
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
