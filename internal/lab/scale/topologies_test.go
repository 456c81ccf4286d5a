package scale

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"stocklock/internal/lab/topology"
	"stocklock/internal/strategy/ladder"
	"stocklock/internal/testserver"
)

// TestEveryTopologySells measures all. It fails when the database has other orders than were answered, too: so it
// must leave out what sells by old reads.
func TestEveryTopologySells(t *testing.T) {
	testserver.NeedsServers(t)
	measured, err := RunTopologies(t.Context(), Options{Each: 200 * time.Millisecond, Rounds: 1, Workers: 12, Log: t.Output()}, ladder.Describe(ladder.All()))
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	PrintTopologies(&table, measured)
	t.Log("\n" + table.String())
	rule := strings.Split(table.String(), "\n")[2]
	for line := range strings.Lines(table.String()) {
		if utf8.RuneCountInString(line) > 100 || strings.Contains(line, ".") && !strings.Contains(line, ":") && utf8.RuneCountInString(line) > utf8.RuneCountInString(rule)+1 {
			t.Errorf("a row is longer than the table or than 100 columns: %q", line)
		}
	}
	if len(measured) != len(topology.All)*len(onTopologies) {
		t.Errorf("%d cells, want each of %d strategies on each of %d topologies", len(measured), len(onTopologies), len(topology.All))
	}
	oversells := map[string]string{"replica-reads": "fenced reentrant", "galera-writers": "reentrant"}
	for _, m := range measured {
		if missing := m.Not != "" && m.Not != "oversells"; missing {
			continue
		}
		leftOut := false
		for name := range strings.FieldsSeq(oversells[m.Topology]) {
			leftOut = leftOut || name == m.Strategy
		}
		if leftOut != (m.Not == "oversells") || !leftOut && len(m.Ratios) != len(topologyItems) {
			t.Errorf("%s on %s: %q, %v", m.Strategy, m.Topology, m.Not, m.Ratios)
		}
		for _, ratio := range m.Ratios {
			if ratio <= 0 || m.Topology == "single" && ratio != 1 {
				t.Errorf("%s on %s sells × %f", m.Strategy, m.Topology, ratio)
			}
		}
	}
}
