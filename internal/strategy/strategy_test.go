package strategy_test

import (
	"strings"
	"testing"

	"stocklock/internal/sale"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/strategytest"
)

func TestStrategies(t *testing.T) { strategytest.All(t, strategy.All()) }

func TestRecipes(t *testing.T) {
	strategytest.Recipes(t, strategy.All(), map[string]string{
		"fenced":          "evalsha; evalsha",
		"fenced-relative": "evalsha; evalsha",
		"for-update":      "",
		"optimistic":      "",
		"conditional":     "",
		"batched":         "",
	})
}

func TestPropertyNames(t *testing.T) {
	for _, p := range strategy.AllProperties() {
		if p.String() == "" || strings.Contains(p.String(), ",") || p.Doc() == "" {
			t.Errorf("property %b: name %q, doc %q, want one of each", p, p, p.Doc())
		}
	}
	both := strategy.Exclusive | strategy.ClockFree
	if got := both.String(); got != "exclusive, clock-free" {
		t.Errorf("String of a set = %q", got)
	}
	if both.Includes(strategy.Exclusive|strategy.Renews) || !both.Includes(strategy.ClockFree) {
		t.Error("Includes must want all of what it is asked for")
	}
}

func TestStandings(t *testing.T) {
	p := strategy.Properties{Has: strategy.Exclusive, NotApplicable: strategy.Renews}
	for _, tt := range []struct {
		of    strategy.Property
		want  strategy.Standing
		meets bool
	}{
		{strategy.Exclusive, strategy.Has, true},
		{strategy.Renews, strategy.NotApplicable, true},
		{strategy.Recovers, strategy.Lacks, false},
	} {
		if got := p.Standing(tt.of); got != tt.want || p.Meets(tt.of) != tt.meets {
			t.Errorf("%s: %s, meets %t, want %s, %t", tt.of, got, p.Meets(tt.of), tt.want, tt.meets)
		}
	}
	if lacks := p.Lacks(); lacks.Includes(strategy.Exclusive) || lacks.Includes(strategy.Renews) || !lacks.Includes(strategy.Recovers|strategy.StorageChecked) {
		t.Errorf("lacks %s", lacks)
	}
}

// TestAConflictUnderALockIsRepeated lets another transaction win against each statement that waits for
// the item's row.
func TestAConflictUnderALockIsRepeated(t *testing.T) {
	for _, name := range []string{"fenced", "fenced-relative"} {
		s, err := strategy.Find(name, strategy.All())
		if err != nil {
			t.Fatal(err)
		}
		for _, point := range []sale.Point{sale.Acquired, sale.Read} {
			strategytest.Repeats(t, s, point, "SELECT id FROM items WHERE id = ? FOR UPDATE")
		}
	}
}
