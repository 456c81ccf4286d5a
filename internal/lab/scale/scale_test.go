package scale

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"stocklock/internal/testserver"
)

func TestEveryRowSells(t *testing.T) {
	testserver.NeedsServers(t)
	measured, err := Run(t.Context(), Options{Each: 500 * time.Millisecond, Rounds: 1, Work: 5 * time.Millisecond, Workers: 16, Log: t.Output()})
	if err != nil {
		t.Fatal(err) // also when the database has other orders than were answered
	}
	var table bytes.Buffer
	Print(&table, measured)
	t.Log("\n" + table.String())
	for i, row := range measured {
		if row.Ratio <= 0 || row.Binlog <= 0 || i == 0 && row.Ratio != 1 {
			t.Errorf("%s: × %f", row.Name, row.Ratio)
		}
		if !strings.Contains(table.String(), row.Name) {
			t.Errorf("%s is not printed", row.Name)
		}
		if row.Units == 10 && row.Ratio < 2 {
			t.Errorf("%s sells × %.1f: ten units cost as much as one", row.Name, row.Ratio)
		}
		if row.Items == 64 && row.Masters == masters && (row.Busiest < 0.3 || row.Busiest > 0.7) {
			t.Errorf("%s: one of %d masters has %.0f %% of the work", row.Name, masters, 100*row.Busiest)
		}
		if row.Items == 1 && row.Masters == masters && row.Busiest < 0.7 {
			t.Errorf("%s: the one lock's master has only %.0f %% of the work", row.Name, 100*row.Busiest)
		}
	}
}
