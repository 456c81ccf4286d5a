package rig_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/testserver"
)

// TestTestbed makes every intervention of the scenarios, and wants a testbed that works after each
// repair.
func TestTestbed(t *testing.T) {
	r := newRig(t)
	db, err := r.MySQL(t.Context())
	if err != nil {
		t.Fatalf("MySQL: %v", err)
	}
	testbed, err := r.Testbed(t.Context(), rig.TestbedOptions{Name: "shop", Shops: 2, DSN: db.DSN(), Quorum: 3, Faults: true, Trace: true,
		Env: map[string]string{"SHOP_LAB": "true"}})
	if err != nil {
		t.Fatalf("Testbed: %v", err)
	}
	ready := func(shop int) error { return rig.Ready(t.Context(), testbed.Shops[shop].URL) }
	whole := func(after string) {
		t.Helper()
		if err := testbed.Repair(t.Context()); err != nil {
			t.Fatalf("Repair after %s: %v", after, err)
		}
		processes := []*testserver.Process{testbed.Redis().Process, testbed.Shops[0].Process, testbed.Shops[1].Process}
		for _, server := range testbed.Quorum {
			processes = append(processes, server.Process)
		}
		for _, p := range processes {
			if err := p.Ready(t.Context()); err != nil {
				t.Fatalf("%s after %s: %v", p.Name, after, err)
			}
		}
	}
	if testbed.Shops[0].Trace() == "" || testbed.Shops[0].Trace() == testbed.Shops[1].Trace() {
		t.Errorf("the shops trace to %q and %q, want a file for each", testbed.Shops[0].Trace(), testbed.Shops[1].Trace())
	}

	if err := testbed.Shops[0].CutOff(); err != nil {
		t.Fatalf("CutOff: %v", err)
	}
	testserver.Await(t, "the shop that is cut off to say so", func() bool { return ready(0) != nil })
	testserver.Await(t, "the other shop to be ready", func() bool { return ready(1) == nil })
	whole("a cut")

	if err := testbed.Redis().Kill(); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	whole("a primary that was killed and not started again")

	old := testbed.Redis()
	client := connect(t, old.Addr)
	client.Do(t.Context(), "SET", "before", 1)
	if n, err := client.Do(t.Context(), "WAIT", 1, 5000).Int64(); n != 1 {
		t.Fatalf("WAIT = %d, %v", n, err)
	}
	if err := testbed.HoldBackReplication(); err != nil {
		t.Fatalf("HoldBackReplication: %v", err)
	}
	client.Do(t.Context(), "SET", "after", 1)
	if err := testbed.FailOver(t.Context()); err != nil {
		t.Fatalf("FailOver: %v", err)
	}
	if testbed.Redis() == old {
		t.Error("the primary is the old one")
	}
	if n, err := testbed.Redis().Client.Do(t.Context(), "EXISTS", "before", "after").Int64(); n != 1 {
		t.Errorf("the new primary has %d of two keys, %v, want the replicated one", n, err)
	}
	if testbed.Quorum[0].Alive() || !testbed.Quorum[1].Alive() {
		t.Error("want one server of the quorum dead and the others alive")
	}
	if err := testbed.FailOver(t.Context()); err == nil {
		t.Error("FailOver without a replica does nothing, and says nothing")
	}
	whole("a failover")
	promoted := connect(t, testbed.Redis().Addr)
	promoted.Do(t.Context(), "SET", "again", 1)
	if n, err := promoted.Do(t.Context(), "WAIT", 1, 5000).Int64(); n != 1 {
		t.Errorf("after the repair WAIT = %d, %v, want a replica again", n, err)
	}

	if err := testbed.Shops[0].Kill(); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	if err := testbed.Shops[1].Pause(); err != nil {
		t.Fatalf("Pause: %v", err)
	}
	whole("a kill and a stop")
}

// TestAReplicaThatCouldNotFollow is restored by the next try.
func TestAReplicaThatCouldNotFollow(t *testing.T) {
	testbed, err := newRig(t).Testbed(t.Context(), rig.TestbedOptions{Name: "none", Faults: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := testbed.FailOver(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := testbed.Redis().Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := testbed.RestoreReplica(ctx); err == nil {
		t.Error("a replica is in sync with a primary that is stopped")
	}
	if err := errors.Join(testbed.Redis().Resume(), testbed.RestoreReplica(t.Context())); err != nil {
		t.Fatal(err)
	}
	if role, err := testbed.Replica().Client.Do(t.Context(), "ROLE").Slice(); len(role) < 4 || role[3] != "connected" {
		t.Errorf("the replica is %v, %v", role, err)
	}
}
