package crashes

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"stocklock/internal/strategy/ladder"
	"stocklock/internal/testserver"
)

// TestOrdersAreTheAnswers sells by a way that answers after the COMMIT, and by one that answers
// before.
func TestOrdersAreTheAnswers(t *testing.T) {
	testserver.NeedsServers(t)
	for _, tt := range []struct {
		strategy string
		held     bool
	}{{"batched", true}, {"redis-async", false}} {
		t.Run(tt.strategy, func(t *testing.T) {
			s, err := ladder.ByName(tt.strategy)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Run(t.Context(), Options{Strategy: s.Describe(), Sales: 4000, Shops: 3, Workers: 48, Every: 300 * time.Millisecond, Log: t.Output()})
			if err != nil {
				t.Fatal(err)
			}
			var printed bytes.Buffer
			r.Print(&printed)
			t.Log("\n" + printed.String())
			if r.Kills == 0 || r.Unknown == 0 {
				t.Errorf("%d kills, %d requests without a clear answer: nothing was tested", r.Kills, r.Unknown)
			}
			if r.Held() != tt.held {
				t.Errorf("held: %t, want %t", r.Held(), tt.held)
			}
			if lied := r.AnswersWithoutOrder > 0; lied == tt.held {
				t.Errorf("%d answers without an order", r.AnswersWithoutOrder)
			}
			if said := strings.Contains(printed.String(), "held: "); said != tt.held {
				t.Errorf("the report says held: %t, want %t", said, tt.held)
			}
		})
	}
}
