package drawing

import (
	"math"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"stocklock/internal/lab/explain"
)

// Where spans of a column overlap, a text has room only in what is not covered.
func TestTextsOfAColumnDoNotOverlap(t *testing.T) {
	const first, second, third = "shop 1 cut off from Redis", "shop 2 stopped at its write", "shop 3 restarts"
	x := &explain.Explanation{ToMS: 100, Columns: []explain.Column{{Kind: explain.FaultColumn, Name: explain.Text{Words: "faults"}, Spans: []explain.Span{
		{FromMS: 0, ToMS: 26, Kind: explain.Faulty, Text: explain.Text{Words: first}},
		{FromMS: 13.5, ToMS: 40, Kind: explain.Faulty, Text: explain.Text{Words: second}},
		{FromMS: 60, ToMS: 90, Kind: explain.Faulty, Text: explain.Text{Words: third}},
	}}}}
	drawing := string(NewInterleaving(x, explain.English).Whole)
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

func TestTicksAreRound(t *testing.T) {
	for _, tt := range []struct {
		from, to float64
		n        int
		want     []float64
	}{
		{0, 10, 5, []float64{0, 2, 4, 6, 8, 10}},
		{-104, 867, 9, []float64{0, 200, 400, 600, 800}},
		{497.8, 522.9, 9, []float64{500, 505, 510, 515, 520}},
		{0, 1, 4, []float64{0, 0.5, 1}},
		{3, 3, 4, nil},
	} {
		if got := (scale{from: tt.from, to: tt.to}).ticks(tt.n); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("ticks of %v to %v = %v, want %v", tt.from, tt.to, got, tt.want)
		}
	}
}

// TestTicksEnd has a step that is too small to change the value.
func TestTicksEnd(t *testing.T) {
	if got := (scale{from: 1e12, to: math.Nextafter(1e12, 2e12)}).ticks(4); len(got) > 5 {
		t.Errorf("%d ticks, want about 4", len(got))
	}
}
