package exercise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/testserver"
)

// Verdict is what a check found.
type Verdict struct {
	Solved bool
	Cause  verdict.Cause // why not
	Said   words.Text    // the same in a sentence
	Story  []words.Text  // what the customers of a cell met
	// Record is the shortest schedule that fails, nil where no schedule decided. OneShop says that its
	// customers bought at one shop.
	Record  *schedule.Record
	OneShop bool
}

// leases are those of the locks in explorations. On a machine that does not keep up with one, the next
// decides.
var leases = []time.Duration{300 * time.Millisecond, time.Second, 2 * time.Second}

// Checker checks answers that one shop program has. Its servers start when the first check needs
// them. One goroutine at a time may call Check.
type Checker struct {
	// Progress is called with the number of schedules that were run, and of those that are known to
	// be left. It may be nil.
	Progress func(step words.Text, done, left int)
	// RedisServer is the program that is started as Redis, empty for the one of the machine.
	RedisServer string

	background context.Context   // of the servers, which outlast a check
	home       *testserver.Group // has the program
	shop       *catalog.Catalog
	broken     Verdict // of a program that tells no strategies
	ownSlots   int     // of each stage, 0 for as many as is best
	silence    time.Duration
	market     *market // nil until a crowd was sent
	stages     map[time.Duration]*step.Shops
}

// Open makes a checker of a program that [Build] has built. It can check as long as ctx lasts. The
// caller closes it.
func Open(ctx context.Context, program string) (*Checker, error) {
	c := &Checker{background: ctx, silence: maxSilence, stages: map[time.Duration]*step.Shops{}}
	return c, c.open(ctx, program)
}

// open copies the program, which a later build changes while shops are started. To ask it for its strategies
// runs what the pupil's package does when it is loaded.
func (c *Checker) open(ctx context.Context, program string) (err error) {
	if c.home, err = testserver.New(); err != nil {
		return err
	}
	own := filepath.Join(c.home.Dir(), "shop")
	if os.Link(program, own) != nil { // to another file system
		if err := c.home.Run(exec.CommandContext(ctx, "cp", program, own)); err != nil {
			return errors.Join(fmt.Errorf("copy %s: %w", program, err), c.Close())
		}
	}
	patience := 3 * c.silence // a silence counts when it was seen more than once
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c.shop, err = catalog.Open(asking, own)
	exited, broken := errors.AsType[*exec.ExitError](err)
	switch {
	case broken:
		said := string(exited.Stderr)
		c.broken = Verdict{Cause: verdict.Crash, Said: words.Of("exercise.not-loaded", "said", cmp.Or(rig.Panicked(said), strings.TrimSpace(said)))}
	case asking.Err() != nil && ctx.Err() == nil:
		c.broken = Verdict{Cause: verdict.TooSilent, Said: words.Of("exercise.silent", "time", patience.String())}
	case err != nil:
		return errors.Join(err, c.Close())
	}
	return nil
}

// Close ends what was started.
func (c *Checker) Close() error {
	var errs []error
	for _, s := range c.stages {
		errs = append(errs, s.Close())
	}
	if c.market != nil {
		errs = append(errs, c.market.Close())
	}
	return errors.Join(append(errs, c.home.Close())...) // the catalog has built nothing
}

// player is the one with this lease. Its stage is opened for the first that needs it.
func (c *Checker) player(e Exercise, lease time.Duration, oneShop bool) (player, error) {
	if c.stages[lease] == nil {
		s, err := step.OpenShops(c.background, c.shop, step.Options{Lease: lease, OwnSlots: c.ownSlots, RedisServer: c.RedisServer})
		if err != nil {
			return player{}, err
		}
		c.stages[lease] = s
	}
	return player{c.stages[lease], e, oneShop, c.silence}, nil
}

// Check has explorations decide, in the order of the exercise, then a crowd, and then cells. It ends with the first
// that fails. The crowd comes before the cells: it shows how code answers that sells nothing, where a cell would only
// say that no customer was met. Done is called for each step that held. An error means that nothing is known of the code.
func (c *Checker) Check(ctx context.Context, a Answer, done func(words.Text)) (Verdict, error) {
	if c.broken.Cause != "" {
		return c.broken, nil
	}
	for _, s := range a.Exercise.Searches {
		if v, err := c.search(ctx, a, s, done); err != nil || v.Cause != "" {
			return v, err
		}
	}
	for _, decide := range []func(context.Context, Answer, func(words.Text)) (Verdict, error){c.owners, c.crowd, c.baskets} {
		if v, err := decide(ctx, a, done); err != nil || v.Cause != "" {
			return v, err
		}
	}
	return Verdict{Solved: true}, nil
}

// search explores. Where the machine was too slow for the lease, it explores again with a longer one.
func (c *Checker) search(ctx context.Context, a Answer, s Search, done func(words.Text)) (Verdict, error) {
	var unknown string
	for i, lease := range leases {
		on, err := c.player(a.Exercise, lease, s.OneShop)
		if err != nil {
			return Verdict{}, err
		}
		found, err := c.found(ctx, a, s, on)
		if errors.Is(err, explore.ErrGivenUp) {
			found, err = explore.Found{GivenUp: []string{err.Error()}}, nil
		}
		if err != nil {
			return failed(ctx, on, err)
		}
		for _, record := range found.Repeated() {
			longer := leases[min(i+1, len(leases)-1)]
			switch also, err := c.failsWith(ctx, a, record, longer, s.OneShop); {
			case err != nil:
				return Verdict{}, err
			case also:
				return on.verdict(record), nil // whose shops have said more in their logs
			}
			unknown = fmt.Sprintf("%s fails with a lease of %s, and holds with one of %s: %s", record.Outcome.Cause, lease, longer, record.Schedule)
		}
		switch {
		case len(found.Repeated()) > 0:
		case len(found.Once) > 0:
			unknown = found.Once[0].String()
		case !found.Unknown().IsZero():
			unknown = found.Unknown().String()
		default:
			held := s.text()
			if s.Play == "" {
				held = words.Of("exercise.searched", "search", held, "n", found.Runs)
			}
			done(held)
			return Verdict{}, nil
		}
		if i > 0 {
			continue
		}
		// Before the slow search. Where it holds, the last step says so.
		if v, err := c.crowd(ctx, a, func(words.Text) {}); err != nil || v.Cause != "" {
			return v, err
		}
	}
	return Verdict{}, fmt.Errorf("%s: nothing is known, check again on a quieter machine: %s", s.text(), unknown)
}

// found is what a search has found, with what the exercise does not ask about left out.
func (c *Checker) found(ctx context.Context, a Answer, s Search, on player) (explore.Found, error) {
	if s.Play != "" {
		record, err := on.playText(ctx, a.Name, s.Play)
		found := explore.Found{Runs: 1}
		if record.Outcome.Bad() {
			found.Shortest = []schedule.Record{record}
		}
		return found, err
	}
	plan := a.plan(s)
	play := func(ctx context.Context, choose func() explore.Chooser) (schedule.Record, error) {
		return on.Play(ctx, plan, choose)
	}
	found, err := explore.Explore(ctx, play, explore.Search{Switches: s.Switches, Slots: on.Slots(plan.Events)}, func(done, left int) {
		if c.Progress != nil {
			c.Progress(s.text(), done, left)
		}
	})
	if err == nil && s.Event != "" && found.Met == 0 && len(found.Shortest) == 0 && found.Unknown().IsZero() {
		return found, failure{verdict.NotSeen, words.Of("exercise.not-met", "event", s.Event)}
	}
	if err == nil {
		found.Shortest = slices.DeleteFunc(found.Shortest, func(r schedule.Record) bool { return slices.Contains(s.Allowed, r.Outcome.Cause) })
		err = explore.Confirm(ctx, on.PlaySchedule, &found)
	}
	return found, err
}

// failsWith says whether a schedule that failed fails with a lease that a busy machine keeps up with, for the same cause.
// A strategy without a lease needs no second opinion.
func (c *Checker) failsWith(ctx context.Context, a Answer, found schedule.Record, lease time.Duration, oneShop bool) (bool, error) {
	if !a.Exercise.Properties.Has.Includes(declared.AtomicLease) {
		return true, nil
	}
	on, err := c.player(a.Exercise, lease, oneShop)
	if err != nil {
		return false, err
	}
	again, err := on.PlaySchedule(ctx, a.Name, found.Customers, found.Schedule)
	if errors.Is(err, explore.ErrCannot) || errors.Is(err, explore.ErrGivenUp) {
		return false, nil
	}
	return again.Outcome.Cause == found.Outcome.Cause, err
}

func (a Answer) plan(s Search) step.Plan {
	events := max(s.InARow, 1)
	if s.Twice {
		events = 2
	}
	p := step.Plan{
		Strategy: a.Name, Sales: schedule.Sales{OneShop: s.OneShop}, Customers: s.Customers, MaxEvents: events, InARow: !s.Twice, LocalClock: step.LocalClock(declared.Strategy{Properties: a.Exercise.Properties}),
	}
	if s.Event != "" {
		p.Events = []schedule.Event{s.Event}
	}
	return p
}

// failed tells what the code did from what the harness could not do.
func failed(ctx context.Context, on player, err error) (Verdict, error) {
	if f, ok := errors.AsType[failure](err); ok {
		return Verdict{Cause: f.cause, Said: f.said}, nil
	}
	unsold, first := errors.AsType[step.UnsoldError](err)
	if ctx.Err() != nil || !first {
		return Verdict{}, err
	}
	v := Verdict{Cause: verdict.NeverSold, Said: words.Of("exercise.never-sold", "answer", unsold.Answer)}
	if why := on.Panic(); why != "" {
		v.Cause, v.Said = verdict.Crash, words.Of("exercise.panic", "said", v.Said, "panic", why)
	}
	return v, nil
}
