package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"stocklock/internal/lab/report"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
)

// TestSnapshotIsolationChangesWhatIsExpected runs a strategy that oversells on a MariaDB which refuses what
// it writes.
func TestSnapshotIsolationChangesWhatIsExpected(t *testing.T) {
	t.Parallel()
	if code := run(t.Context(), strings.Fields("run --expect-only --mysql-set innodb_snapshot_isolation=ON"), &bytes.Buffer{}, &bytes.Buffer{}); code != exitUsage {
		t.Errorf("--expect-only with a setting of a server: exit code %d, want %d", code, exitUsage)
	}
	for setting, want := range map[string]verdict.Kind{"innodb_snapshot_isolation=OFF": verdict.Oversold, "innodb_snapshot_isolation=ON": verdict.Held} {
		saved := filepath.Join(t.TempDir(), "results.json")
		var out, errs bytes.Buffer
		code := run(t.Context(), []string{"run", "lock-in-transaction:contention", "--work", "0s", "--mysql-set", setting, "--out", saved}, &out, &errs)
		r, err := report.Read(saved)
		if err != nil {
			t.Fatalf("%v: %s", err, errs.String())
		}
		if !strings.Contains(r.Environment.MySQL, "MariaDB") {
			t.Skip("MySQL has no innodb_snapshot_isolation")
		}
		c := r.Cells[0]
		if code != 0 || c.Verdict != want || c.Expected != want || !strings.HasSuffix(r.Environment.MySQL, setting) || !strings.Contains(c.Replay, " --mysql-set "+setting+" ") {
			t.Errorf("%s: exit code %d, %s, expected %s, on %s: %s", setting, code, c.Verdict, c.Expected, r.Environment.MySQL, c.Replay)
		}
		if len(c.Seen) != 1 || c.Seen[0].Sight != trial.BeforeCommit {
			t.Errorf("%s: it saw %+v, want a sale before the commit of another one", setting, c.Seen)
		}
	}
}
