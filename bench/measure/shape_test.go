package measure

import (
	"testing"
	"time"
)

func TestParseShape(t *testing.T) {
	for _, test := range []struct {
		name string
		want Shape
	}{
		{"4x8", Shape{Processes: 4, Goroutines: 8}},
		{"1x1", Shape{Processes: 1, Goroutines: 1}},
		{"4x8+500us", Shape{Processes: 4, Goroutines: 8, Delay: 500 * time.Microsecond}},
		{"pairs", Shape{Processes: 1, Goroutines: 1, Pairs: true}},
		{"8x1/1ms", Shape{Processes: 8, Goroutines: 1, Pause: time.Millisecond}},
		{"4x8+500us/2ms", Shape{Processes: 4, Goroutines: 8, Delay: 500 * time.Microsecond, Pause: 2 * time.Millisecond}},
		{"hold-1000", Shape{Processes: 1, Goroutines: 1, Hold: 1000}},
	} {
		test.want.Name = test.name
		if got, err := ParseShape(test.name); err != nil || got != test.want {
			t.Errorf("ParseShape(%q) = %+v, %v; want %+v", test.name, got, err, test.want)
		}
	}
	for _, wrong := range []string{"", "4", "4x", "x8", "0x8", "4x0", "4x8+", "4x8+fast", "4x8+-1ms", "4x8+1h", "hold-0", "129x1", "100x100", "99999999999999999999x1", "2x9223372036854775807", "4x4611686018427387904", "4x8/", "4x8/0s", "4x8/1h", "4x8/1ms+500us", "hold-1000+1ms", "hold-1000/1ms", "pairs+1ms"} {
		if got, err := ParseShape(wrong); err == nil {
			t.Errorf("ParseShape(%q) = %+v, want an error", wrong, got)
		}
	}
}
