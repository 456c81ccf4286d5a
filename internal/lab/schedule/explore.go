package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Search says which schedules are explored.
type Search struct {
	Plan
	// Switches bounds how often a run goes to another customer although the last one could go on. 0
	// is no bound.
	Switches int
	// Unpruned runs schedules that differ only in the order of independent steps each by itself. It
	// shows that nothing is lost by leaving them out.
	Unpruned bool
	// Limit ends a search after so many runs. 0 is no limit.
	Limit int
}

// Player plays one run. A [Stage] does it on real servers.
type Player interface {
	Play(ctx context.Context, p Plan, choose func() Chooser) (Record, error)
	// Lanes is how many runs with these events can be played at a time.
	Lanes(events []Event) int
}

// Found is what an exploration found.
type Found struct {
	Runs    int      `json:"runs"`     // schedules that were run to the end
	Bad     int      `json:"bad"`      // of them; those with a cause that was seen once only are not among them
	Partial int      `json:"partial"`  // runs that were not finished, because the rest of them had been seen
	GivenUp []string `json:"given_up"` // why runs failed each time they were made; what they would have shown is not known
	// Unreached are places that one run came to, and none that was sent there again: what shops do
	// on their own went another way then.
	Unreached []string `json:"unreached,omitempty"`
	Shortest  []Record `json:"shortest"` // for each cause the shortest bad schedule, the shortest first
	// Once are the causes that no schedule showed when it was played again.
	Once []Once `json:"once,omitempty"`

	bad        map[Cause]int
	candidates map[Cause][]Record // the shortest few of each cause, the shortest first
	outcomes   map[string]int
	limited    bool // the search ended at its limit
}

// Causes are the causes that were found, those of the shortest schedules first.
func (f Found) Causes() []Cause {
	var all []Cause
	for _, r := range f.Shortest {
		all = append(all, r.Outcome.Cause)
	}
	return all
}

// Unknown says why an exploration decides nothing, empty where it does: runs were given up, or more
// than a tenth of the places could not be reached again.
func (f Found) Unknown() string {
	switch {
	case len(f.GivenUp) > 0:
		return fmt.Sprintf("%d schedules could not be played, a longer lease may help: %s", len(f.GivenUp), f.GivenUp[0])
	case len(f.Unreached) > max(1, f.Runs/10):
		return fmt.Sprintf("%d places beside %d runs were not reached again: the same schedule goes more than one way: %s", len(f.Unreached), f.Runs, f.Unreached[0])
	}
	return ""
}

// shows says whether a run had one of these causes, be it only once.
func (f Found) shows(causes []Cause) bool {
	return slices.ContainsFunc(f.Causes(), func(c Cause) bool { return slices.Contains(causes, c) }) ||
		slices.ContainsFunc(f.Once, func(o Once) bool { return slices.Contains(causes, o.Cause) })
}

// node is a place in the tree of schedules from which something new goes on.
type node struct {
	past   Schedule
	asleep []Option // what leads from here only to what is seen elsewhere
}

// maxGivenUp is how many runs may be given up before an exploration fails.
const maxGivenUp = 20

// maxPostponed is how many may be postponed when so many have been made: a twentieth more.
func maxPostponed(runs int) int { return maxGivenUp + runs/20 }

// maxCandidates is how many schedules of each cause are kept. The shortest may have been luck: what
// shops do on their own, such as a reaper, is not held.
const maxCandidates = 5

// unreachedError is a run that did not come to where another one had been.
type unreachedError string

func (e unreachedError) Error() string { return "a second run did not come there: " + string(e) }

// errSeen gives up a run of which the rest is seen elsewhere.
var errSeen = errors.New("seen")

// Explore runs all schedules of a search. Each run is played from its beginning: it follows a node
// of the tree and then goes on as a schedule does that lists no more; what could have been chosen
// instead becomes further nodes. Of schedules that differ only in the order of independent steps
// one is run: sleep sets (Godefroid, Partial-Order Methods for the Verification of Concurrent
// Systems, 1996) say which branch leads only to what another one shows. Progress is told the
// numbers of runs that were made and are to be made, and may be nil.
func Explore(ctx context.Context, player Player, s Search, progress func(done, left int)) (Found, error) {
	e := &exploration{search: s, player: player, progress: progress, found: Found{outcomes: map[string]int{}, bad: map[Cause]int{}, candidates: map[Cause][]Record{}}}
	e.changed.L = &e.mu
	e.nodes = []node{{}}
	if err := e.workers(ctx, player.Lanes(s.Events)); err != nil {
		return Found{}, err
	}
	// Runs that failed beside others may succeed alone.
	e.last, e.nodes, e.postponed = true, e.postponed, nil
	if err := e.workers(ctx, 1); err != nil {
		return Found{}, err
	}
	for _, few := range e.found.candidates {
		e.found.Shortest = append(e.found.Shortest, few[0])
	}
	slices.SortFunc(e.found.Shortest, CompareLength)
	return e.found, nil
}

type exploration struct {
	search   Search
	player   Player
	progress func(done, left int)
	last     bool // a run that fails now is given up

	mu        sync.Mutex // guards the rest
	changed   sync.Cond
	nodes     []node
	postponed []node // that could not be played: they are tried once more, one at a time
	running   int
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
		case errors.Is(err, errSeen):
			e.found.Partial++
			err = nil
		case errors.Is(err, errGivenUp) && !e.last && len(e.postponed) < maxPostponed(e.found.Runs):
			e.postponed = append(e.postponed, n)
			err, more = nil, nil
		case errors.As(err, new(unreachedError)) && e.last:
			e.found.Unreached = append(e.found.Unreached, n.past.String())
			err, more = nil, nil
		case errors.Is(err, errGivenUp) && e.last && len(e.found.GivenUp) < maxGivenUp:
			e.found.GivenUp = append(e.found.GivenUp, err.Error())
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
	if e.search.Limit > 0 && e.found.Runs+e.running >= e.search.Limit {
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

// keep counts a run. It is called with mu.
func (e *exploration) keep(r Record) {
	e.found.Runs++
	e.found.outcomes[r.Outcome.kind()]++
	if !r.Outcome.Bad() {
		return
	}
	e.found.Bad++
	e.found.bad[r.Outcome.Cause]++
	few := e.found.candidates[r.Outcome.Cause]
	at, _ := slices.BinarySearchFunc(few, r, CompareLength)
	few = slices.Insert(few, at, r)
	e.found.candidates[r.Outcome.Cause] = few[:min(len(few), maxCandidates)]
}

// kind is what two runs have in common that differ only in the order of independent steps. Which
// customer an order belongs to is no part of it: customers are alike.
func (o Outcome) kind() string {
	var orders []string
	for _, order := range o.Orders {
		orders = append(orders, fmt.Sprintf(" %d→%d", order.Read, order.Written))
	}
	slices.Sort(orders)
	return fmt.Sprintf("%s %s%s", o.Verdict, o.Cause, strings.Join(orders, ""))
}

// CompareLength orders records by their events, then their switches, then the steps they list.
func CompareLength(a, b Record) int {
	for _, of := range []func(Record) int{
		func(r Record) int { return len(r.Schedule) - steps(r.Schedule) },
		func(r Record) int { return changes(r.Schedule) },
		func(r Record) int { return len(r.Schedule) },
	} {
		if d := of(a) - of(b); d != 0 {
			return d
		}
	}
	return 0
}

// changes counts how often the steps of a schedule go from one customer to another.
func changes(s Schedule) int {
	n, last := 0, Customer(0)
	for _, c := range s {
		if c.IsStep() {
			n += count(last != 0 && last != c.Customer)
			last = c.Customer
		}
	}
	return n
}

func steps(s Schedule) int {
	n := 0
	for _, c := range s {
		if c.IsStep() {
			n++
		}
	}
	return n
}

// run plays a node to its end, and returns what could have been chosen on the way.
func (e *exploration) run(ctx context.Context, n node) (Record, []node, error) {
	var more []node
	record, err := e.player.Play(ctx, e.search.Plan, func() Chooser {
		more = nil
		return e.chooser(n, &more)
	})
	return record, more, err
}

func (e *exploration) chooser(n node, more *[]node) Chooser {
	left, asleep, switched := n.past, n.asleep, 0
	return func(next Next) (int, error) {
		if len(left) > 0 {
			i := next.index(left[0])
			if i < 0 && next.byDefault() < 0 {
				return -1, nil
			}
			if i < 0 {
				return 0, unreachedError(fmt.Sprintf("%s: %s", n.past, next.Why(left[0])))
			}
			left = left[1:]
			switched += count(switches(next, next.Options[i]))
			return i, nil
		}
		var awake []int
		for i, o := range next.Options {
			if !o.Retry && (!o.RowHeld || e.search.Unpruned) && !within(asleep, o.Choice) && e.mayGo(switched, next, o) {
				awake = append(awake, i)
			}
		}
		steps := next.byDefault() >= 0 || next.arriving()
		switch {
		case !steps:
			// Time passes before anybody can go on. An event at this place would be one more
			// chance.
			if len(awake) == 0 {
				return -1, nil
			}
		case len(awake) == 0:
			return 0, errSeen
		}
		first := awake[0]
		if !steps {
			first = -1
		}
		before := slices.Clone(asleep)
		for _, i := range awake {
			o := next.Options[i]
			if i != first {
				*more = append(*more, node{append(slices.Clone(next.Past), o.Choice), e.stillAsleep(before, o)})
			}
			if !e.search.Unpruned {
				before = append(before, o)
			}
		}
		if first < 0 {
			return -1, nil
		}
		o := next.Options[first]
		asleep = e.stillAsleep(asleep, o)
		switched += count(switches(next, o))
		return first, nil
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// mayGo holds a search to its bound of switches.
func (e *exploration) mayGo(switched int, next Next, o Option) bool {
	return e.search.Switches == 0 || switched+count(switches(next, o)) <= e.search.Switches
}

// stillAsleep is what stays asleep after a choice: all that is independent of it.
func (e *exploration) stillAsleep(asleep []Option, after Option) []Option {
	var still []Option
	for _, o := range asleep {
		if independent(o, after, e.search.LocalClock) {
			still = append(still, o)
		}
	}
	return still
}

func within(all []Option, c Choice) bool {
	return slices.ContainsFunc(all, func(o Option) bool { return o.Choice == c })
}
