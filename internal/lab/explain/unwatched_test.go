package explain

import (
	"strings"
	"testing"
)

// TestALockThatNobodyWatches: the cause follows from the traces, and the missing lane is said.
func TestALockThatNobodyWatches(t *testing.T) {
	e := evidence(overlap("write stop 1180ms"))
	e.Changes, e.Unwatched = nil, "etcd"
	x := explained(e)
	check(t, x, Paused, []string{"was stopped for", "got the lock from etcd after", "no lane of the lock: it is in etcd"})
	for _, l := range x.Lanes {
		if l.Kind == LockLane {
			t.Errorf("a lane of the lock: %+v", l)
		}
	}
	watched := explained(evidence(overlap("write stop 1180ms")))
	if said := English.Say(watched.Why...); strings.Contains(said, "no lane") {
		t.Errorf("a lock that is watched: %s", said)
	}
}
