package explain

import (
	"strings"
	"testing"
)

// TestALockThatNobodyWatches: the cause follows from the traces, and the missing column is said.
func TestALockThatNobodyWatches(t *testing.T) {
	e := evidence(overlap("write stop 1180ms"))
	e.Changes, e.Unwatched = nil, "etcd"
	x := explained(e)
	check(t, x, Paused, []string{"was stopped for", "got the lock from etcd after", "no column of the lock: it is in etcd"})
	for _, l := range x.Columns {
		if l.Kind == LockColumn {
			t.Errorf("a column of the lock: %+v", l)
		}
	}
	watched := explained(evidence(overlap("write stop 1180ms")))
	if said := English.Say(watched.Why...); strings.Contains(said, "no column") {
		t.Errorf("a lock that is watched: %s", said)
	}
}
