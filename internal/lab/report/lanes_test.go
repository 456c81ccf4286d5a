package report

import (
	"regexp"
	"strings"
	"testing"

	"stocklock/internal/lab/explain"
)

// Where spans of a lane overlap, a text has room only in what is not covered.
func TestTextsOfALaneDoNotOverlap(t *testing.T) {
	const first, second, third = "shop 1 cut off from Redis", "shop 2 stopped at its write", "shop 3 restarts"
	x := &explain.Explanation{ToMS: 100, Lanes: []explain.Lane{{Kind: explain.FaultLane, Name: explain.Text{Words: "faults"}, Spans: []explain.Span{
		{FromMS: 0, ToMS: 26, Kind: explain.Faulty, Text: explain.Text{Words: first}},
		{FromMS: 13.5, ToMS: 40, Kind: explain.Faulty, Text: explain.Text{Words: second}},
		{FromMS: 60, ToMS: 90, Kind: explain.Faulty, Text: explain.Text{Words: third}},
	}}}}
	drawing := string(lanesDrawing(x, 0, 100, "of a test"))
	var drawn []string
	for _, m := range regexp.MustCompile(`<text class="in mid"[^>]*>([^<]*)<`).FindAllStringSubmatch(drawing, -1) {
		drawn = append(drawn, m[1])
	}
	if got := strings.Join(drawn, ", "); got != second+", "+third {
		t.Errorf("drawn are %q, want the second and the third", got)
	}
	if !strings.Contains(drawing, "faults: "+first) {
		t.Error("the first has no hint either")
	}
}
