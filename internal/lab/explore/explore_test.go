package explore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/verdict"
)

// model is two or three plain sales on a row, as InnoDB serves them, without servers: SELECT,
// UPDATE, INSERT, COMMIT. Nobody is offered a row that is held. With guarded, a lock in Redis is taken before and released after.
type model struct {
	customers  int
	guarded    bool
	everything bool // the second customer may come first
}

var modelTexts = map[string]string{
	"select": "SELECT stock FROM items WHERE id = 7", "update": "UPDATE items SET stock = 1 WHERE id = 7",
	"insert": "INSERT INTO orders (item_id) VALUES (7)", "commit": "COMMIT", "set": "SET k 1 NX", "del": "DEL k",
}

// tables are those of a shop, as a stage would find them.
var tables = schedule.Schema{
	"items":  {Primary: []string{"id"}, Unique: []string{"id"}, Children: []string{"orders"}},
	"orders": {Primary: []string{"id"}, Unique: []string{"id", "public_id"}, Foreign: []string{"item_id"}, Parents: []string{"items"}},
}

// modelSale is one customer of a model.
type modelSale struct {
	steps []string
	next  int
	read  int
	tries int
}

// modelRun is one run of a model.
type modelRun struct {
	model
	sales          []modelSale
	stock, written int
	row, lock      int // of a customer, -1 for none
	orders         []schedule.Order
}

func (m model) play(ctx context.Context, choose func() Chooser) (schedule.Record, error) {
	steps := []string{"select", "update", "insert", "commit"}
	if m.guarded {
		steps = slices.Concat([]string{"set"}, steps, []string{"del"})
	}
	r := &modelRun{model: m, sales: make([]modelSale, m.customers), stock: m.customers - 1, row: -1, lock: -1}
	for i := range r.sales {
		r.sales[i].steps = steps
	}
	return Play(ctx, r, choose())
}

func (m *modelRun) Next(context.Context) (next Next, ended bool, err error) {
	next = Next{Why: func(c schedule.Choice) error { return errors.New(c.String() + " cannot be") }}
	for i, s := range m.sales {
		if s.next == len(s.steps) || !m.everything && i > 0 && m.sales[i-1].next == 0 {
			continue
		}
		name := s.steps[s.next]
		request := schedule.Request{Server: "mysql", Text: modelTexts[name], Tx: name == "update" || name == "insert"}
		if name == "set" || name == "del" {
			request.Server = "redis"
		}
		if name == "insert" || name == "commit" {
			request.Earlier = []schedule.Statement{{Text: modelTexts["update"], Matched: true}}
		}
		nth := 1
		if name == "set" {
			nth += s.tries
		}
		if name == "update" && m.row >= 0 && m.row != i {
			continue
		}
		next.Options = append(next.Options, Option{
			Choice: schedule.Choice{Customer: schedule.Customer('A' + i), Step: schedule.StepName(name, nth)}, Touches: tables.Touches(request),
			Retry: name == "set" && s.tries > 0 && m.lock >= 0,
		})
	}
	return next, len(next.Options) == 0, nil
}

func (m *modelRun) Pass(context.Context, Next) error { return errors.New("nobody can go on") }

func (m *modelRun) Take(_ context.Context, next Next, i int) error {
	c := next.Options[i].Choice
	s := &m.sales[c.Customer-'A']
	switch s.steps[s.next] {
	case "set":
		if m.lock >= 0 {
			s.tries++
			return nil
		}
		m.lock = int(c.Customer)
	case "del":
		m.lock = -1
	case "select":
		if s.read = m.stock; s.read == 0 {
			s.steps = slices.Concat(s.steps[:s.next+1], slices.DeleteFunc(slices.Clone(s.steps[s.next+1:]), func(n string) bool { return n != "del" }))
		}
	case "update":
		m.row, m.written = int(c.Customer-'A'), s.read-1
	case "commit":
		m.row, m.stock = -1, m.written
		m.orders = append(m.orders, schedule.Order{Read: int64(s.read), Written: int64(m.written)})
	}
	s.next++
	return nil
}

func (m *modelRun) Record(context.Context) (schedule.Record, error) {
	o := schedule.Outcome{Verdict: verdict.Held, Orders: m.orders}
	if n := len(m.orders) - (m.customers - 1); n > 0 {
		o.Verdict, o.N, o.Cause = verdict.Oversold, int64(n), verdict.NoLock
	}
	return schedule.Record{Outcome: o}, nil
}

func explored(t *testing.T, m model, s Search) Found {
	t.Helper()
	s.Slots = 3
	found, err := Explore(t.Context(), m.play, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestTheNumberOfSchedules holds enumeration to what was counted by hand: the second SELECT lies at
// one of five places beside the first customer's four steps, for two customers who may come first.
func TestTheNumberOfSchedules(t *testing.T) {
	if got := explored(t, model{customers: 2}, Search{}); got.Runs >= 5 || got.Bad == 0 {
		t.Errorf("two plain sales: %d runs, %d bad, want fewer than five, and bad ones", got.Runs, got.Bad)
	}
	// The model does not wait for rows: UPDATE of a held row would overwrite at once.
	if got := explored(t, model{customers: 2, everything: true}, Search{Unpruned: true}); got.Runs != 10 || got.Bad != 8 {
		t.Errorf("two plain sales, unpruned: %d runs, %d bad, want 10 and 8", got.Runs, got.Bad)
	}
}

func TestPruningLosesNoOutcome(t *testing.T) {
	for m, most := range map[model]int{{}: 3, {guarded: true}: 2} {
		for m.customers = 2; m.customers <= most; m.customers++ {
			pruned := explored(t, m, Search{})
			whole := m
			whole.everything = true
			all := explored(t, whole, Search{Unpruned: true})
			if !slices.Equal(slices.Sorted(maps.Keys(pruned.Outcomes)), slices.Sorted(maps.Keys(all.Outcomes))) || pruned.Runs >= all.Runs {
				t.Errorf("%+v: pruned %d runs %v, all %d runs %v", m, pruned.Runs, pruned.Outcomes, all.Runs, all.Outcomes)
			}
			t.Logf("%+v: %d runs of %d", m, pruned.Runs, all.Runs)
		}
	}
}

func TestABoundOfSwitches(t *testing.T) {
	runs := map[int]int{} // by the bound, 0 for none
	for _, switches := range []int{1, 2, 3, 0} {
		runs[switches] = explored(t, model{customers: 4, guarded: true}, Search{Switches: switches}).Runs
	}
	if runs[1] >= runs[2] || runs[2] >= runs[3] || runs[3] > runs[0] {
		t.Errorf("runs by the bound of switches: %v, want more of each higher one, and most without", runs)
	}
}

// writers each write to some things, one after the other. In which order shows.
type writers struct {
	left  [][]string
	wrote map[string]string // by thing: by whom
	made  []int
}

func (w *writers) Next(context.Context) (next Next, ended bool, err error) {
	next.Why = func(c schedule.Choice) error { return errors.New(c.String() + " cannot be") }
	for i, left := range w.left {
		if len(left) > 0 {
			next.Options = append(next.Options, Option{
				Choice:  schedule.Choice{Customer: schedule.Customer('A' + i), Step: fmt.Sprint("s", w.made[i])},
				Touches: []schedule.Touch{{Server: "redis", Thing: left[0], Does: schedule.Writes}},
			})
		}
	}
	return next, len(next.Options) == 0, nil
}

func (w *writers) Pass(context.Context, Next) error { return errors.New("nobody can go on") }

func (w *writers) Take(_ context.Context, next Next, i int) error {
	c := next.Options[i].Choice.Customer
	left := &w.left[c-'A']
	w.wrote[(*left)[0]] += c.String()
	*left = (*left)[1:]
	w.made[c-'A']++
	return nil
}

func (w *writers) Record(context.Context) (schedule.Record, error) {
	return schedule.Record{Outcome: schedule.Outcome{Verdict: verdict.Held, Cause: verdict.Cause(fmt.Sprint(w.wrote))}}, nil
}

// TestEveryScheduleOfABound: the equivalent one in whose place another is left out may exceed the bound.
func TestEveryScheduleOfABound(t *testing.T) {
	outcomes := func(s Search) []string {
		found, err := Explore(t.Context(), func(ctx context.Context, choose func() Chooser) (schedule.Record, error) {
			return Play(ctx, &writers{[][]string{{"y", "z", "x"}, {"y", "x", "x", "y"}}, map[string]string{}, make([]int, 2)}, choose())
		}, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Sorted(maps.Keys(found.Outcomes))
	}
	for switches := 1; switches <= 4; switches++ {
		want := outcomes(Search{Switches: switches, Unpruned: true})
		if got := outcomes(Search{Switches: switches, Every: true}); !slices.Equal(got, want) {
			t.Errorf("%d switches: %v, want %v", switches, got, want)
		}
		if few := outcomes(Search{Switches: switches}); (len(few) < len(want)) != (switches < 3) {
			t.Errorf("%d switches: pruning leaves %d outcomes of %d", switches, len(few), len(want))
		}
	}
}

// polling is a customer who polls three times for a lock whose lease then ends, where an event can end it at once.
type polling struct {
	polls          int
	happened, done bool
}

func (p *polling) Next(context.Context) (next Next, ended bool, err error) {
	next.Options = []Option{{Choice: schedule.Choice{Customer: 'A', Step: "set"}, Retry: p.polls < 3 && !p.happened}}
	if !p.happened {
		next.Options = append(next.Options, Option{Choice: schedule.Choice{Event: schedule.Wait}, Touches: schedule.Everything("")})
	}
	return next, p.done, nil
}

func (p *polling) Pass(context.Context, Next) error { p.polls++; return nil }

func (p *polling) Take(_ context.Context, next Next, i int) error {
	p.happened, p.done = p.happened || i == 1, i == 0
	return nil
}

func (p *polling) Record(context.Context) (schedule.Record, error) {
	return schedule.Record{Outcome: schedule.Outcome{Verdict: verdict.Held}}, nil
}

// TestAnEventWhileTimePasses is one more run, however often somebody polls meanwhile.
func TestAnEventWhileTimePasses(t *testing.T) {
	found, err := Explore(t.Context(), func(ctx context.Context, choose func() Chooser) (schedule.Record, error) {
		return Play(ctx, &polling{}, choose())
	}, Search{}, nil)
	if err != nil || found.Runs != 2 {
		t.Errorf("%d runs, %v, want one with the event and one without", found.Runs, err)
	}
}

// TestARunThatFailedIsTriedOnceMore: what could not be played beside other runs is played alone.
func TestARunThatFailedIsTriedOnceMore(t *testing.T) {
	const about = "A.select B.select A.update A.insert A.commit B.update B.insert B.commit"
	for at, givenUp := range map[int]int{1: 0, 2: 0, 3: 1} {
		var asked atomic.Int64
		play := model{customers: 2, everything: true}.play
		moody := func(ctx context.Context, choose func() Chooser) (schedule.Record, error) {
			r, err := play(ctx, choose)
			if err == nil && r.Played.String() == about && asked.Add(1) < int64(at) {
				err = ErrGivenUp
			}
			return r, err
		}
		found, err := Explore(t.Context(), moody, Search{Unpruned: true, Slots: 3}, nil)
		if err != nil || found.Runs == 10 != (givenUp == 0) || len(found.GivenUp) != givenUp {
			t.Errorf("played when asked %d times: %d runs of 10, given up %v, %v, want %d given up", at, found.Runs, found.GivenUp, err, givenUp)
		}
	}
}

// TestWhatWasNotTriedAlone before the search ended is not known, or was not reached again.
func TestWhatWasNotTriedAlone(t *testing.T) {
	for _, why := range []error{ErrGivenUp, fmt.Errorf("%w: %w", ErrGivenUp, unreachedError("there"))} {
		runs := 0
		found, err := Explore(t.Context(), func(ctx context.Context, choose func() Chooser) (schedule.Record, error) {
			r, err := model{customers: 2}.play(ctx, choose)
			if runs++; err == nil && runs == 3 {
				err = why
			}
			return r, err
		}, Search{Unpruned: true, Enough: func() bool { return runs >= 4 }}, nil)
		unreached := why != ErrGivenUp
		if err != nil || !found.Limited() || len(found.GivenUp) > 0 == unreached || len(found.Unreached) > 0 != unreached {
			t.Errorf("%v: given up %v, unreached %v, %d runs, limited %v, %v", why, found.GivenUp, found.Unreached, runs, found.Limited(), err)
		}
	}
}

// TestWhatWasFoundStays although the search cannot go on: too many runs are given up, beside each other or alone, or one fails.
func TestWhatWasFoundStays(t *testing.T) {
	broken := errors.New("no server")
	for _, fails := range []error{ErrGivenUp, broken} {
		runs := 0
		found, err := Explore(t.Context(), func(ctx context.Context, choose func() Chooser) (schedule.Record, error) {
			r, err := model{customers: 3}.play(ctx, choose)
			if err == nil {
				if runs++; runs > 10 {
					err = fails
				}
			}
			return r, err
		}, Search{Unpruned: true}, nil)
		gaveUp := fails == ErrGivenUp
		if found.Runs != 10 || found.Bad == 0 || len(found.Shortest) != 1 || !found.Limited() || found.Unknown().IsZero() == gaveUp || gaveUp && (err != nil || len(found.GivenUp) != maxGivenUp+1) || !gaveUp && err != broken {
			t.Errorf("%v: %d bad, shortest %v, limited %v, unknown %q, %v", fails, found.Bad, found.Causes(), found.Limited(), found.Unknown(), err)
		}
	}
}

// TestAPlaceThatIsNotReachedAgain decides nothing, behind the request of the first customer behind which it lies.
func TestAPlaceThatIsNotReachedAgain(t *testing.T) {
	for place, held := range map[string]bool{"A.select B.select B.update": true, "A.select B.select": false} {
		found, err := Explore(t.Context(), func(ctx context.Context, choose func() Chooser) (schedule.Record, error) {
			r, err := model{customers: 2}.play(ctx, choose)
			if r.Behind, r.Customers = r.Played.Behind(), 2; err == nil && strings.HasPrefix(r.Played.String(), place) {
				err = fmt.Errorf("%w: %w", ErrGivenUp, unreachedError(place))
			}
			return r, err
		}, Search{Unpruned: true}, nil)
		decided := found.Decided()
		if err != nil || len(found.Unreached) == 0 || decided.Undecided != len(found.Unreached) || decided.Held() != held || !strings.Contains(decided.String(), "not reached again (") {
			t.Errorf("%s: unreached %v, %s, held: %v, %v", place, found.Unreached, decided, decided.Held(), err)
		}
	}
}
