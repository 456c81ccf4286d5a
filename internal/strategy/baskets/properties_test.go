package baskets

import (
	"errors"
	"slices"
	"testing"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/ladder"
	"stocklock/internal/strategy/strategytest"
)

// shown has what can be seen of a property inside one process: whether a way keeps it. Unstarved takes others
// who come in between, again and again, and is seen only in the lab.
var shown = map[declared.Property]func(t *testing.T, way ladder.Rung, d strategy.Deps) (kept bool){
	declared.Crossable:     crossed,
	declared.AddsUp:        sameItemTwice,
	declared.Isolated:      oneSoldOut,
	declared.Whole:         deathBetweenLines,
	declared.FreesLocks:    deathBetweenLocks,
	declared.OvertakeProof: firstLockEnds,
}

// TestAWayKeepsWhatItDeclares wants each property kept by the ways that declare it, and broken by the others.
// No way here is overtake-proof, so the strategies for production show how that is kept.
func TestAWayKeepsWhatItDeclares(t *testing.T) {
	d := strategytest.Deps(t)
	for _, way := range slices.Concat(All(), ladder.Production()) {
		for _, p := range declared.BasketProperties() {
			show, ok := shown[p]
			standing := way.Declared.Baskets.Standing(p)
			if !ok || standing == declared.NotApplicable || !way.Declared.OnlyBaskets && p != declared.OvertakeProof {
				continue
			}
			t.Run(way.Name+"/"+p.String(), func(t *testing.T) {
				if kept := show(t, way, d); kept != (standing == declared.Has) {
					t.Errorf("%s %s %s; it was seen kept: %v", way.Name, standing, p, kept)
				}
			})
		}
	}
}

// soon is the time to wait of those who wait in vain.
func soon(o strategy.Options) strategy.Options {
	o.Wait = 100 * time.Millisecond
	return o
}

// crossed has two customers meet, each of whom has its first item, or waits.
func crossed(t *testing.T, way ladder.Rung, d strategy.Deps) bool {
	s := newScene(t, way, d, 3, 3)
	o := d.Options
	if !way.Declared.Baskets.Meets(declared.Crossable) {
		o = soon(o) // where both have one lock and wait for the other, only time ends it
	}
	var a, b *customer
	both := make(chan struct{})
	a = s.order(o, s.meeting(), func() { <-both; s.keptOut(b, s.meeting()) }, 0, 1)
	b = s.order(o, s.meeting(), func() { <-both; s.keptOut(a, s.meeting()) }, 1, 0)
	close(both)
	a.ended.Wait()
	b.ended.Wait()
	for _, err := range []error{a.err, b.err} {
		if err != nil && !errors.Is(err, strategy.ErrBusy) {
			t.Errorf("a customer: %v", err)
		}
	}
	return a.err == nil && b.err == nil
}

// sameItemTwice has another item between the two lines.
func sameItemTwice(t *testing.T, way ladder.Rung, d strategy.Deps) bool {
	s := newScene(t, way, d, 1, 2)
	c := s.buy(d.Options, 0, 1, 0)
	if c.has(sale.Waiting) {
		t.Error("it has waited for itself")
	}
	err, sold, left := c.err, s.sold(0), s.units()
	switch {
	case errors.Is(err, stock.ErrSoldOut) && sold == 0 && slices.Equal(left, []int64{1, 2}):
		return true
	case err != nil || sold != 2:
		t.Errorf("%d units of 1 were sold, and %d are left: %v", sold, left, err)
	}
	return false
}

// meanwhile has A buy both items. When it has the first one, B wants that, and is answered or waits before A
// goes on.
func (s *scene) meanwhile() (a, b *customer) {
	s.Helper()
	ordered := make(chan struct{})
	a = s.order(s.Options, s.meeting(), func() { <-ordered; s.keptOut(b, sale.Written) }, 0, 1)
	s.await(a, s.meeting())
	b = s.order(s.Options, "", func() {}, 0)
	close(ordered)
	a.ended.Wait()
	b.ended.Wait()
	return a, b
}

// oneSoldOut has B want an item while A has it, and is going to be refused another one.
func oneSoldOut(t *testing.T, way ladder.Rung, d strategy.Deps) bool {
	s := newScene(t, way, d, 1, 0)
	a, b := s.meanwhile()
	if !errors.Is(a.err, stock.ErrSoldOut) {
		t.Errorf("a basket with an item that is sold out: %v", a.err)
	}
	left := int64(1)
	if !way.Declared.Baskets.Meets(declared.Complete) { // A has it for good
		left = 0
	}
	if b.err != nil && (!errors.Is(b.err, stock.ErrSoldOut) || s.units()[0] != left) {
		t.Errorf("%d units are left: %v", s.units(), b.err)
	}
	return b.err == nil
}

// deathBetweenLines ends the connections to MySQL of a customer who does nothing any more. Its locks in
// Redis are not looked at.
func deathBetweenLines(t *testing.T, way ladder.Rung, d strategy.Deps) bool {
	s := newScene(t, way, d, 3, 3)
	counted := make(chan struct{})
	a := s.order(d.Options, sale.Taken, func() { <-counted }, 0, 1)
	defer a.ended.Wait()
	defer close(counted)
	s.await(a, sale.Taken)
	if a.over.Load() {
		t.Fatalf("it did not come between two lines: %v", a.err)
	}
	s.endTransactions()
	return slices.Equal(s.units(), []int64{3, 3})
}

// endTransactions ends the connections of all customers, as the end of their process does.
func (s *scene) endTransactions() {
	s.Helper()
	conn, err := s.Store.Pool().Conn(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	defer conn.Close()
	rows, err := conn.QueryContext(s.Context(), "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()")
	if err != nil {
		s.Fatal(err)
	}
	defer rows.Close()
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			s.Fatal(err)
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		_, _ = conn.ExecContext(s.Context(), "KILL ?", id) // it may have ended
	}
}

// deathBetweenLocks has a customer do nothing any more when it has its first lock. Another one gets that
// lock if it has an end.
func deathBetweenLocks(t *testing.T, way ladder.Rung, d strategy.Deps) bool {
	s := newScene(t, way, d, 3, 3)
	dead, after := d.Options, d.Options
	dead.Lease = 200 * time.Millisecond
	answered := make(chan struct{})
	a := s.order(dead, sale.Acquired, func() { <-answered }, 0, 1)
	defer a.ended.Wait()
	defer close(answered)
	s.await(a, sale.Acquired)
	locks := way.Declared.State.Locks
	if len(locks) == 0 {
		locks = []string{"%s"}
	}
	left, err := d.Redis.PTTL(t.Context(), declared.KeysOf(locks, s.items[0].ID)[0]).Result()
	if err != nil {
		t.Fatal(err)
	}
	endless := left == -1
	if endless {
		after = soon(after)
	}
	b := s.buy(after, 0, 1)
	if b.err != nil && (!endless || !errors.Is(b.err, strategy.ErrBusy)) || b.err == nil && endless {
		t.Errorf("a lock without an end: %v; the next customer: %v", endless, b.err)
	}
	return b.err == nil
}

// firstLockEnds deletes the first lock of A, as its expiry does, before A has its last one. B has that lock
// and has read when A goes on, and writes after it.
func firstLockEnds(t *testing.T, way ladder.Rung, d strategy.Deps) bool {
	s := newScene(t, way, d, 1, 1)
	overtaken, written := make(chan struct{}), make(chan struct{})
	a := s.order(d.Options, sale.Acquired, func() { <-overtaken }, 0, 1)
	s.await(a, sale.Acquired)
	locked := func() []string {
		keys, err := d.Redis.Keys(t.Context(), "*"+sale.Key(s.items[0].ID)+"*").Result()
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	if err := d.Redis.Del(t.Context(), locked()...).Err(); err != nil {
		t.Fatal(err)
	}
	b := s.order(d.Options, sale.Read, func() { <-written }, 0)
	s.await(b, sale.Read)
	close(overtaken)
	a.ended.Wait()
	if !b.over.Load() && len(locked()) == 0 {
		t.Error("A has released the lock of B")
	}
	close(written)
	b.ended.Wait()
	sold, left := s.sold(0), s.units()
	if sold > 2 || left[0] != 0 || sold == 2 && (a.err != nil || b.err != nil) {
		t.Errorf("%d units of 1 were sold, and %d are left: %v, %v", sold, left, a.err, b.err)
	}
	return sold == 1
}

// TestTheLastUnitIsSoldOnce has B want the last unit of an item while A has it.
func TestTheLastUnitIsSoldOnce(t *testing.T) {
	d := strategytest.Deps(t)
	for _, way := range All() {
		t.Run(way.Name, func(t *testing.T) {
			s := newScene(t, way, d, 1, 1)
			a, b := s.meanwhile()
			if sold, left := s.sold(0), s.units(); a.err != nil || !errors.Is(b.err, stock.ErrSoldOut) || sold != 1 || !slices.Equal(left, []int64{0, 0}) {
				t.Errorf("%d units of 1 were sold, and %d are left: %v, %v", sold, left, a.err, b.err)
			}
		})
	}
}

// TestOnlyUnsortedRowsMeetADeadlock: both ways sell both baskets, one of them because MySQL ends a circle.
func TestOnlyUnsortedRowsMeetADeadlock(t *testing.T) {
	for _, way := range []ladder.Rung{rowsUnsorted, rowsSorted} {
		d := strategytest.Deps(t)
		if !crossed(t, way, d) {
			t.Errorf("%s did not sell both", way.Name)
		}
		if n := d.Store.Deadlocks(); (n == 1) != (way.Name == rowsUnsorted.Name) || n > 1 {
			t.Errorf("%s met %d deadlocks", way.Name, n)
		}
	}
}
