package scenario

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/baskets"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/ladder"
)

// broken is the whole matrix as it is meant to be, written down by hand once: the strategies that a
// scenario breaks, and how. All others hold.
var broken = map[string]map[verdict.Kind]string{
	"contention":      {verdict.Oversold: "none mutex" + copied + unlocked},
	"crash":           {verdict.Oversold: "none mutex" + copied + unlocked, verdict.Stuck: "setnx", verdict.Left: "redis-async ack-first"},
	"crash-acquiring": {verdict.Oversold: "mutex" + copied, verdict.Stuck: "setnx setnx-expire", verdict.Inapplicable: unguarded},
	"crash-answered":  {verdict.Oversold: "none mutex" + copied + unlocked, verdict.Lied: "redis-async"},
	"overrun": {
		verdict.Oversold: "none mutex setnx-expire getset getset-server-clock set-ex-nx lua-setex " +
			"owner-get-del owner-watch owner-checked owner-delex reentrant-fixed " +
			"reservation-unchecked" + copied + unlocked,
	},
	"late-release": {verdict.Oversold: "none mutex setnx-expire getset getset-server-clock set-ex-nx" + copied + unlocked},
	"split-release": {
		verdict.Oversold:     "mutex setnx-expire getset getset-server-clock set-ex-nx owner-get-del" + copied,
		verdict.Inapplicable: unguarded,
	},
	"nested": {
		verdict.Inapplicable: unguarded,
		verdict.Stuck: "mutex setnx setnx-expire getset getset-server-clock set-ex-nx lua-setex " +
			"owner-get-del owner-watch owner-checked owner-delex",
		verdict.Oversold: copied,
	},
	"clock-skew": {verdict.Oversold: "none mutex getset" + copied + unlocked},
	"partition": {
		verdict.Oversold: "none mutex setnx-expire getset getset-server-clock set-ex-nx lua-setex " +
			"owner-get-del owner-watch owner-checked owner-delex reentrant-fixed reentrant-timer " +
			"reservation-unchecked" + copied + unlocked,
		verdict.Stuck: "setnx",
	},
	"failover":      {verdict.Oversold: byDataLoss},
	"redis-restart": {verdict.Oversold: byDataLoss},
	"eviction":      {verdict.Oversold: byDataLoss},
	"pause": {
		verdict.Oversold: "none mutex setnx-expire getset getset-server-clock set-ex-nx lua-setex " +
			"owner-get-del owner-watch owner-checked owner-delex reentrant-fixed reentrant-timer " +
			"reentrant redlock cached-read cached-read-through reservation-unchecked" + copied + unlocked,
	},
	"page-view":         {verdict.Oversold: "cached-read cached-read-through", verdict.Inapplicable: uncached()},
	"commit-unanswered": {verdict.Oversold: "none mutex" + copied + unlocked, verdict.Twice: "retry-without-key"},
}

// uncached are the strategies that keep no copy of the item's row.
func uncached() string {
	names := slices.DeleteFunc(ladder.Names(), func(name string) bool { return strings.HasPrefix(name, "cached-") })
	return strings.Join(names, " ")
}

// copied are the strategies whose lock is right, and which still fail.
const copied = inTransaction + " wrong-key-customer wrong-key-shop"

// inTransaction are those that a server refuses which has snapshot isolation.
const inTransaction = " lock-in-transaction snapshot-before-lock"

// unlocked are those without a lock that fail when nothing goes wrong.
const unlocked = " ledger check-constraint-absolute"

const byDataLoss = "none mutex setnx setnx-expire getset getset-server-clock set-ex-nx lua-setex " +
	"owner-get-del owner-watch owner-checked owner-delex reentrant-fixed reentrant-timer reentrant " +
	"redis-async cached-read cached-read-through" + copied + unlocked

// unguarded are the strategies without a lock to take.
const unguarded = "none redis-async redis-stream retry-without-key retry-with-key ack-first reservation-unchecked reservation buckets skip-locked for-update optimistic conditional batched ledger-parent-locked ledger-serializable serializable check-constraint" + unlocked

func TestExpectedFollowsFromTheProperties(t *testing.T) {
	for _, sc := range Of(trial.OneServer) {
		want := map[string]verdict.Kind{}
		for kind, names := range broken[sc.Name] {
			for _, name := range strings.Fields(names) {
				want[name] = kind
			}
		}
		if len(want) == 0 {
			t.Errorf("%s breaks nothing that is written down", sc.Name)
		}
		for _, s := range ladder.All() {
			if got := sc.Expected(s.Describe()).Verdict; got != cmp.Or(want[s.Name], verdict.Held) {
				t.Errorf("%s under %s: expected %s, want %s", s.Name, sc.Name, got, cmp.Or(want[s.Name], verdict.Held))
			}
			delete(want, s.Name)
		}
		for name := range want {
			t.Errorf("%s is to break %q, which is no strategy", sc.Name, name)
		}
	}
	mutex, err := ladder.ByName("mutex")
	if err != nil {
		t.Fatal(err)
	}
	alone := mutex.Describe().Under(declared.Circumstances{OneProcess: true})
	if got := contention.Expected(alone).Verdict; got != verdict.Held {
		t.Errorf("mutex in one process under contention: expected %s, want held", got)
	}
	for _, sc := range Of(trial.OneServer) {
		for _, name := range strings.Fields(inTransaction) {
			of, err := ladder.ByName(name)
			if err != nil {
				t.Fatal(err)
			}
			on := of.Describe().Under(declared.Circumstances{SnapshotIsolation: true})
			if got := sc.Expected(on).Verdict; got != verdict.Held && got != verdict.Inapplicable {
				t.Errorf("%s with snapshot isolation under %s: expected %s, want held", name, sc.Name, got)
			}
		}
	}
}

func TestDecisiveNamesWhatDecides(t *testing.T) {
	for _, s := range ladder.All() {
		for _, sc := range Of(trial.OneServer) {
			e := sc.Expected(s.Describe())
			if fails := verdict.Of(e.Verdict).Bad; fails != (e.Because.Standing == declared.Lacks) {
				t.Errorf("%s under %s: fails: %t, because it %s", s.Name, sc.Name, fails, e.Because)
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
		{"redis-stream", "eviction", "has survives-data-loss"},
		{"ack-first", "crash", "lacks recovers"},
		{"cached-read", "page-view", "lacks fresh-read"},
		{"cached-page", "page-view", "has fresh-read"},
		{"fenced", "page-view", "fresh-read does not apply"},
		{"retry-without-key", "commit-unanswered", "lacks once"},
		{"setnx", "pause", "pause-proof does not apply"},
		{"for-update", "overrun", "renews does not apply"},
	} {
		s, _ := ladder.ByName(tt.strategy)
		sc, _ := ByName(tt.scenario)
		if got := sc.Expected(s.Describe()).Because.String(); got != tt.want {
			t.Errorf("%s under %s: %s, want %s", tt.strategy, tt.scenario, got, tt.want)
		}
	}
}

func TestOnlyScenariosWithoutAPlayAreComparable(t *testing.T) {
	for _, s := range Of(trial.OneServer) {
		if calm := s.Crowd.IsZero() && s.Crowd.Prepare == nil && s.Crowd.Intervene == nil; calm != s.Comparable {
			t.Errorf("%s has no play: %t, comparable: %t", s.Name, calm, s.Comparable)
		}
	}
}

func TestEveryScenarioDescribesItself(t *testing.T) {
	attacked := map[declared.Property]string{}
	for _, s := range Of(trial.OneServer) {
		if s.Name == "" || s.Doc == "" || strings.ContainsAny(s.Doc, "\n|") {
			t.Errorf("scenario %q: doc %q, want one line that fits into a table", s.Name, s.Doc)
		}
		// Redis loses its data in several ways.
		if other, twice := attacked[s.Attacks]; twice && s.Attacks != declared.SurvivesDataLoss {
			t.Errorf("%s and %s attack the same property", s.Name, other)
		}
		attacked[s.Attacks] = s.Name
		if got, err := ByName(s.Name); err != nil || got.Name != s.Name {
			t.Errorf("ByName(%q) = %q, %v", s.Name, got.Name, err)
		}
	}
}

// TestHowManyScenariosApply pins how many scenarios find nothing to attack in each strategy.
func TestHowManyScenariosApply(t *testing.T) {
	without := map[string]int{}
	for _, name := range strings.Fields(unguarded) {
		without[name] = 3 // crash-acquiring, split-release and nested
	}
	for _, name := range strings.Fields(uncached()) {
		without[name]++ // page-view
	}
	for _, s := range ladder.All() {
		n := 0
		for _, sc := range Of(trial.OneServer) {
			if sc.Misses(s.Describe()) != "" {
				n++
			}
		}
		if n != without[s.Name] {
			t.Errorf("%d scenarios do not apply to %s, want %d", n, s.Name, without[s.Name])
		}
	}
}

// brokenBaskets is the matrix of baskets as it is meant to be, written down by hand once. All others hold.
var brokenBaskets = map[string]map[verdict.Kind]string{
	"crossed":             {verdict.Left: "locks-unsorted locks-parallel"},
	"same-item-twice":     {verdict.Oversold: "one-statement locks-unsorted locks-parallel"},
	"one-sold-out":        {verdict.HalfSold: "line-by-line", verdict.Left: "saga counters-decr"},
	"death-between-lines": {verdict.HalfSold: "line-by-line", verdict.Unclaimed: "saga counters-lua counters-decr", verdict.Stuck: "lock-for-all"},
	"death-between-locks": {verdict.Stuck: "lock-for-all", verdict.Inapplicable: withoutLocks},
	"first-lock-ends":     {verdict.Oversold: "locks-unsorted locks-sorted locks-parallel", verdict.Inapplicable: withoutLocks + " locks-all-or-none lock-for-all"},
	"fifty-beside-one":    {verdict.Left: "locks-all-or-none optimistic"},
}

const withoutLocks = "rows-unsorted rows-sorted one-statement saga line-by-line counters-lua counters-decr for-update optimistic conditional batched"

// brokenReservations is the matrix of reservations as it is meant to be, written down by hand once. All others hold.
var brokenReservations = map[string]map[verdict.Kind]string{
	"held-units":                  {verdict.Oversold: "reservation-rows"},
	"confirmation-meets-expiry":   {verdict.Oversold: "reservation-unchecked reservation-revived"},
	"confirmed-again":             {verdict.Twice: "reservation-unchecked"},
	"paid-twice":                  {verdict.Twice: "reservation-unchecked"},
	"stolen-reference":            {verdict.Unpaid: "reservation-unchecked"},
	"paid-late":                   {verdict.Oversold: "reservation-unchecked reservation-revived"},
	"paid-late-and-free":          {verdict.Oversold: "reservation-unchecked reservation-revived"},
	"failure-after-confirmation":  {verdict.Unserved: "reservation-overwritten"},
	"release-beside-confirmation": {verdict.Unserved: "reservation-overwritten"},
}

// brokenTopologies is the table of topologies as it is meant to be, written down by hand once. All others hold.
var brokenTopologies = map[string]map[verdict.Kind]string{
	"single-failover":            {verdict.Lied: "redis-async", verdict.Left: "ack-first"},
	"async-failover":             {verdict.Lied: "*"},
	"async-rewind":               {verdict.Oversold: "none mutex wrong-key-customer wrong-key-shop reservation-unchecked", verdict.Lied: "*"},
	"async-switchover":           {verdict.Oversold: lockedAbsolute + " cached-read"},
	"async-errant":               {verdict.Lied: "*"},
	"semi-sync-failover":         {verdict.Lied: "redis-async", verdict.Left: "ack-first"},
	"semi-sync-silent":           {},
	"semi-sync-errant":           {verdict.Lied: "redis-async", verdict.Left: "ack-first"},
	"semi-sync-timeout-failover": {verdict.Lied: "*"},
	"replica-reads-late":         {verdict.Oversold: lockedAbsolute + " cached-read cached-page get-lock fenced"},
	"galera-failover":            {verdict.Lied: "redis-async", verdict.Left: "ack-first"},
	"galera-isolated":            {verdict.Lied: "redis-async", verdict.Left: "ack-first"},
	"galera-writers-late": {verdict.Oversold: lockedAbsolute + " cached-read get-lock lock-in-transaction snapshot-before-lock ledger " +
		"check-constraint-absolute ledger-parent-locked"},
}

// lockedAbsolute read, and write what they have computed from that, under a lock in Redis or under none.
const lockedAbsolute = "none mutex setnx setnx-expire getset getset-server-clock set-ex-nx lua-setex owner-get-del owner-watch owner-checked " +
	"owner-delex reentrant-fixed reentrant-timer reentrant redlock wrong-key-customer wrong-key-shop"

// TestExpectedOfAFew: what is written down is complete, and each scenario is a cell of some strategies.
func TestExpectedOfAFew(t *testing.T) {
	var all []declared.Strategy
	for _, of := range slices.Concat(baskets.All(), ladder.All(), ladder.Reservations()) {
		all = append(all, of.Describe())
	}
	broken := maps.Clone(brokenTopologies)
	maps.Copy(broken, brokenBaskets)
	maps.Copy(broken, brokenReservations)
	for _, sc := range slices.Concat(Of(trial.Baskets), Of(trial.Reservations), OfTopologies()) {
		wanted, ok := broken[sc.Name]
		if !ok {
			t.Errorf("what %s breaks is not written down", sc.Name)
		}
		cells := 0
		for _, of := range all {
			if !sc.Applies(of) {
				continue
			}
			cells++
			want := verdict.Held
			for _, kind := range []verdict.Kind{verdict.Inapplicable, verdict.Unclaimed, verdict.Stuck, verdict.Left, verdict.Lied, verdict.Unserved, verdict.Unpaid, verdict.HalfSold, verdict.Twice, verdict.Oversold} { // the last one decides
				if names := wanted[kind]; names == "*" || slices.Contains(strings.Fields(names), of.Name) {
					want = kind
				}
			}
			if got := sc.Expected(of); got.Verdict != want {
				t.Errorf("%s:%s: %s because it %s, want %s", of.Name, sc.Name, got.Verdict, got.Because, want)
			}
		}
		if n := len(sc.Only); cells == 0 || n > 0 && cells != n {
			t.Errorf("%s is a cell of %d strategies, want all of %v", sc.Name, cells, sc.Only)
		}
	}
}

// TestEachWayHasATellingScenario: one of baskets, or of reservations.
func TestEachWayHasATellingScenario(t *testing.T) {
	for _, way := range slices.Concat(baskets.All(), ladder.Reservations()) {
		if sc, err := ByName(way.Declared.Telling); err != nil || !sc.Applies(way.Describe()) {
			t.Errorf("%s: %v", way.Name, err)
		}
	}
}

// TestNamesAndGroupsDiffer: a name on the command line means one thing.
func TestNamesAndGroupsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range append(Groups(), NamesOf(All())...) {
		if seen[name] {
			t.Errorf("%s is two things", name)
		}
		seen[name] = true
	}
	for _, group := range Groups() {
		if len(Group(group)) == 0 {
			t.Errorf("%s has no scenario", group)
		}
	}
}

// TestEveryInterventionHasWords checks that no language says an intervention by its name alone.
func TestEveryInterventionHasWords(t *testing.T) {
	for _, sc := range All() {
		name := sc.Crowd.Intervention
		if name == "" {
			continue
		}
		text := words.Text{Key: "span-intervention", Facts: explain.Facts{Intervention: name}}
		if said := words.English.Say(text); said == name {
			t.Errorf("%s: English has no phrase for the intervention %q", sc.Name, name)
		}
	}
}
