package scenario

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"stocklock/internal/strategy"
	"stocklock/internal/strategy/ladder"
)

// The whole matrix as it is meant to be, written down by hand once: h held, o
// oversold, l lied, s stuck, in the order of the scenarios.
var matrix = map[string]string{
	"none":                  "ooooooooooooo",
	"mutex":                 "ooooooosooooo",
	"setnx":                 "hsshhhhshsooh",
	"setnx-expire":          "hhshoooshoooo",
	"getset":                "hhhhooosooooo",
	"getset-server-clock":   "hhhhoooshoooo",
	"set-ex-nx":             "hhhhoooshoooo",
	"lua-setex":             "hhhhohhshoooo",
	"owner-get-del":         "hhhhohoshoooo",
	"owner-watch":           "hhhhohhshoooo",
	"owner-checked":         "hhhhohhshoooo",
	"reentrant-fixed":       "hhhhohhhhoooo",
	"reentrant-timer":       "hhhhhhhhhoooo",
	"reentrant":             "hhhhhhhhhhooo",
	"redlock":               "hhhhhhhhhhhho",
	"fenced":                "hhhhhhhhhhhhh",
	"fenced-relative":       "hhhhhhhhhhhhh",
	"for-update":            "hhhhhhhhhhhhh",
	"optimistic":            "hhhhhhhhhhhhh",
	"conditional":           "hhhhhhhhhhhhh",
	"redis-async":           "hlhlhhhhhhooh",
	"reservation-unchecked": "hhhhohhhhohho",
	"reservation":           "hhhhhhhhhhhhh",
	"get-lock":              "hhhhhhhhhhhhh",
	"buckets":               "hhhhhhhhhhhhh",
	"skip-locked":           "hhhhhhhhhhhhh",
	"batched":               "hhhhhhhhhhhhh",
}

func TestExpectedFollowsFromTheProperties(t *testing.T) {
	letters := map[Kind]string{Held: "h", Oversold: "o", Lied: "l", Left: "L", Stuck: "s"}
	if len(matrix) != len(ladder.All()) {
		t.Errorf("%d strategies are written down, and there are %d", len(matrix), len(ladder.All()))
	}
	for name, want := range matrix {
		s, err := ladder.ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		var row strings.Builder
		for _, sc := range All() {
			row.WriteString(letters[sc.Expected(s.Properties)])
		}
		if row.String() != want {
			t.Errorf("%s: expected %s, want %s", s.Name, row.String(), want)
		}
	}
	mutex, err := ladder.ByName("mutex")
	if err != nil {
		t.Fatal(err)
	}
	alone := mutex.Describe().PropertiesUnder(strategy.Options{OneProcess: true})
	if got := contention.Expected(alone); got != Held {
		t.Errorf("mutex in one process under contention: expected %s, want held", got)
	}
}

func TestDecisiveNamesWhatDecides(t *testing.T) {
	for _, s := range ladder.All() {
		for _, sc := range All() {
			lacks := sc.Decisive(s.Properties).Standing == strategy.Lacks
			if held := sc.Expected(s.Properties) == Held; lacks == held {
				t.Errorf("%s under %s: held is %t because it %s", s.Name, sc.Name, held, sc.Decisive(s.Properties))
			}
		}
	}
	for _, tt := range []struct{ strategy, scenario, want string }{
		{"none", "pause", "lacks exclusive"},
		{"mutex", "nested", "lacks reentrant"},
		{"setnx", "partition", "lacks recovers"},
		{"setnx-expire", "split-release", "lacks owner-checked"},
		{"owner-get-del", "split-release", "lacks atomic-release"},
		{"reentrant", "overrun", "has renews"},
		{"fenced", "failover", "has storage-checked"},
		{"redis-async", "crash", "lacks durable-answers"},
		{"redis-async", "redis-restart", "lacks survives-data-loss"},
		{"setnx", "pause", "pause-proof does not apply"},
		{"for-update", "overrun", "renews does not apply"},
	} {
		s, _ := ladder.ByName(tt.strategy)
		sc, _ := ByName(tt.scenario)
		if got := sc.Decisive(s.Properties).String(); got != tt.want {
			t.Errorf("%s under %s: %s, want %s", tt.strategy, tt.scenario, got, tt.want)
		}
	}
}

func TestOnlyScenariosWithoutInjectionsAreComparable(t *testing.T) {
	for _, s := range All() {
		p := s.Plan(rand.New(rand.NewPCG(1, 0)), time.Second)
		if calm := p.Inject == nil && p.Prepare == nil && p.Intervene == nil; calm != s.Comparable {
			t.Errorf("%s injects and intervenes in nothing: %t, comparable: %t", s.Name, calm, s.Comparable)
		}
	}
}

func TestEveryScenarioDescribesItself(t *testing.T) {
	attacked := map[strategy.Property]string{}
	for _, s := range All() {
		if s.Name == "" || s.Doc == "" || strings.ContainsAny(s.Doc, "\n|") {
			t.Errorf("scenario %q: doc %q, want one line that fits into a table", s.Name, s.Doc)
		}
		// Redis loses its data in several ways.
		if other, twice := attacked[s.Attacks]; twice && s.Attacks != strategy.SurvivesDataLoss {
			t.Errorf("%s and %s attack the same property", s.Name, other)
		}
		attacked[s.Attacks] = s.Name
		if got, err := ByName(s.Name); err != nil || got.Name != s.Name {
			t.Errorf("ByName(%q) = %q, %v", s.Name, got.Name, err)
		}
	}
}

// TestTheSameSeedMakesTheSameSchedule also wants the faults to come early, while
// there is stock.
func TestTheSameSeedMakesTheSameSchedule(t *testing.T) {
	const requests = 40
	plan := func(s Scenario, seed uint64) (injections [requests]Injection, faults int) {
		p := s.Plan(rand.New(rand.NewPCG(seed, 0)), time.Second)
		for n := range injections {
			if p.Inject != nil {
				injections[n] = p.Inject(n)
			}
			if injections[n].HasFault() {
				faults++
				if n < 3 || n > 30 {
					t.Errorf("%s, seed %d: a fault is injected into request %d", s.Name, seed, n)
				}
			}
		}
		return injections, faults
	}
	for _, s := range All() {
		for seed := range uint64(20) {
			once, faults := plan(s, seed)
			if again, _ := plan(s, seed); again != once {
				t.Errorf("%s, seed %d: two schedules", s.Name, seed)
			}
			wants := s.Attacks != strategy.Exclusive && s.Attacks != strategy.Reentrant && s.Attacks != strategy.ClockFree
			if wants != (faults > 0) {
				t.Errorf("%s, seed %d: %d faults", s.Name, seed, faults)
			}
		}
	}
}
