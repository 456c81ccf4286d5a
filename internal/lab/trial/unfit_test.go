package trial

import (
	"strings"
	"testing"
	"time"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

// TestACellThatSaysNothingIsSkipped: without a shop or a server, a cell that is not to be run ends with
// the reason, and is no surprise.
func TestACellThatSaysNothingIsSkipped(t *testing.T) {
	of := declared.Strategy{Name: "mine", Inapplicable: map[string]string{"pause": "it never pauses"}, ShortestLease: time.Second}
	for _, tt := range []struct {
		scenario string
		lease    time.Duration
		why      string
		what     Unfit
	}{
		{"pause", time.Second, "it never pauses", UnfitEach},
		{"overrun", time.Second, "needs shops that loadtest has started, and these were given by address. Run it without --shop: --mysql and --redis may stay", UnfitScenario},
		{"crash", 500 * time.Millisecond, "needs a lease of 1s or more, and this one is 500ms: give --lease 1s", UnfitStrategy},
	} {
		sc := Scenario{Name: tt.scenario, Attacks: declared.Renews, Crowd: Play{At: sale.Read, Kill: tt.scenario == "crash"}}
		all, err := Run(t.Context(), &Bench{}, sc, []declared.Strategy{of}, 1, Options{Lease: tt.lease})
		r := all[0]
		if err != nil || r.Verdict != verdict.Skipped && r.Verdict != verdict.Inapplicable || r.Problem != tt.why || r.Unfit != tt.what || r.Surprise() {
			t.Errorf("%s: %s because %q (%v), surprise %t, %v; want skipped because %q", tt.scenario, r.Verdict, r.Problem, r.Unfit, r.Surprise(), err, tt.why)
		}
	}
}

// TestAShopThatIsCutOffFromEtcd: the sentence names the server that has the lock.
func TestAShopThatIsCutOffFromEtcd(t *testing.T) {
	done := []explain.Intervention{{What: "redis-cut"}, {What: "dead"}}
	named := ofEtcd(done)
	said := words.English.Say(words.Text{Key: "could-not-renew", Facts: explain.Facts{Holder: &explain.Sale{Request: "#1", Shop: "shop 1"}, Intervention: named[0].What}})
	if !strings.Contains(said, "cut off from etcd") || named[1].What != "dead" || done[0].What != "redis-cut" {
		t.Errorf("%q, %v, %v", said, named, done)
	}
}
