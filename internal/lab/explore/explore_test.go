package explore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/step/steptest"
	"stocklock/internal/lab/verdict"
)

// model is two or three plain sales on a row, as InnoDB serves them, without servers: SELECT,
// UPDATE, INSERT, COMMIT. With guarded, a lock in Redis is taken before and given back after.
type model struct{ guarded bool }

var modelTexts = map[string]string{
	"select": "SELECT stock FROM items WHERE id = 7", "update": "UPDATE items SET stock = 1 WHERE id = 7",
	"insert": "INSERT INTO orders (item_id) VALUES (7)", "commit": "COMMIT", "set": "SET k 1 NX", "del": "DEL k",
}

// tables are those of a shop, as a stage would find them.
var tables = schedule.Schema{
	"items":  {Primary: []string{"id"}, Unique: []string{"id"}, Children: []string{"orders"}},
	"orders": {Primary: []string{"id"}, Unique: []string{"id", "public_id"}, Foreign: []string{"item_id"}, Parents: []string{"items"}},
}

func (model) Slots([]schedule.Event) int { return 3 }

// sale is one customer of a model.
type modelSale struct {
	steps []string
	next  int
	read  int
	tries int
}

func (m model) Play(_ context.Context, p step.Plan, choose func() step.Chooser) (schedule.Record, error) {
	steps := []string{"select", "update", "insert", "commit"}
	if m.guarded {
		steps = slices.Concat([]string{"set"}, steps, []string{"del"})
	}
	sales := make([]modelSale, p.Customers)
	for i := range sales {
		sales[i].steps = steps
	}
	stock, written, row, lock := p.Customers-1, 0, -1, -1
	var orders []schedule.Order
	var past schedule.Schedule
	chooser := choose()
	for {
		next := step.Next{Past: past, Why: func(c schedule.Choice) string { return c.String() + " cannot be" }}
		for i, s := range sales {
			if s.next == len(s.steps) || !p.Everything && i > 0 && sales[i-1].next == 0 {
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
			next.Options = append(next.Options, step.Option{
				Choice: schedule.Choice{Customer: schedule.Customer('A' + i), Step: schedule.StepName(name, nth)}, Touches: tables.Touches(request),
				RowHeld: name == "update" && row >= 0 && row != i, Retry: name == "set" && s.tries > 0 && lock >= 0,
			})
		}
		if len(next.Options) == 0 {
			break
		}
		i, err := chooser(next)
		if err != nil {
			return schedule.Record{}, err
		}
		if i < 0 {
			return schedule.Record{}, fmt.Errorf("%s: nobody can go on", past)
		}
		c := next.Options[i].Choice
		past = append(past, c)
		s := &sales[c.Customer-'A']
		switch s.steps[s.next] {
		case "set":
			if lock >= 0 {
				s.tries++
				continue
			}
			lock = int(c.Customer)
		case "del":
			lock = -1
		case "select":
			if s.read = stock; s.read == 0 {
				s.steps = slices.Concat(s.steps[:s.next+1], slices.DeleteFunc(slices.Clone(s.steps[s.next+1:]), func(n string) bool { return n != "del" }))
			}
		case "update":
			row, written = int(c.Customer-'A'), s.read-1
		case "commit":
			row, stock = -1, written
			orders = append(orders, schedule.Order{Read: int64(s.read), Written: int64(written)})
		}
		s.next++
	}
	o := schedule.Outcome{Verdict: verdict.Held, Orders: orders}
	if n := len(orders) - (p.Customers - 1); n > 0 {
		o.Verdict, o.N, o.Cause = verdict.Oversold, int64(n), verdict.NoLock
	}
	return schedule.Record{Outcome: o, Schedule: past, Played: past}, nil
}

func explore(t *testing.T, m Player, s Search) Found {
	t.Helper()
	if s.Unpruned {
		s.Everything = true
	}
	found, err := Explore(t.Context(), m, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestTheNumberOfSchedules holds enumeration to what was counted by hand: the second SELECT lies at
// one of five places beside the first customer's four steps, for two customers who may come first.
func TestTheNumberOfSchedules(t *testing.T) {
	two := Search{Plan: step.Plan{Customers: 2}}
	if got := explore(t, rowBound{}, two); got.Runs >= 5 || got.Bad == 0 {
		t.Errorf("two plain sales: %d runs, %d bad, want fewer than five, and bad ones", got.Runs, got.Bad)
	}
	all := two
	all.Unpruned = true
	// The model does not wait for rows: UPDATE of a held row would overwrite at once.
	if got := explore(t, rowBound{}, all); got.Runs != 10 || got.Bad != 8 {
		t.Errorf("two plain sales, unpruned: %d runs, %d bad, want 10 and 8", got.Runs, got.Bad)
	}
}

// rowBound is a model in which nobody is offered a row that is held.
type rowBound struct{ model }

func (m rowBound) Play(ctx context.Context, p step.Plan, choose func() step.Chooser) (schedule.Record, error) {
	return m.model.Play(ctx, p, func() step.Chooser {
		chooser := choose()
		return func(next step.Next) (int, error) {
			kept := next
			kept.Options = slices.DeleteFunc(slices.Clone(next.Options), func(o step.Option) bool { return o.RowHeld })
			i, err := chooser(kept)
			if err != nil || i < 0 {
				return i, err
			}
			return next.Index(kept.Options[i].Choice), nil
		}
	})
}

func TestPruningLosesNoOutcome(t *testing.T) {
	for m, most := range map[Player]int{rowBound{}: 3, rowBound{model{guarded: true}}: 2} {
		for customers := 2; customers <= most; customers++ {
			pruned, err := Explore(t.Context(), m, Search{Plan: step.Plan{Customers: customers}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			all, err := Explore(t.Context(), m, Search{Plan: step.Plan{Customers: customers, Everything: true}, Unpruned: true}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(slices.Sorted(maps.Keys(pruned.outcomes)), slices.Sorted(maps.Keys(all.outcomes))) || pruned.Runs >= all.Runs {
				t.Errorf("%+v, %d customers: pruned %d runs %v, all %d runs %v", m, customers, pruned.Runs, pruned.outcomes, all.Runs, all.outcomes)
			}
			t.Logf("%+v, %d customers: %d runs of %d", m, customers, pruned.Runs, all.Runs)
		}
	}
}

func TestABoundOfSwitches(t *testing.T) {
	m := rowBound{model{guarded: true}}
	before := 0
	for _, switches := range []int{1, 2, 3, 0} {
		found, err := Explore(t.Context(), m, Search{Plan: step.Plan{Customers: 3}, Switches: switches}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if found.Runs < before {
			t.Errorf("with at most %d switches %d runs, fewer than with less: %d", switches, found.Runs, before)
		}
		before = found.Runs
	}
}

// moody is a player that plays one of its runs only when it is asked for it so many times.
type moody struct {
	Player
	about string
	at    int
	mu    sync.Mutex // guards asked
	asked int
}

func (m *moody) Play(ctx context.Context, p step.Plan, choose func() step.Chooser) (schedule.Record, error) {
	r, err := m.Player.Play(ctx, p, choose)
	if err != nil || r.Schedule.String() != m.about {
		return r, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asked++; m.asked < m.at {
		return schedule.Record{}, step.ErrGivenUp
	}
	return r, nil
}

// TestARunThatFailedIsTriedOnceMore: what could not be played beside other runs is played alone.
func TestARunThatFailedIsTriedOnceMore(t *testing.T) {
	search := Search{Plan: step.Plan{Customers: 2, Everything: true}, Unpruned: true}
	const about = "A.select B.select A.update A.insert A.commit B.update B.insert B.commit"
	for at, givenUp := range map[int]int{1: 0, 2: 0, 3: 1} {
		found, err := Explore(t.Context(), &moody{Player: rowBound{}, about: about, at: at}, search, nil)
		if err != nil || found.Runs == 10 != (givenUp == 0) || len(found.GivenUp) != givenUp {
			t.Errorf("played when asked %d times: %d runs of 10, given up %v, %v, want %d given up", at, found.Runs, found.GivenUp, err, givenUp)
		}
	}
}

// TestExplorations explores on real servers what stops no process.
func TestExplorations(t *testing.T) {
	s := steptest.Open(t, "", step.Options{Lease: 300 * time.Millisecond})
	t.Run("explorations find what the strategies' properties say", func(t *testing.T) {
		for _, tt := range []struct {
			strategy string
			events   []schedule.Event
			causes   []verdict.Cause
		}{
			{"none", nil, []verdict.Cause{verdict.NoLock}},
			{"lock-in-transaction", nil, []verdict.Cause{verdict.LateCommit}},
			{"snapshot-before-lock", nil, []verdict.Cause{verdict.OldSnapshot}},
			{"lock-then-for-update", nil, nil},
			{"conditional", []schedule.Event{schedule.Wait, schedule.Forget, schedule.Lose}, nil},
			{"get-lock", []schedule.Event{schedule.Lose}, nil},
			{"owner-get-del", []schedule.Event{schedule.Wait}, []verdict.Cause{verdict.Overrun}},
			{"fenced", []schedule.Event{schedule.Lag}, []verdict.Cause{verdict.ReadBehind}},
			{"fenced-relative", []schedule.Event{schedule.Lag}, nil},
		} {
			v := Survey{Strategy: tt.strategy, Events: tt.events, Customers: 2}
			err := v.Run(t.Context(), s, func(Result, int, int) {}, func(r Result) {
				if !slices.Equal(r.Found.Causes(), tt.causes) || len(r.Surprises) > 0 || r.Found.Runs == 0 {
					t.Errorf("%s, %s: %d runs, causes %v, surprises %v, want causes %v", r.Strategy, r.Name(), r.Found.Runs, r.Found.Causes(), r.Surprises, tt.causes)
				}
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("two plain sales without pruning", func(t *testing.T) {
		found, err := Explore(t.Context(), s, Search{Plan: step.Plan{Strategy: "none", Customers: 2, Everything: true}, Unpruned: true}, nil)
		if err != nil || found.Runs != 24 || found.outcomes["oversold no-lock 1→0 1→0"] == 0 || found.outcomes["held  1→0"] == 0 {
			t.Errorf("%d runs, %v, %v, want 24", found.Runs, found.outcomes, err)
		}
	})
}
