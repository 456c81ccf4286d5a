package report

import (
	"strings"
	"testing"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/trial"
)

// A diagram without a participant is drawn as nothing.
func TestADiagramWithoutStepsSaysItsSentence(t *testing.T) {
	for _, tt := range []struct {
		cell trial.Result
		says string
	}{
		{trial.Result{Problem: "it needs several Redis servers"}, "it needs several Redis servers"},
		{trial.Result{}, "nothing can be said"},
		{trial.Result{Explanation: &explain.Explanation{Why: []explain.Text{{Words: "Orders 1 and 2 both read #3; so two sales were at work at once"}}}},
			"both read #35;3#59; so two sales were at work<br/>at once"},
		{trial.Result{Explanation: &explain.Explanation{Why: []explain.Text{{Words: "All waited."}}, Moment: &explain.Moment{What: explain.Text{Words: "oversold"}}}}, "All waited."},
		{trial.Result{Explanation: &explain.Explanation{Why: []explain.Text{{Words: "All waited."}}, Columns: []explain.Column{{Kind: explain.OthersColumn}}}}, "All waited."},
	} {
		var out strings.Builder
		tt.cell.Strategy, tt.cell.Scenario = "none", "failover"
		Mermaid(&out, tt.cell)
		want := "sequenceDiagram\n  participant p0 as none:failover\n  Note over p0: "
		if !strings.HasPrefix(out.String(), want) || !strings.Contains(out.String(), tt.says) || strings.Contains(out.String(), "p-1") {
			t.Errorf("%q, want %q and %q", out.String(), want, tt.says)
		}
	}
}
