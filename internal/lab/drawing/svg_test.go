package drawing

import (
	"math"
	"reflect"
	"testing"
)

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
