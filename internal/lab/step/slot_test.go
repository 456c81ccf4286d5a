package step

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stocklock/internal/lab/bench"
	"stocklock/internal/lab/catalog/catalogtest"
	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/seen"
	"stocklock/internal/stock"
	"stocklock/internal/testserver"
)

func newRig(t *testing.T) *rig.Rig {
	t.Helper()
	testserver.NeedsServers(t)
	r, err := rig.New("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// TestAReplicaThatDidNotStart is restored before the next run: a failover without one would change nothing.
func TestAReplicaThatDidNotStart(t *testing.T) {
	l := &slot{database: &database{}}
	var err error
	if l.Testbed, err = newRig(t).Testbed(t.Context(), rig.TestbedOptions{Name: "none", Faults: true}); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	run := &shopsRun{slot: l}
	if err := run.inject(over, schedule.Choice{Event: schedule.Failover}); err != nil {
		t.Fatalf("a failover that is given up is half of one: %v", err)
	}
	if err := l.restarted(over); err == nil {
		t.Error("a replica has started in no time")
	}
	if err := l.restarted(t.Context()); err != nil || !l.Replica().Alive() {
		t.Errorf("the next run has no replica, %v", err)
	}
}

// TestAPairThatIsRestoredAgain is whole, and has its data, although restoring it was given up before: while a server was to
// start, and while the two were to be looked at.
func TestAPairThatIsRestoredAgain(t *testing.T) {
	d, err := (&Shops{servers: &bench.Bench{Rig: newRig(t)}}).openPair(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	item, err := d.store.CreateItem(t.Context(), "item", 1)
	if err == nil {
		err = d.copied(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&shopsRun{slot: &slot{database: d}}).inject(over, schedule.Choice{Event: schedule.DBFailover}); err != nil {
		t.Fatalf("a failover that is given up is half of one: %v", err)
	}
	if err := d.restore(over); err == nil {
		t.Error("a replica has started in no time")
	}
	whole := func() {
		t.Helper()
		if err := d.restore(t.Context()); err != nil {
			t.Fatal(err)
		}
		if there, err := d.replica.Read(t.Context(), item.ID); err != nil || there.Stock != 1 || d.front.LeadsTo() != d.pair.Primary.Addr {
			t.Errorf("the replica has %+v, %v, and the shops write to %s, with %s as the primary", there, err, d.front.LeadsTo(), d.pair.Primary.Addr)
		}
	}
	whole()
	if err := d.look(over); err == nil {
		t.Error("the servers are looked at in no time")
	}
	whole()
	if err := d.close(); err != nil {
		t.Error(err)
	}
}

// TestARunWithReservations is the only one, and leaves nothing under way: its sweep would meet others. So would those of shops
// that have sold by reservations: each sweeps all the time.
func TestARunWithReservations(t *testing.T) {
	s, err := OpenShops(t.Context(), catalogtest.Shop(t), Options{Lease: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if _, err := s.Play(t.Context(), Plan{Strategy: "reservation", Customers: 2}, func() explore.Chooser { return explore.Follow(nil) }); err != nil {
		t.Fatal(err)
	}
	plan := Plan{Strategy: "reservation", Customers: 2, Sales: schedule.Sales{Reservations: true}}
	var reserving *stock.Store
	const beside = 4
	var made atomic.Int64 // more than asked for where the machine was too slow for one
	for round := 1; round <= 3; round++ {
		var playing sync.WaitGroup
		var under atomic.Int64
		for range beside {
			playing.Go(func() {
				_, err := s.Play(t.Context(), plan, func() explore.Chooser {
					return func(next explore.Next) (int, error) {
						if len(next.Past) == 1 {
							made.Add(1)
							under.Add(-1)
							return 0, explore.ErrStop
						}
						if n := under.Add(1); n > 1 {
							t.Errorf("%d runs side by side", n)
						}
						return next.ByDefault(), nil
					}
				})
				if !errors.Is(err, explore.ErrStop) {
					t.Error(err)
				}
			})
		}
		playing.Wait()
		reserved := 0
		for kind, p := range s.pools { // more than one where the machine was too slow
			if kind.reserving {
				l := <-p.slots
				reserving = l.database.store
				p.slots <- l
				var of int
				if err := reserving.Pool().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM holds").Scan(&of); err != nil {
					t.Error(err)
				}
				reserved += of
			}
		}
		if reserved != int(made.Load()) {
			t.Errorf("after %d runs there are %d reservations", made.Load(), reserved)
		}
	}
	hold := func(in *stock.Store) (made stock.Hold) {
		item, err := in.CreateItem(t.Context(), "item", 1)
		if err == nil {
			made, err = in.Hold(t.Context(), stock.Sale{ItemID: item.ID, Quantity: 1, Subject: "x"}, 1, stock.Terms{Open: 1, Longest: time.Second})
		}
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	first, second := hold(reserving), hold(s.shared.store)
	if _, err := seen.Until(t.Context(), 10*time.Millisecond, func() (bool, error) {
		h, err := s.shared.store.HoldByID(t.Context(), second.PublicID)
		return h.State == stock.Expired, err
	}); err != nil {
		t.Fatal(err)
	}
	if h, err := reserving.HoldByID(t.Context(), first.PublicID); err != nil || h.State != stock.Held {
		t.Errorf("what was overdue before is %s, %v: want it held until a run sweeps", h.State, err)
	}
}
