package scale

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/ladder"
	"stocklock/internal/testserver"
)

// TestEveryBasketSells measures two ways. It fails when the database has other orders than were answered, too.
func TestEveryBasketSells(t *testing.T) {
	testserver.NeedsServers(t)
	measured, err := RunBaskets(t.Context(), Options{Each: 300 * time.Millisecond, Rounds: 1, Workers: 16, Log: t.Output()},
		[]declared.Strategy{{Name: "conditional"}, {Name: "rows-unsorted"}})
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	PrintBaskets(&table, measured)
	t.Log("\n" + table.String())
	for _, m := range measured {
		if !strings.Contains(table.String(), m.Way) {
			t.Errorf("%s is not printed", m.Way)
		}
		for p, ratios := range m.Ratios {
			for s, ratio := range ratios {
				if ratio <= 0 {
					t.Errorf("%s, %s, %d lines: × %f", m.Way, popularities[p].name, basketSizes[s], ratio)
				}
			}
		}
	}
	if of := measured[0]; of.Way != basketsBase || of.Ratios[0][0] != 1 {
		t.Errorf("%s sells × %f by orders of one line, want %s × 1", of.Way, of.Ratios[0][0], basketsBase)
	}
}

// TestFitForBaskets: a way that lacks what large baskets need may be slow, one that lacks more sells wrong.
func TestFitForBaskets(t *testing.T) {
	all := ladder.BasketsInRows
	starved, crossed := all, all
	starved.Has &^= declared.Unstarved
	crossed.Has &^= declared.Crossable
	rows := ladder.DatabaseLock
	fit := FitForBaskets([]declared.Strategy{
		{Name: "all", Properties: rows, Baskets: &all}, {Name: "starved", Properties: rows, Baskets: &starved},
		{Name: "crossed", Properties: rows, Baskets: &crossed}, {Name: "paused", Baskets: &all},
	})
	if len(fit) != 2 || fit[0].Name != "all" || fit[1].Name != "starved" {
		t.Errorf("fit are %v", fit)
	}
}
