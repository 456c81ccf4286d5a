package step

import (
	"context"
	"testing"

	"stocklock/internal/lab/rig"
	"stocklock/internal/testserver"
)

// TestAReplicaThatDidNotStart is restored before the next run: a failover without one would change nothing.
func TestAReplicaThatDidNotStart(t *testing.T) {
	testserver.NeedsServers(t)
	r, err := rig.New("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	l := &slot{database: &database{}}
	if l.Testbed, err = r.Testbed(t.Context(), rig.TestbedOptions{Name: "none", Faults: true}); err != nil {
		t.Fatal(err)
	}
	if err := l.FailOver(t.Context()); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.restarted(over); err == nil {
		t.Error("a replica has started in no time")
	}
	if err := l.restarted(t.Context()); err != nil || !l.Replica().Alive() {
		t.Errorf("the next run has no replica, %v", err)
	}
}
