package basket

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

var errNotSeen = errors.New("what the play waits for was never seen")

// see waits for something and tells it.
func (c *cell) see(ctx context.Context, done func() bool, what string) error {
	if !c.await(ctx, done) {
		return fmt.Errorf("%w: %s", errNotSeen, what)
	}
	c.tell("%s", what)
	return nil
}

// concluded waits for the answers of customers and tells them.
func (c *cell) concluded(ctx context.Context, all ...*customer) error {
	for _, of := range all {
		if !c.await(ctx, of.answered) {
			return fmt.Errorf("%w: the answer to %s", errNotSeen, of.name)
		}
		c.tell("%s: %s", of.name, strings.ReplaceAll(string(of.outcome()), "_", " "))
	}
	return nil
}

// arrived reports whether a sale is held at its point, was answered before it, or is kept out.
func (c *cell) arrived(ctx context.Context, of *customer) func() bool {
	return func() bool { return c.reached(of) || of.answered() || c.keptOut(ctx, of) }
}

// met returns an error where a sale was to be held and was sold without coming to its point: nobody has met it.
func (c *cell) met(all ...*customer) error {
	for _, of := range all {
		if of.outcome() == load.Sold && !c.reached(of) {
			return fmt.Errorf("%w: %s was answered with %s", errNotSeen, of.name, of.outcome())
		}
	}
	return nil
}

// crossed has two baskets with the same items in opposite orders meet where each has its first.
func crossed(ctx context.Context, c *cell) error {
	if c.of.Passes(sale.Acquired) {
		return crossedAtLocks(ctx, c)
	}
	a := c.order(ctx, &customer{name: "A", lines: []int{0, 1}}, sale.Taken, labmode.Hold)
	if err := c.see(ctx, c.arrived(ctx, a), "A wants 1, 2 and has what it gets first"); err != nil {
		return err
	}
	b := c.order(ctx, &customer{name: "B", shop: 1, lines: []int{1, 0}}, sale.Taken, labmode.Hold)
	if err := c.see(ctx, c.arrived(ctx, b), "B wants 2, 1 and has what it gets first, or waits"); err != nil {
		return err
	}
	c.release(ctx, a)
	if !c.await(ctx, func() bool { return c.reached(b) || b.answered() }) {
		return fmt.Errorf("%w: B has what it gets first", errNotSeen)
	}
	c.release(ctx, b)
	if err := c.concluded(ctx, a, b); err != nil {
		return err
	}
	return c.met(a, b)
}

// crossedAtLocks has C hold the lock of item 2 until A waits for it, with the lock of item 1 if it asks for
// that, too. A is held there when C releases it, so that B comes first: also where a basket asks for all locks
// at once.
func crossedAtLocks(ctx context.Context, c *cell) error {
	cc := c.order(ctx, &customer{name: "C", shop: 2, lines: []int{1}}, sale.Acquired, labmode.Hold)
	if err := c.see(ctx, func() bool { return c.reached(cc) }, "C has the lock of 2"); err != nil {
		return err
	}
	a := c.order(ctx, &customer{name: "A", lines: []int{0, 1}}, sale.Waiting, labmode.Hold)
	if err := c.see(ctx, func() bool { return a.answered() || c.reached(a) }, "A wants 1, 2, has the first that is free, and waits"); err != nil {
		return err
	}
	c.release(ctx, cc)
	if err := c.concluded(ctx, cc); err != nil {
		return err
	}
	b := c.order(ctx, &customer{name: "B", shop: 1, lines: []int{1, 0}, hesitant: true}, "", "")
	if err := c.see(ctx, func() bool { return b.answered() || c.passed(b, sale.Waiting) }, "B wants 2, 1, has the first that is free, and waits"); err != nil {
		return err
	}
	c.release(ctx, a)
	if err := c.concluded(ctx, a, b); err != nil {
		return err
	}
	return c.met(a)
}

// The strategies of a B who goes by the items' ids: with the reference lock of each item, and with their rows.
const (
	byIDsInRedis = "fenced"
	byIDsInRows  = "conditional"
)

// meet has A and B meet with the same items in opposite orders, B perhaps by another way. A is held when it
// has its first lock, or its first units where it has no lock in Redis.
func meet(ctx context.Context, c *cell, byIDs bool) error {
	strategy, has := byIDsInRedis, "lock"
	a := c.order(ctx, &customer{name: "A", lines: []int{0, 1}}, sale.Acquired, labmode.Hold)
	if !c.await(ctx, func() bool { return c.reached(a) || a.answered() }) {
		return fmt.Errorf("%w: A has its first lock, or has bought", errNotSeen)
	}
	if !c.reached(a) {
		a.name, strategy, has = "a customer before A", byIDsInRows, "units"
		a = c.order(ctx, &customer{name: "A", lines: []int{0, 1}}, sale.Taken, labmode.Hold)
	}
	if err := c.see(ctx, c.arrived(ctx, a), "A wants 1, 2 and has its first "+has); err != nil {
		return err
	}
	if !byIDs {
		strategy = ""
	}
	b := c.order(ctx, &customer{name: "B", shop: 1, lines: []int{1, 0}, by: strategy, hesitant: true}, "", "")
	wants := "B wants 2, 1"
	if byIDs {
		wants = "B buys both by " + strategy + ", which takes 1 first"
	}
	if err := c.see(ctx, func() bool { return b.answered() || c.keptOut(ctx, b) }, wants+", and waits or is answered"); err != nil {
		return err
	}
	c.release(ctx, a)
	if err := c.concluded(ctx, a, b); err != nil {
		return err
	}
	return c.met(a)
}

func (c *cell) shop(of *customer) *rig.TestbedShop { return c.bench.Testbed.Shops[of.shop] }

func sameItemTwice(ctx context.Context, c *cell) error {
	return c.concluded(ctx, c.order(ctx, &customer{name: "A", lines: []int{0, 0}}, "", ""))
}

// oneSoldOut has B want item 1 while A has it for the moment, and is going to be refused item 2. Where A is
// refused before it takes units, B comes while A has a lock or has read. Some ways refuse by one command.
func oneSoldOut(ctx context.Context, c *cell) error {
	var a *customer
	for _, at := range []sale.Point{sale.Taken, sale.Acquired, sale.Read} {
		if !c.of.Passes(at) && at != sale.Taken {
			continue
		}
		a = c.order(ctx, &customer{name: "A", lines: []int{0, 1}}, at, labmode.Hold)
		if !c.await(ctx, c.arrived(ctx, a)) {
			return fmt.Errorf("%w: A is %s, or refused", errNotSeen, at)
		}
		if c.reached(a) {
			c.tell("A wants 1, 2 and %s", map[sale.Point]string{sale.Taken: "has 1", sale.Acquired: "has its first lock", sale.Read: "has read"}[at])
			break
		}
		c.tell("A wants 1, 2 and is refused at once")
	}
	b := c.order(ctx, &customer{name: "B", shop: 1, lines: []int{0}}, "", "")
	if err := c.see(ctx, func() bool { return b.answered() || c.keptOut(ctx, b) }, "B wants 1 and is answered, or waits"); err != nil {
		return err
	}
	c.release(ctx, a)
	return c.concluded(ctx, a, b)
}

func deathBetweenLines(ctx context.Context, c *cell) error { return death(ctx, c, sale.Taken) }

func deathBetweenLocks(ctx context.Context, c *cell) error { return death(ctx, c, sale.Acquired) }

// death kills A's shop at a point. B wants the same, and comes again until it has it, nothing that can
// end keeps it out any more, or what keeps it out has no end.
func death(ctx context.Context, c *cell, at sale.Point) error {
	a := c.order(ctx, &customer{name: "A", lines: []int{0, 1}}, at, labmode.Kill)
	exited := func() bool { return !c.shop(a).Alive() }
	if err := c.see(ctx, func() bool { return exited() || a.answered() && a.outcome() != load.Unknown }, "A wants 1, 2, and its shop dies on the way"); err != nil {
		return err
	}
	if !exited() {
		return fmt.Errorf("%w: A was answered with %s", errNotSeen, a.outcome())
	}
	b := c.order(ctx, &customer{name: "B", shop: 1, lines: []int{0, 1}, hesitant: true}, "", "")
	var before load.Outcome
	for {
		if !c.await(ctx, b.answered) {
			return fmt.Errorf("%w: B is sold both, or refused for good; its last answer is %q", errNotSeen, before)
		}
		before = b.outcome()
		if before == load.Sold {
			return c.concluded(ctx, b)
		}
		endless, ends, err := c.locks(ctx)
		switch {
		case err != nil:
			return err
		case before == load.SoldOut && !ends:
			return c.concluded(ctx, b)
		case before == load.Busy && endless != "":
			c.stuckAt = endless
			c.tell("the lock %s has no end", endless)
			return c.concluded(ctx, b)
		}
		c.send(ctx, b, "", "")
	}
}

// locks returns a key of a lock that never ends, and whether there is one that does. Counters are no locks,
// and a shop that has just started leaves a key of its own: probeKey of package shop.
func (c *cell) locks(ctx context.Context) (endless string, ends bool, err error) {
	keys, err := c.redis.Do(ctx, "KEYS", "*stock*").Slice()
	if err != nil {
		return "", false, err
	}
	for _, each := range keys {
		key := each.(string)
		if !c.names(key) && !slices.Contains(c.of.State.Locks, key) {
			continue
		}
		left, err := c.redis.Do(ctx, "PTTL", key).Int64()
		switch {
		case err != nil:
			return "", false, err
		case left > 0:
			ends = true
		case left == -1 && !c.of.Counts():
			endless = key
		}
	}
	return endless, ends, nil
}

// firstLockEnds pauses A's shop between two locks until the first has ended. B takes that lock and reads
// before A goes on, and writes after it.
func firstLockEnds(ctx context.Context, c *cell) error {
	a := c.order(ctx, &customer{name: "A", lines: []int{0, 1}}, sale.Acquired, labmode.Hold)
	if err := c.see(ctx, func() bool { return c.reached(a) }, "A wants 1, 2, and has the lock of 1"); err != nil {
		return err
	}
	if err := c.shop(a).Pause(); err != nil {
		return err
	}
	b := c.order(ctx, &customer{name: "B", shop: 1, lines: []int{0}}, sale.Read, labmode.Hold)
	if err := c.see(ctx, func() bool { return c.reached(b) || b.answered() }, "A is paused, its lock ends, and B has it and has read"); err != nil {
		return err
	}
	if err := c.shop(a).Resume(); err != nil {
		return err
	}
	c.release(ctx, a)
	if err := c.concluded(ctx, a); err != nil {
		return err
	}
	c.release(ctx, b)
	return c.concluded(ctx, b)
}

// fiftyBesideOne has A want all items, and others who want one each come in between, for as long as A does
// not keep them out and is not answered.
func fiftyBesideOne(ctx context.Context, c *cell) error {
	if c.of.Passes(sale.Acquired) {
		return takeTurns(ctx, c)
	}
	return comeBetween(ctx, c)
}

// everything is all items in an order by the seed.
func (c *cell) everything() []int {
	all := make([]int, len(c.items))
	for i := range all {
		all[i] = i
	}
	rand.New(rand.NewPCG(c.seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// other sends the n-th of those who want one item. They come to the shops that A does not use.
func (c *cell) other(ctx context.Context, n, item int, at sale.Point, action labmode.Action) *customer {
	return c.order(ctx, &customer{name: fmt.Sprint("other", n), shop: 1 + n%(Shops-1), lines: []int{item}, beside: true}, at, action)
}

// takeTurns has others hold the first two items in turn, each until the next one has the other item. So
// never are all items free. A has tried again before the next one comes, or has what was free.
func takeTurns(ctx context.Context, c *cell) error {
	holder := c.other(ctx, 0, 0, sale.Acquired, labmode.Hold)
	if err := c.see(ctx, func() bool { return c.reached(holder) }, "somebody has the lock of 1"); err != nil {
		return err
	}
	a := c.order(ctx, &customer{name: "A", lines: c.everything(), hesitant: true}, "", "")
	if err := c.see(ctx, func() bool { return a.answered() || c.passed(a, sale.Waiting) }, "A wants all fifty, and waits"); err != nil {
		return err
	}
	if !c.passed(a, sale.Waiting) {
		return fmt.Errorf("%w: A waits; it was answered with %s", errNotSeen, a.outcome())
	}
	turns := 0
	for n := 1; !a.answered(); n++ {
		next := c.other(ctx, n, n%2, sale.Acquired, labmode.Hold)
		if !c.await(ctx, func() bool { return c.reached(next) || c.passed(next, sale.Waiting) || next.answered() }) {
			return fmt.Errorf("%w: the next one has its lock, or waits", errNotSeen)
		}
		before := c.passes(a, sale.Acquired, sale.Waiting)
		c.release(ctx, holder)
		if !c.reached(next) {
			c.tell("the next one is kept out")
			served := func() bool {
				if c.reached(next) { // by one lock for all
					c.release(ctx, next)
				}
				return a.answered()
			}
			if !c.await(ctx, served) {
				return fmt.Errorf("%w: the answer to A", errNotSeen)
			}
			break
		}
		if !c.await(ctx, holder.answered) {
			return fmt.Errorf("%w: the answer to the one before", errNotSeen)
		}
		holder, turns = next, turns+1
		if !c.await(ctx, func() bool { return a.answered() || c.passes(a, sale.Acquired, sale.Waiting) > before }) {
			return fmt.Errorf("%w: A tries again", errNotSeen)
		}
	}
	err := c.concluded(ctx, a)
	if a.outcome() != load.Sold {
		c.tell("meanwhile, %d others had 1 or 2 in turn, and never were both free", turns)
	}
	return err
}

// comeBetween has somebody else buy one of the items each time that A is about to write.
func comeBetween(ctx context.Context, c *cell) error {
	a := c.order(ctx, &customer{name: "A", lines: c.everything(), hesitant: true}, sale.Write, labmode.HoldEach)
	came := 0
	for n := 0; ; n++ {
		if !c.await(ctx, func() bool { return a.answered() || c.reaches(a) > n }) {
			return fmt.Errorf("%w: A is about to write, or is answered", errNotSeen)
		}
		if a.answered() {
			break
		}
		if n == 0 {
			c.tell("A wants all fifty, and is about to write")
		}
		other := c.other(ctx, n, n%len(c.items), "", "")
		if !c.await(ctx, func() bool { return other.answered() || c.keptOut(ctx, other) }) {
			return fmt.Errorf("%w: somebody else buys one of them, or waits", errNotSeen)
		}
		if other.answered() {
			came++
		} else {
			c.tell("A keeps out somebody who wants one of them")
		}
		c.release(ctx, a)
	}
	if came > 0 {
		c.tell("meanwhile, %d others bought one each", came)
	}
	if err := c.concluded(ctx, a); err != nil {
		return err
	}
	return c.met(a)
}
