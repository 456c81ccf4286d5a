package schedule

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
)

// model is two or three plain sales on a row, as InnoDB serves them, without servers: SELECT,
// UPDATE, INSERT, COMMIT. With guarded, a lock in Redis is taken before and given back after.
type model struct{ guarded bool }

func (model) Lanes([]Event) int { return 3 }

// sale is one customer of a model.
type modelSale struct {
	steps []string
	next  int
	read  int
	tries int
}

func (m model) Play(_ context.Context, p Plan, choose func() Chooser) (Record, error) {
	steps := []string{"select", "update", "insert", "commit"}
	if m.guarded {
		steps = slices.Concat([]string{"set"}, steps, []string{"del"})
	}
	sales := make([]modelSale, p.Customers)
	for i := range sales {
		sales[i].steps = steps
	}
	stock, written, row, lock := p.Customers-1, 0, -1, -1
	var orders []Order
	var past Schedule
	chooser := choose()
	for {
		next := Next{Past: past, Why: func(c Choice) string { return c.String() + " cannot be" }}
		for i, s := range sales {
			if s.next == len(s.steps) || !p.Everything && i > 0 && sales[i-1].next == 0 {
				continue
			}
			name := s.steps[s.next]
			server, text := "mysql", map[string]string{"select": "SELECT", "update": "UPDATE", "insert": "INSERT", "commit": "COMMIT"}[name]
			if text == "" {
				server, text = "redis", name
			}
			next.Options = append(next.Options, Option{
				Choice: Choice{Customer: Customer('A' + i), Step: stepName(name, 1+s.tries*count(name == "set"))}, Request: Request{Server: server, Text: text},
				RowHeld: name == "update" && row >= 0 && row != i, Retry: name == "set" && s.tries > 0 && lock >= 0,
			})
		}
		if len(next.Options) == 0 {
			break
		}
		i, err := chooser(next)
		if err != nil {
			return Record{}, err
		}
		if i < 0 {
			return Record{}, fmt.Errorf("%s: nobody can go on", past)
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
			orders = append(orders, Order{Read: int64(s.read), Written: int64(written)})
		}
		s.next++
	}
	o := Outcome{Verdict: Held, Orders: orders}
	if n := len(orders) - (p.Customers - 1); n > 0 {
		o.Verdict, o.N, o.Cause = Oversold, int64(n), NoLock
	}
	return Record{Outcome: o, Schedule: past, Listed: past.String(), chosen: past}, nil
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
	two := Search{Plan: Plan{Customers: 2}}
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

func (m rowBound) Play(ctx context.Context, p Plan, choose func() Chooser) (Record, error) {
	return m.model.Play(ctx, p, func() Chooser {
		chooser := choose()
		return func(next Next) (int, error) {
			kept := next
			kept.Options = slices.DeleteFunc(slices.Clone(next.Options), func(o Option) bool { return o.RowHeld })
			i, err := chooser(kept)
			if err != nil || i < 0 {
				return i, err
			}
			return next.index(kept.Options[i].Choice), nil
		}
	})
}

func TestPruningLosesNoOutcome(t *testing.T) {
	for _, m := range []Player{rowBound{}, rowBound{model{guarded: true}}} {
		for customers := 2; customers <= 2+count(m == Player(rowBound{})); customers++ {
			pruned, err := Explore(t.Context(), m, Search{Plan: Plan{Customers: customers}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			all, err := Explore(t.Context(), m, Search{Plan: Plan{Customers: customers, Everything: true}, Unpruned: true}, nil)
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
		found, err := Explore(t.Context(), m, Search{Plan: Plan{Customers: 3}, Switches: switches}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if found.Runs < before {
			t.Errorf("with at most %d switches %d runs, fewer than with less: %d", switches, found.Runs, before)
		}
		before = found.Runs
	}
}

func TestTheShortestOfTwo(t *testing.T) {
	record := func(text string) Record {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return Record{Schedule: s}
	}
	for _, tt := range []struct{ shorter, longer string }{
		{"A.a B.b B.c A.d", "A.a wait"},          // fewer events
		{"A.a A.b A.c B.d", "A.a B.b A.c"},       // fewer changes
		{"A.a B.b", "A.a A.b B.b"},               // fewer steps
		{"A.a wait B.b", "A.a wait B.b forget"},  // fewer events
		{"A.a wait A.b B.b", "A.a B.b wait A.b"}, // an event is no change
	} {
		if CompareLength(record(tt.shorter), record(tt.longer)) >= 0 {
			t.Errorf("%q is not shorter than %q", tt.shorter, tt.longer)
		}
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

func (m *moody) Play(ctx context.Context, p Plan, choose func() Chooser) (Record, error) {
	r, err := m.Player.Play(ctx, p, choose)
	if err != nil || r.Listed != m.about {
		return r, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asked++; m.asked < m.at {
		return Record{}, errGivenUp
	}
	return r, nil
}

// TestARunThatFailedIsTriedOnceMore: what could not be played beside other runs is played alone.
func TestARunThatFailedIsTriedOnceMore(t *testing.T) {
	search := Search{Plan: Plan{Customers: 2, Everything: true}, Unpruned: true}
	const about = "A.select B.select A.update A.insert A.commit B.update B.insert B.commit"
	for at, givenUp := range map[int]int{1: 0, 2: 0, 3: 1} {
		found, err := Explore(t.Context(), &moody{Player: rowBound{}, about: about, at: at}, search, nil)
		if err != nil || found.Runs == 10 != (givenUp == 0) || len(found.GivenUp) != givenUp {
			t.Errorf("played when asked %d times: %d runs of 10, given up %v, %v, want %d given up", at, found.Runs, found.GivenUp, err, givenUp)
		}
	}
}
