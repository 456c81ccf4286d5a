package exercise

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

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
	pids := shops.PIDs()
	switch two := sharedOwner(record, func(value string) string { return anywhere(value, pids, time.Now()) }); {
	case two != nil:
		key := "exercise.same-owner"
		if two[0].value != two[1].value {
			key = "exercise.alike-owner"
		}
		v = Verdict{Cause: verdict.SameOwner, Said: words.Of(key, "first", two[0].by.String(), "second", two[1].by.String(),
			"value", fmt.Sprintf("%q", two[0].value), "other", fmt.Sprintf("%q", two[1].value))}
	case !slices.ContainsFunc(record.Entries, func(e schedule.Entry) bool { return e.State != nil && e.State.Locked() }):
		v = Verdict{Cause: verdict.NotSeen, Said: words.Of("exercise.no-lock-seen")}
	}
	return v, nil
}

// taken is a lock that a customer has taken when it was free.
type taken struct {
	by    schedule.Customer
	value string
}

// sharedOwner is the first value with which two customers have taken the lock, as alike has it.
func sharedOwner(r schedule.Record, alike func(value string) string) (two []taken) {
	takers := map[string]taken{}
	before := schedule.State{TTLMS: -2} // free
	for _, e := range r.Entries {
		if e.State == nil {
			continue
		}
		if taker := e.Choice.Customer; taker != 0 && e.State.Locked() && !before.Locked() {
			this, value := taken{taker, e.State.Lock}, alike(e.State.Lock)
			if other := takers[value]; other.by != 0 && other.by != taker {
				return []taken{other, this}
			}
			takers[value] = this
		}
		before = *e.State
	}
	return nil
}

var number = regexp.MustCompile(`\d+`)

// anywhere is a value without what can be the same on two machines: the number of its process, as two containers
// have it, and the time, in s, ms or µs. A value with a name or an address of the machine is another one there.
func anywhere(value string, pids []int, now time.Time) string {
	if slices.ContainsFunc(namesOfMachine(), func(name string) bool { return name != "" && strings.Contains(value, name) }) {
		return value
	}
	return number.ReplaceAllStringFunc(value, func(digits string) string {
		n, _ := strconv.ParseInt(digits, 10, 64)
		for _, unit := range []int64{1, 1e3, 1e6} {
			if ago := now.Unix() - n/unit; ago > -3600 && ago < 3600 {
				return "now"
			}
		}
		if slices.Contains(pids, int(n)) {
			return "pid"
		}
		return digits
	})
}

func namesOfMachine() []string {
	host, _ := os.Hostname() // empty where there is none
	host, _, _ = strings.Cut(host, ".")
	names := []string{host}
	interfaces, _ := net.Interfaces()
	for _, i := range interfaces {
		names = append(names, i.HardwareAddr.String())
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			if of, ok := a.(*net.IPNet); ok && !of.IP.IsLoopback() {
				names = append(names, of.IP.String())
			}
		}
	}
	return names
}
