package scenario

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/declared"
)

// ofBaskets are the scenarios of sales of several items: a few customers whose baskets meet. Each attacks one basket
// property.
var ofBaskets = []trial.Scenario{
	basket("crossed", "A has item 1 and wants item 2, B has item 2 and wants item 1",
		[]int64{3, 3}, declared.Crossable, crossed, lacking(declared.Crossable, verdict.Left)),
	basket("same-item-twice", "one basket has the same item in two lines, and there is one unit",
		[]int64{1}, declared.AddsUp, func(s *script) { s.concluded(s.ask(trial.Wish{Name: "A", Lines: []int{0, 0}})) }, lacking(declared.AddsUp, verdict.Oversold)),
	basket("one-sold-out", "one of two items is sold out; meanwhile another customer wants the other one",
		[]int64{1, 0}, declared.Isolated, oneSoldOut, lacking(declared.Complete, verdict.HalfSold), lacking(declared.Isolated, verdict.Left)),
	basket("death-between-lines", "the process dies when it has the units of one line and not yet of the other", []int64{1, 1}, declared.Whole, func(s *script) { death(s, sale.Taken) },
		lacking(declared.Complete, verdict.HalfSold), lacking(declared.Whole, verdict.Unclaimed), lacking(declared.FreesLocks, verdict.Stuck)),
	basket("death-between-locks", "the process dies when it has one lock and not yet the other",
		[]int64{1, 1}, declared.FreesLocks, func(s *script) { death(s, sale.Acquired) }, lacking(declared.FreesLocks, verdict.Stuck)),
	basket("first-lock-ends", "the process is paused between two locks until the lease of the first is over",
		[]int64{1, 1}, declared.OvertakeProof, firstLockEnds, lacking(declared.OvertakeProof, verdict.Oversold)),
	basket("fifty-beside-one", "a basket of fifty items, and others who want one each come in between, again and again",
		slices.Repeat([]int64{1000}, 50), declared.Unstarved, fiftyBesideOne, lacking(declared.Unstarved, verdict.Left)),
}

func basket(name, doc string, stock []int64, attacks declared.Property, play func(*script), demands ...trial.Demand) trial.Scenario {
	return trial.Scenario{Group: trial.Baskets, Name: name, Doc: doc, Attacks: attacks, Demands: demands, Stock: stock, Few: few(play)}
}

func lacking(p declared.Property, otherwise verdict.Kind) trial.Demand {
	return trial.Demand{Property: p, Otherwise: otherwise}
}

// Of a way about which nothing is declared, such as a pupil's, it is not known whether its locks are in Redis.
// These scenarios find that out, and hold a customer at the first point after it.
var (
	// Meeting is the scenario crossed. A lock may also be handed to a customer who waits.
	Meeting = basket("crossed", "A has item 1 and wants item 2, B has item 2 and wants item 1",
		[]int64{4, 4}, declared.Crossable, func(s *script) { meet(s, false) }, lacking(declared.Crossable, verdict.Left))
	// Beside is Meeting with a B whose way locks in the order of the items' ids: fenced or conditional.
	Beside = trial.Scenario{
		Group: trial.Baskets, Name: "beside-ids", Doc: "A buys by this way what B buys by one that goes by the items' ids, and their names are in another order",
		Attacks: declared.Crossable, Demands: []trial.Demand{lacking(declared.Crossable, verdict.Left)}, Stock: []int64{4, 4}, Named: true,
		Few: few(func(s *script) { meet(s, true) }),
	}
)

// shortLease is the lease that ends in a play.
const shortLease = 500 * time.Millisecond

// crossed has two baskets with the same items in opposite orders meet where each has its first.
func crossed(s *script) {
	if s.Of.Passes(sale.Acquired) {
		crossedAtLocks(s)
		return
	}
	a := s.ask(trial.Wish{Name: "A", Lines: []int{0, 1}, At: sale.Taken, Action: labmode.Hold})
	s.see(s.arrived(a), wants("first", "A", 1, 2))
	b := s.ask(trial.Wish{Name: "B", Shop: 1, Lines: []int{1, 0}, At: sale.Taken, Action: labmode.Hold})
	s.see(s.arrived(b), wants("first-or-waits", "B", 2, 1))
	s.release(a)
	s.await("B has what it gets first", func() bool { return s.Reached(b) || b.Answered() })
	s.release(b)
	s.concluded(a, b)
	s.met(a, b)
}

// crossedAtLocks has C hold the lock of item 2 until A waits for it, with the lock of item 1 if it asks for
// that, too. A is held there when C releases it, so that B comes first: also where a basket asks for all locks
// at once.
func crossedAtLocks(s *script) {
	cc := s.ask(trial.Wish{Name: "C", Shop: 2, Lines: []int{1}, At: sale.Acquired, Action: labmode.Hold})
	s.see(func() bool { return s.Reached(cc) }, words.Of("story.has-lock", "who", "C", "item", 2))
	a := s.ask(trial.Wish{Name: "A", Lines: []int{0, 1}, At: sale.Waiting, Action: labmode.Hold})
	s.see(func() bool { return a.Answered() || s.Reached(a) }, wants("first-free", "A", 1, 2))
	s.release(cc)
	s.concluded(cc)
	b := s.ask(trial.Wish{Name: "B", Shop: 1, Lines: []int{1, 0}, Hesitant: true})
	s.see(func() bool { return b.Answered() || s.Passes(b, sale.Waiting) > 0 }, wants("first-free", "B", 2, 1))
	s.release(a)
	s.concluded(a, b)
	s.met(a)
}

// wants is a line of the story about a customer who wants two items.
func wants(what, who string, one, other int) words.Text {
	return words.Of("story."+what, "who", who, "first", one, "second", other)
}

// The strategies of a B who goes by the items' ids: with the reference lock of each item, and with their rows.
const (
	byIDsInRedis = "fenced"
	byIDsInRows  = "conditional"
)

// meet has A and B meet with the same items in opposite orders, B perhaps by another way. A is held when it
// has its first lock, or its first units where it has no lock in Redis.
func meet(s *script, byIDs bool) {
	strategy, has := byIDsInRedis, "lock"
	a := s.ask(trial.Wish{Name: "A", Lines: []int{0, 1}, At: sale.Acquired, Action: labmode.Hold})
	s.await("A has its first lock, or has bought", func() bool { return s.Reached(a) || a.Answered() })
	if !s.Reached(a) {
		a.Rename("a customer before A")
		strategy, has = byIDsInRows, "units"
		a = s.ask(trial.Wish{Name: "A", Lines: []int{0, 1}, At: sale.Taken, Action: labmode.Hold})
	}
	s.see(s.arrived(a), wants("first-"+has, "A", 1, 2))
	if !byIDs {
		strategy = ""
	}
	b := s.ask(trial.Wish{Name: "B", Shop: 1, Lines: []int{1, 0}, By: strategy, Hesitant: true})
	comes := wants("waits", "B", 2, 1)
	if byIDs {
		comes = words.Of("story.waits", "who", "B", "second", 1, "by", strategy)
	}
	s.see(func() bool { return s.keptOut(b) }, comes)
	s.release(a)
	s.concluded(a, b)
	s.met(a)
	if strategy == byIDsInRedis {
		behindReader(s)
	}
}

// behindReader has D buy while C, by the reference lock of each item, has read what it is going to write.
func behindReader(s *script) {
	c := s.ask(trial.Wish{Name: "C", Shop: 1, Lines: []int{0, 1}, By: byIDsInRedis, At: sale.Read, Action: labmode.Hold})
	s.see(s.arrived(c), words.Of("story.reads", "who", "C", "first", 1, "second", 2, "by", byIDsInRedis))
	d := s.ask(trial.Wish{Name: "D", Lines: []int{0, 1}, Hesitant: true})
	s.see(func() bool { return s.keptOut(d) }, wants("waits", "D", 1, 2))
	s.release(c)
	s.concluded(c, d)
}

// oneSoldOut has B want item 1 while A has it for the moment, and is going to be refused item 2. Where A is
// refused before it takes units, B comes while A has a lock or has read. Some ways refuse by one command.
func oneSoldOut(s *script) {
	var a *trial.Customer
	for _, at := range []sale.Point{sale.Taken, sale.Acquired, sale.Read} {
		if !s.Of.Passes(at) && at != sale.Taken {
			continue
		}
		a = s.ask(trial.Wish{Name: "A", Lines: []int{0, 1}, At: at, Action: labmode.Hold})
		s.await(fmt.Sprintf("A is %s, or refused", at), s.arrived(a))
		if s.Reached(a) {
			s.tell(wants(map[sale.Point]string{sale.Taken: "at-taken", sale.Acquired: "first-lock", sale.Read: "at-read"}[at], "A", 1, 2))
			break
		}
		s.tell(wants("refused", "A", 1, 2))
	}
	b := s.ask(trial.Wish{Name: "B", Shop: 1, Lines: []int{0}})
	s.see(func() bool { return s.keptOut(b) }, words.Of("story.one", "who", "B", "item", 1))
	s.release(a)
	s.concluded(a, b)
}

// death kills A's shop at a point. B wants the same, and comes again until it has it, nothing that can
// end keeps it out any more, or what keeps it out has no end.
func death(s *script, at sale.Point) {
	a := s.ask(trial.Wish{Name: "A", Lease: shortLease, Lines: []int{0, 1}, At: at, Action: labmode.Kill})
	exited := func() bool { return !s.Shop(a).Alive() }
	s.see(func() bool { return exited() || a.Answered() && a.Got() != load.Unknown }, wants("dies", "A", 1, 2))
	if !exited() {
		s.met(a)
		s.fail(fmt.Errorf("%w: A was answered with %s", trial.ErrNotSeen, a.Got()))
	}
	b := s.ask(trial.Wish{Name: "B", Shop: 1, Lines: []int{0, 1}, Hesitant: true})
	var before load.Outcome
	for {
		s.await(fmt.Sprintf("B is sold both, or refused for good; its last answer is %q", before), b.Answered)
		if before = b.Got(); s.err != nil || before == load.Sold {
			break
		}
		endless, ends, err := s.Locks(s.ctx)
		if s.fail(err); err != nil || before == load.SoldOut && !ends {
			break
		}
		if before == load.Busy && endless != "" {
			s.StuckAt = endless
			s.tell(words.Of("story.endless", "lock", endless))
			break
		}
		b = s.AskAgain(s.ctx, b)
	}
	s.concluded(b)
}

// firstLockEnds pauses A's shop between two locks until the first has ended. B takes that lock and reads
// before A goes on, and writes after it.
func firstLockEnds(s *script) {
	a := s.ask(trial.Wish{Name: "A", Lease: shortLease, Lines: []int{0, 1}, At: sale.Acquired, Action: labmode.Hold})
	s.see(func() bool { return s.Reached(a) || a.Answered() }, wants("wants-has-lock", "A", 1, 2))
	if s.met(a); !s.Reached(a) {
		s.fail(fmt.Errorf("%w: A was answered with %s", trial.ErrNotSeen, a.Got()))
	}
	s.fail(s.Shop(a).Pause())
	b := s.ask(trial.Wish{Name: "B", Shop: 1, Lines: []int{0}, At: sale.Read, Action: labmode.Hold})
	s.see(func() bool { return s.Reached(b) || b.Answered() }, words.Of("story.paused", "who", "A", "other", "B"))
	s.fail(s.Shop(a).Resume())
	s.release(a)
	s.concluded(a)
	s.release(b)
	s.concluded(b)
}

// fiftyBesideOne has A want all items, and others who want one each come in between, for as long as A does
// not keep them out and is not answered.
func fiftyBesideOne(s *script) {
	if s.Of.Passes(sale.Acquired) {
		takeTurns(s)
	} else {
		comeBetween(s)
	}
}

// everything is all items in an order by the seed.
func everything(s *script) []int {
	all := make([]int, len(s.Items))
	for i := range all {
		all[i] = i
	}
	rand.New(rand.NewPCG(s.Seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// other sends the n-th of those who want one item. They come to the shops that A does not use.
func other(s *script, n, item int, at sale.Point, action labmode.Action) *trial.Customer {
	return s.ask(trial.Wish{Name: fmt.Sprint("other", n), Shop: 1 + n%(len(s.Shops)-1), Lines: []int{item}, Beside: true, At: at, Action: action})
}

// takeTurns has others hold the first two items in turn, each until the next one has the other item. So
// never are all items free. A has tried again before the next one comes, or has what was free.
func takeTurns(s *script) {
	holder := other(s, 0, 0, sale.Acquired, labmode.Hold)
	s.see(func() bool { return s.Reached(holder) }, words.Of("story.somebody", "item", 1))
	a := s.ask(trial.Wish{Name: "A", Lines: everything(s), Hesitant: true})
	s.see(func() bool { return a.Answered() || s.Passes(a, sale.Waiting) > 0 }, words.Of("story.fifty", "who", "A"))
	if s.Passes(a, sale.Waiting) == 0 {
		s.fail(fmt.Errorf("%w: A waits; it was answered with %s", trial.ErrNotSeen, a.Got()))
	}
	turns := 0
	for n := 1; s.err == nil && !a.Answered(); n++ {
		next := other(s, n, n%2, sale.Acquired, labmode.Hold)
		s.await("the next one has its lock, or waits", func() bool { return s.Reached(next) || s.Passes(next, sale.Waiting) > 0 || next.Answered() })
		before := s.Passes(a, sale.Acquired, sale.Waiting)
		s.release(holder)
		if !s.Reached(next) {
			s.tell(words.Of("story.kept-out"))
			served := func() bool {
				if s.Reached(next) { // by one lock for all
					s.release(next)
				}
				return a.Answered()
			}
			s.await("the answer to A", served)
			break
		}
		s.await("the answer to the one before", holder.Answered)
		holder, turns = next, turns+1
		s.await("A tries again", func() bool { return a.Answered() || s.Passes(a, sale.Acquired, sale.Waiting) > before })
	}
	s.concluded(a)
	if a.Got() != load.Sold {
		s.tell(words.Of("story.in-turn", "count", turns))
	}
}

// comeBetween has somebody else buy one of the items each time that A is about to write.
func comeBetween(s *script) {
	a := s.ask(trial.Wish{Name: "A", Lines: everything(s), Hesitant: true, At: sale.Write, Action: labmode.HoldEach})
	came := 0
	for n := 0; s.err == nil; n++ {
		s.await("A is about to write, or is answered", func() bool { return a.Answered() || s.Reaches(a) > n })
		if a.Answered() {
			break
		}
		if n == 0 {
			s.tell(words.Of("story.about-to-write", "who", "A"))
		}
		other := other(s, n, n%len(s.Items), "", "")
		s.await("somebody else buys one of them, or waits", func() bool { return s.keptOut(other) })
		if other.Answered() {
			came++
		} else {
			s.tell(words.Of("story.keeps-out", "who", "A"))
		}
		s.release(a)
	}
	if came > 0 {
		s.tell(words.Of("story.one-each", "count", came))
	}
	s.concluded(a)
	s.met(a)
}
