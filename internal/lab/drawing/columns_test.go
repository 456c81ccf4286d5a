package drawing

import (
	"fmt"
	"strings"
	"testing"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/words"
)

// TestADrawingIsForAllLanguages: it has the numbers of its words, and the words that all languages share.
func TestADrawingIsForAllLanguages(t *testing.T) {
	asks, hold := words.Text{Key: explain.Asks}, words.Text{Words: "#4"}
	x := &explain.Explanation{ToMS: 100, Moment: &explain.Moment{AtMS: 40, What: asks, Alarm: true}, Both: &explain.Span{FromMS: 10, ToMS: 20, Text: asks},
		Columns: []explain.Column{
			{Kind: explain.HolderColumn, Name: asks, Spans: []explain.Span{{FromMS: 0, ToMS: 26.04, Kind: explain.Inside, Text: hold}, {FromMS: -5, ToMS: 0, Kind: explain.Waiting, Text: asks}}},
			{Kind: explain.LockColumn, Name: words.Text{Words: "{0}"}},
		},
		Steps: []explain.Step{{AtMS: 1, Text: hold}, {AtMS: 2, Text: hold}, {AtMS: 3, To: 1, Text: asks, Alarm: true}},
	}
	words := &Words{}
	drawn := NewInterleaving(x, words)
	for _, want := range []string{
		`<rect class="both" x="10" y="22" width="10" height="72" data-t="{0}"/>`, `<rect class="s-inside" x="0" y="30" width="26" height="20" data-t="#4"/>`,
		`<rect class="s-waiting" x="-5" y="38" width="5" height="4" data-t="{0}"/>`, `<path class="to" d="M3 40L3 76"/>`,
		`<path class="step alarm" d="M3 40h0" data-t="{0}"/>`, `<path class="moment alarm" d="M40 22L40 94" data-t="{0}"/>`,
	} {
		if !strings.Contains(drawn.Shapes, want) {
			t.Errorf("there is no %s in %s", want, drawn.Shapes)
		}
	}
	if drawn.Columns[0].Name != "{0}" || drawn.Columns[1].Name != "{1}" || drawn.Moment.What != "{0}" || drawn.Closer == nil {
		t.Errorf("the columns are %+v, the moment %+v, closer %v", drawn.Columns, drawn.Moment, drawn.Closer)
	}
	if said := fmt.Sprint(words.Texts); said != "[[asks] [{0}]]" {
		t.Errorf("the texts are %s", said)
	}
	if NewInterleaving(&explain.Explanation{}, words) != nil {
		t.Error("something is drawn of nothing")
	}
}

// TestChartsCountInBins: bars stand on each other, and a bin without an answer is left out of a line.
func TestChartsCountInBins(t *testing.T) {
	timeline := trial.Timeline{BinMS: 10, P50: []float64{5, 0, 10}, P99: []float64{5, 0, 10}, Faults: []trial.Period{{FromMS: 5, ToMS: 15}},
		Outcomes: map[load.Outcome][]int64{"sold": {1, 0, 2}, "busy": {1, 0, 0}}}
	words := &Words{}
	outcomes, latency := OverTime(timeline, words)
	for drawn, want := range map[string]string{outcomes: `d="M0 160V85M2 160V10"/><path class="o-busy"`, latency: `class="p50" transform="translate(143.7)scale(195.333,1)" d="M0 85L2 10"/>`} {
		if !strings.Contains(drawn, want) || !strings.Contains(drawn, `class="shade"`) {
			t.Errorf("there is no %s in %s", want, drawn)
		}
	}
	if buckets := Distribution([]trial.Bucket{{UpToMS: 1, Count: 4}, {UpToMS: 1.26}, {UpToMS: 1.58, Count: 2}}, words); !strings.Contains(buckets, `d="M0 160V10M2 160V85"`) {
		t.Errorf("the buckets are %s", buckets)
	}
	if outcomes, latency := OverTime(trial.Timeline{}, words); outcomes+latency+Distribution(nil, words) != "" {
		t.Error("charts are drawn of nothing")
	}
}

// TestChartsShareAnAxis of answers a second, however long their bins are.
func TestChartsShareAnAxis(t *testing.T) {
	slow := trial.Timeline{BinMS: 5000, P50: []float64{5}, P99: []float64{5}, Outcomes: map[load.Outcome][]int64{"sold": {500}}}
	fast := trial.Timeline{BinMS: 500, P50: []float64{5}, P99: []float64{5}, Outcomes: map[load.Outcome][]int64{"sold": {100}}}
	for name, tt := range map[string]struct {
		of   trial.Timeline
		want string
	}{"100 of 200 a second": {slow, "M0 160V85"}, "200 of 200 a second": {fast, "M0 160V10"}} {
		if outcomes, _ := OverTime(tt.of, &Words{}, slow, fast); !strings.Contains(outcomes, `d="`+tt.want+`"`) {
			t.Errorf("%s: there is no bar %s in %s", name, tt.want, outcomes)
		}
	}
}
