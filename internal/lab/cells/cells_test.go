package cells_test

import (
	"slices"
	"strings"
	"testing"

	"stocklock/internal/lab/catalog/catalogtest"
	"stocklock/internal/lab/cells"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
)

func TestWords(t *testing.T) {
	shop := catalogtest.Shop(t)
	for words, want := range map[string]string{
		"none":                               "none:contention",
		"none,setnx none":                    "none:contention setnx:contention",
		"none:pause":                         "none:pause",
		"setnx,none:crash,pause":             "setnx:crash none:crash setnx:pause none:pause",
		"none:pause setnx:crash setnx:pause": "none:pause setnx:pause setnx:crash",
		"none,conditional:galera-writers":    "none:galera-writers-late conditional:galera-writers-late",
		"none:telling set-ex-nx:telling":     "none:contention set-ex-nx:late-release",
		"saga:crossed":                       "saga:crossed",
		"none:async saga,none:baskets":       "",
		"hope":                               `hope: no strategy, scenario or group has this name: see loadtest list`,
		"puase":                              `puase: no strategy, scenario or group has this name: did you mean "pause"? see loadtest list`,
		"none pauze:crash":                   `pauze:crash: no strategy "pauze": want one of none, mutex`,
		"none:puase":                         `none:puase: no scenario "puase": did you mean "pause"? want one of contention`,
		"none:pause,none:crash":              `none:pause,none:crash: no scenario "none:crash": want one of`,
		"mutex:semi-sync-silent":             "mutex:semi-sync-silent: semi-sync-silent is no cell of mutex: loadtest run semi-sync-silent --expect-only lists those that are",
		"saga:all":                           "saga:all: no cell is of these",
		"none:":                              `none:: no scenario "": want one of`,
		"":                                   ": no strategy, scenario or group has this name: see loadtest list",
		"saga:pause":                         "saga:pause: saga only sells several items at once",
	} {
		pairs, err := cells.Pairs(strings.Split(words, " "), shop)
		var names []string
		for _, p := range pairs {
			names = append(names, p.Strategy.Name+":"+p.Scenario.Name)
		}
		got := strings.Join(names, " ")
		if err != nil {
			got = err.Error()
		}
		if want != "" && got != want && (err == nil || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: %q, want %q", words, got, want)
		}
	}
}

// TestWordsForMany: what stands for several has each of them that applies, and nothing else.
func TestWordsForMany(t *testing.T) {
	shop := catalogtest.Shop(t)
	every := func(names ...string) (all []trial.Scenario) {
		for _, name := range names {
			all = append(all, scenario.Group(name)...)
		}
		return all
	}
	for word, want := range map[string]int{
		"pause":            len(shop.Strategies),
		"all":              len(shop.Strategies) * len(every("all")),
		"all:crash,pause":  2 * len(shop.Strategies),
		"conditional:all":  len(every("all")),
		"telling":          len(shop.Strategies),
		"baskets":          len(shop.Baskets) * len(every("baskets")),
		"saga":             len(every("baskets")),
		"reservation-rows": len(every("reservations")),
		"reservations":     len(shop.Reservations) * len(every("reservations")),
	} {
		pairs, err := cells.Pairs([]string{word}, shop)
		if err != nil || len(pairs) != want {
			t.Errorf("%s: %d cells, want %d: %v", word, len(pairs), want, err)
		}
		for _, p := range pairs {
			if !p.Scenario.Applies(p.Strategy) {
				t.Errorf("%s: %s is no cell of %s", word, p.Scenario.Name, p.Strategy.Name)
			}
		}
	}
	everything, err := cells.Pairs([]string{"everything"}, shop)
	parts, wrong := cells.Pairs([]string{"all", "baskets", "reservations", "topologies"}, shop)
	if err != nil || wrong != nil || len(everything) != len(parts) || len(parts) < 1000 {
		t.Errorf("everything has %d cells, and its parts %d: %v, %v", len(everything), len(parts), err, wrong)
	}
}

// TestNamesNeverOverlap: a word without a colon is a strategy or what is done to one.
func TestNamesNeverOverlap(t *testing.T) {
	names := append(cells.Scenarios(), "demo")
	for _, s := range catalogtest.Shop(t).All() {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	for i, name := range names[1:] {
		if name == names[i] {
			t.Errorf("two things are called %s", name)
		}
	}
	for _, name := range names {
		if strings.ContainsAny(name, ":, ") {
			t.Errorf("%q cannot be a word", name)
		}
	}
}
