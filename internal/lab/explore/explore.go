// Package explore searches the schedules of anything that can be stepped.
//
// A [Thing] is one run of it: it offers what can be next, and goes on with what is chosen. [Explore]
// plays every schedule from its beginning, but for those that differ only in the order of independent
// steps: what each [Option] touches says which these are. docs/schedules.md says why nothing is lost by
// that. [Confirm] plays again what failed, and removes what the failure does not need.
//
// The package knows neither shops nor servers. Package step steps through sales on real ones, and
// package survey says what is to be explored of a strategy, and rules on what it declares.
package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
)

// Player makes one run by a chooser, with [Play]. A run that has to be made again gets another one.
type Player func(ctx context.Context, choose func() Chooser) (schedule.Record, error)

// Search says which schedules are explored.
type Search struct {
	// Slots is how many runs can be made at a time, 0 for one.
	Slots int
	// Switches bounds how often a run goes to another customer although the last one could go on. 0
	// is no bound.
	Switches int
	// Every runs every schedule within that bound. Without it one is left out if another one differs only in the order of
	// independent steps, although that may exceed the bound (Coons, Musuvathi, McKinley: Bounded Partial-Order Reduction, 2013).
	Every bool
	// Unpruned runs schedules that differ only in the order of independent steps each by itself. It
	// shows that nothing is lost by leaving them out.
	Unpruned bool
	// Limit ends a search after so many runs. 0 is no limit.
	Limit int
	// Enough ends a search when it returns true, nil for never. It is called before each run.
	Enough func() bool
	// FirstBad ends a search at its first bad run.
	FirstBad bool
}

// Found is what an exploration found.
type Found struct {
	Runs int `json:"runs"` // schedules that were run to the end
	Bad  int `json:"bad"`  // of them
	Met  int `json:"met"`  // of them, those in which an event happened
	// Deadlocks is in how many of them MySQL ended a transaction that waited in a circle. That is no failure.
	Deadlocks int      `json:"deadlocks,omitempty"`
	Partial   int      `json:"partial"`  // runs that were not finished, because the rest of them had been seen
	GivenUp   []string `json:"given_up"` // why runs failed each time they were made; what they would have shown is not known
	// Unreached are places that one run came to, and none that was sent there again: what shops do
	// on their own went another way then.
	Unreached []string          `json:"unreached,omitempty"`
	Shortest  []schedule.Record `json:"shortest"` // for each cause the shortest bad schedule, the shortest first
	// Once are those of the causes that no schedule showed when it was played again, or of which a replay failed.
	Once []Once `json:"once,omitempty"`

	// Outcomes counts the runs of each kind of outcome.
	Outcomes map[string]int `json:"-"`

	bad        map[verdict.Cause]int
	candidates map[verdict.Cause][]schedule.Record // the shortest few of each cause, the shortest first
	limited    bool                                // the search ended at its limit
	decided    schedule.Decided
}

// Causes are those of the shortest schedules, in their order.
func (f Found) Causes() []verdict.Cause {
	var all []verdict.Cause
	for _, r := range f.Shortest {
		all = append(all, r.Outcome.Cause)
	}
	return all
}

// Unknown says why an exploration decides nothing, empty where it does: runs were given up, or more
// than a tenth of the places could not be reached again.
func (f Found) Unknown() words.Text {
	switch {
	case len(f.GivenUp) > 0:
		return words.Of("unknown.given-up", "n", len(f.GivenUp), "why", f.GivenUp[0])
	case len(f.Unreached) > max(1, f.Runs/10):
		return words.Of("unknown.unreached", "n", len(f.Unreached), "runs", f.Runs, "why", f.Unreached[0])
	}
	return words.Text{}
}

// Decided counts the runs that show something, and the places that were not reached again among those that do not.
func (f Found) Decided() schedule.Decided { return f.decided }

// Limited says whether the search ended before it had played everything.
func (f Found) Limited() bool { return f.limited }

// Repeated are those of the shortest schedules that ended alike when they were played again.
func (f Found) Repeated() []schedule.Record {
	return f.without(func(o Once) bool { return o.Runs > 0 })
}

// Unplayed are those that were not played to the end again, since [Confirm] returned an error.
func (f Found) Unplayed() []schedule.Record {
	return f.without(func(o Once) bool { return o.Runs == 0 || o.Replays > 0 })
}

// without are the shortest schedules but for some, by what Once says of their cause: the zero value where it says nothing.
func (f Found) without(these func(Once) bool) []schedule.Record {
	return slices.DeleteFunc(slices.Clone(f.Shortest), func(r schedule.Record) bool {
		var said Once
		if i := slices.IndexFunc(f.Once, func(o Once) bool { return o.Cause == r.Outcome.Cause }); i >= 0 {
			said = f.Once[i]
		}
		return these(said)
	})
}

// Shows says whether a run had one of these causes.
func (f Found) Shows(causes []verdict.Cause) bool {
	return slices.ContainsFunc(f.Causes(), func(c verdict.Cause) bool { return slices.Contains(causes, c) })
}

// node is a place in the tree of schedules from which something new goes on.
type node struct {
	past   schedule.Schedule
	asleep []Option // what leads from here only to what is seen elsewhere
	failed error    // why its run was postponed
}

// maxGivenUp is how many runs may be given up before an exploration ends.
const maxGivenUp = 20

// maxCandidates is how many schedules of each cause are kept. The shortest may have been luck: what
// shops do on their own, such as a reaper, is not held.
const maxCandidates = 5

// unreachedError is a run that did not come to where another one had been.
type unreachedError string

func (e unreachedError) Error() string { return "a second run did not come there: " + string(e) }

// Explore runs all schedules of a search. Each run is played from its beginning: it follows a node
// of the tree and then goes on as a schedule does that lists no more; what could have been chosen
// instead becomes further nodes. Of schedules that differ only in the order of independent steps
// one is run: sleep sets (Godefroid, Partial-Order Methods for the Verification of Concurrent
// Systems, 1996) say which branch leads only to what another one shows. Progress is called with the
// numbers of runs that were made and that are known to be left. It may be nil.
//
// An exploration ends early when too many runs are given up, and [Found.Unknown] says why. Where a run fails
// otherwise, or ctx ends, it returns that error with what was found before.
func Explore(ctx context.Context, play Player, s Search, progress func(done, left int)) (Found, error) {
	e := &exploration{search: s, play: play, progress: progress, found: Found{Outcomes: map[string]int{}, bad: map[verdict.Cause]int{}, candidates: map[verdict.Cause][]schedule.Record{}}}
	e.changed.L = &e.mu
	e.nodes = []node{{}}
	err := e.workers(ctx, max(s.Slots, 1))
	if err == nil && !e.failing {
		// Runs that failed beside others may succeed alone.
		e.last, e.nodes, e.postponed = true, e.postponed, nil
		err = e.workers(ctx, 1)
	}
	for _, n := range e.nodes {
		if n.failed != nil { // the search ended before it could be tried alone
			e.giveUp(n.past, n.failed)
		}
	}
	for _, n := range e.postponed {
		e.found.GivenUp = append(e.found.GivenUp, n.failed.Error())
	}
	e.found.limited = e.found.limited || err != nil
	for _, few := range e.found.candidates {
		e.found.Shortest = append(e.found.Shortest, few[0])
	}
	slices.SortFunc(e.found.Shortest, shorter)
	return e.found, err
}

type exploration struct {
	search   Search
	play     Player
	progress func(done, left int)
	last     bool // a run that fails now is given up

	mu        sync.Mutex // guards the rest
	changed   sync.Cond
	nodes     []node
	postponed []node // that could not be played: they are tried once more, one at a time
	running   int
	failing   bool // too many runs were given up
	found     Found
}

// workers runs so many nodes at a time until all have been run.
func (e *exploration) workers(ctx context.Context, n int) error {
	group, ctx := errgroup.WithContext(ctx)
	stop := context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.changed.Broadcast()
	})
	defer stop()
	for range n {
		group.Go(func() error { return e.work(ctx) })
	}
	return group.Wait()
}

func (e *exploration) work(ctx context.Context) error {
	for {
		n, ok := e.next(ctx)
		if !ok {
			return context.Cause(ctx)
		}
		record, more, err := e.run(ctx, n)
		e.mu.Lock()
		e.running--
		switch {
		case errors.Is(err, ErrStop):
			e.found.Partial++
			err = nil
		case errors.Is(err, ErrGivenUp) && !e.last:
			n.failed = err
			e.postponed = append(e.postponed, n)
			e.failing = e.failing || len(e.postponed) > maxGivenUp+e.found.Runs/20 // so many may be postponed: a twentieth more
			err, more = nil, nil
		case errors.Is(err, ErrGivenUp):
			e.giveUp(n.past, err)
			e.failing = len(e.found.GivenUp) > maxGivenUp
			err, more = nil, nil
		case err == nil:
			e.keep(record)
		}
		e.nodes = append(e.nodes, more...)
		if e.progress != nil {
			e.progress(e.found.Runs, len(e.nodes)+len(e.postponed)+e.running)
		}
		e.changed.Broadcast()
		e.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// next waits for a node. It returns false when all have been run.
func (e *exploration) next(ctx context.Context) (node, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.nodes) == 0 && e.running > 0 && ctx.Err() == nil {
		e.changed.Wait()
	}
	limited := e.failing || e.search.Limit > 0 && e.found.Runs+e.running >= e.search.Limit || e.search.Enough != nil && e.search.Enough() || e.search.FirstBad && e.found.Bad > 0
	if limited {
		e.found.limited = e.found.limited || len(e.nodes) > 0
		return node{}, false
	}
	if len(e.nodes) == 0 || ctx.Err() != nil {
		return node{}, false
	}
	n := e.nodes[0]
	e.nodes = e.nodes[1:]
	e.running++
	return n, true
}

// giveUp notes what a run would have shown. It is called with mu.
func (e *exploration) giveUp(past schedule.Schedule, why error) {
	if errors.As(why, new(unreachedError)) {
		e.found.Unreached = append(e.found.Unreached, past.String())
		e.found.decided.Unreached(past)
		return
	}
	e.found.GivenUp = append(e.found.GivenUp, why.Error())
}

// keep counts a run. It is called with mu.
func (e *exploration) keep(r schedule.Record) {
	e.found.Runs++
	e.found.decided.Add(r)
	e.found.Outcomes[kind(r.Outcome)]++
	if r.Deadlocks() > 0 {
		e.found.Deadlocks++
	}
	if !r.Played.Quiet() {
		e.found.Met++
	}
	if !r.Outcome.Bad() {
		return
	}
	e.found.Bad++
	e.found.bad[r.Outcome.Cause]++
	few := e.found.candidates[r.Outcome.Cause]
	at, _ := slices.BinarySearchFunc(few, r, shorter)
	few = slices.Insert(few, at, r)
	e.found.candidates[r.Outcome.Cause] = few[:min(len(few), maxCandidates)]
}

// kind is what two runs have in common that differ only in the order of independent steps. Which
// customer an order belongs to is no part of it: customers are alike.
func kind(o schedule.Outcome) string {
	var orders []string
	for _, order := range o.Orders {
		orders = append(orders, fmt.Sprintf(" %d→%d", order.Read, order.Written))
	}
	slices.Sort(orders)
	return fmt.Sprintf("%s %s%s", o.Verdict, o.Cause, strings.Join(orders, ""))
}

func shorter(a, b schedule.Record) int { return a.Schedule.Compare(b.Schedule) }

// run plays a node to its end, and returns what could have been chosen on the way.
func (e *exploration) run(ctx context.Context, n node) (schedule.Record, []node, error) {
	var d descent
	record, err := e.play(ctx, func() Chooser {
		d = descent{search: e.search, from: n, left: n.past, asleep: n.asleep}
		return d.choose
	})
	return record, d.more, err
}

// descent follows a node and then goes on as a schedule does that lists no more.
type descent struct {
	search   Search
	from     node
	left     schedule.Schedule // of the node's past: still to be replayed
	asleep   []Option
	switched int
	more     []node // what could have been chosen instead
}

func (d *descent) choose(next Next) (int, error) {
	if len(d.left) == 0 {
		return d.fork(next)
	}
	i := next.Index(d.left[0])
	switch {
	case i < 0 && next.ByDefault() == LetTimePass:
		return LetTimePass, nil
	case i < 0:
		return 0, unreachedError(fmt.Sprintf("%s: %s", d.from.past, next.Why(d.left[0])))
	}
	d.left = d.left[1:]
	return d.take(next, i), nil
}

func (d *descent) fork(next Next) (int, error) {
	d.renew(next)
	awake := d.awake(next)
	first := LetTimePass // where nobody can go on, an event is one more chance
	if next.ByDefault() != LetTimePass || next.Arriving {
		if len(awake) == 0 {
			return 0, ErrStop
		}
		first = awake[0]
	}
	before := slices.Clone(d.asleep)
	for _, i := range awake {
		o := next.Options[i]
		past := append(slices.Clone(next.Past), o.Choice)
		offered := func(n node) bool { return slices.Equal(n.past, past) } // before time passed
		if i != first && !slices.ContainsFunc(d.more, offered) {
			d.more = append(d.more, node{past: past, asleep: d.stillAsleep(before, o)})
		}
		if !d.search.Unpruned && !d.search.Every {
			before = append(before, o)
		}
	}
	if first == LetTimePass {
		return first, nil
	}
	d.asleep = d.stillAsleep(d.asleep, next.Options[first])
	return d.take(next, first), nil
}

// renew has what is asleep touch what it would touch now, in this run: items have other names in each run.
// What cannot be chosen now is awake when it can be.
func (d *descent) renew(next Next) {
	var now []Option
	for _, o := range d.asleep {
		if i := next.Index(o.Choice); i >= 0 {
			now = append(now, next.Options[i])
		}
	}
	d.asleep = now
}

func (d *descent) take(next Next, i int) int {
	if next.switches(next.Options[i]) {
		d.switched++
	}
	return i
}

// awake are the options that lead to something that is not seen elsewhere, within the bound of switches.
func (d *descent) awake(next Next) []int {
	var awake []int
	for i, o := range next.Options {
		asleep := slices.ContainsFunc(d.asleep, func(a Option) bool { return a.Choice == o.Choice })
		bounded := d.search.Switches > 0 && d.switched == d.search.Switches && next.switches(o)
		if !o.Retry && (!o.RowHeld || d.search.Unpruned) && !asleep && !bounded {
			awake = append(awake, i)
		}
	}
	return awake
}

// stillAsleep is what stays asleep after a choice: all that is independent of it.
func (d *descent) stillAsleep(asleep []Option, after Option) []Option {
	return slices.DeleteFunc(slices.Clone(asleep), func(o Option) bool { return !independent(o, after) })
}

// independent says whether two choices that follow each other can change places without anybody
// noticing.
func independent(a, b Option) bool {
	if a.Choice.Customer == b.Choice.Customer && a.Choice.Customer != 0 || !a.Choice.IsStep() && !b.Choice.IsStep() {
		return false
	}
	return schedule.Dependent(a.Touches, b.Touches) == ""
}
