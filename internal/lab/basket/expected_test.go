package basket

import (
	"slices"
	"strings"
	"testing"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/baskets"
	"stocklock/internal/strategy/ladder"
)

// broken is the matrix of baskets as it is meant to be, written down by hand once. All others hold.
var broken = map[string]map[verdict.Kind]string{
	"crossed":             {verdict.Left: "locks-unsorted locks-parallel"},
	"same-item-twice":     {verdict.Oversold: "one-statement locks-unsorted locks-parallel"},
	"one-sold-out":        {verdict.Left: "saga counters-decr"},
	"death-between-lines": {verdict.Unclaimed: "saga counters-lua counters-decr", verdict.Stuck: "lock-for-all"},
	"death-between-locks": {verdict.Stuck: "lock-for-all", verdict.Inapplicable: withoutLocks},
	"first-lock-ends":     {verdict.Oversold: "locks-unsorted locks-sorted locks-parallel", verdict.Inapplicable: withoutLocks + " locks-all-or-none lock-for-all"},
	"fifty-beside-one":    {verdict.Left: "locks-all-or-none optimistic"},
}

const withoutLocks = "rows-unsorted rows-sorted one-statement saga counters-lua counters-decr for-update optimistic conditional batched"

func TestExpected(t *testing.T) {
	for _, sc := range All {
		wanted, ok := broken[sc.Name]
		if !ok {
			t.Errorf("what %s breaks is not written down", sc.Name)
		}
		for _, way := range slices.Concat(baskets.All(), ladder.Production()) {
			want := verdict.Held
			for kind, names := range wanted {
				if slices.Contains(strings.Fields(names), way.Name) {
					want = kind
				}
			}
			if got := sc.Expected(way.Describe()); got.Verdict != want {
				t.Errorf("%s:%s: %s because it %s, want %s", way.Name, sc.Name, got.Verdict, got.Because, want)
			}
		}
	}
}

// TestEachWayHasATellingScenario: one of those here.
func TestEachWayHasATellingScenario(t *testing.T) {
	for _, way := range baskets.All() {
		if _, err := ByName(way.Declared.Telling); err != nil {
			t.Errorf("%s: %v", way.Name, err)
		}
	}
}
