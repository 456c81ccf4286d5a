package load

import (
	"math"
	"strconv"
	"strings"
	"time"

	"stocklock/internal/lab/words"
)

// Shape is how many requests a second are sent over time, whether or not earlier ones were
// answered. The zero value has no rate: each customer waits for an answer.
type Shape struct {
	spec   string
	stages []stage
}

// stage is a period with a rate that is constant or changes evenly.
type stage struct {
	from, to float64       // requests a second
	lasts    time.Duration // 0 for no end
}

// The limits of a shape.
const (
	maxRate  = 100_000
	maxStage = time.Hour
)

// Steady returns the shape of one rate, in requests a second. For 0 it returns the zero value.
func Steady(rate int) Shape {
	if rate == 0 {
		return Shape{}
	}
	return Shape{spec: strconv.Itoa(rate), stages: []stage{{float64(rate), float64(rate), 0}}}
}

// Form is a way to write a shape. A new one is an entry of [Forms], its case in [ParseShape] and,
// where its rate does not change evenly, in Shape.Steps and the methods of a stage, sends and after.
type Form struct {
	Example string `json:"-"` // for the help of flags and for messages
	Means   string `json:"-"`
	// Offered is such a shape on the live page, with an end within seconds. The catalogue has its name, under form.
	Offered string `json:"shape"`
}

// Forms are all of them. The help of --rate, the messages of ParseShape and the live page read them.
// docs/using.md explains some.
var Forms = []Form{
	{Example: "200", Means: "a constant rate"},
	{Example: "200/10s", Means: "for a time", Offered: "200/5s"},
	{Example: "200..2000/30s", Means: "growing", Offered: "50..600/8s"},
	{Example: "100,500,1000/10s", Means: "steps of ten seconds each", Offered: "100,300,600/2s"},
}

// Help lists the forms, each with what it means.
func Help() string {
	var each []string
	for _, f := range Forms {
		each = append(each, f.Example+", "+f.Means)
	}
	return strings.Join(each, "; ")
}

// ParseShape reads one of the [Forms]. After its last stage a shape keeps its rate. Empty and "0"
// are the zero value.
func ParseShape(spec string) (Shape, error) {
	if spec == "" || spec == "0" {
		return Shape{}, nil
	}
	rates, duration, timed := strings.Cut(spec, "/")
	var lasts time.Duration
	if timed {
		var err error
		if lasts, err = time.ParseDuration(duration); err != nil || lasts < 100*time.Millisecond || lasts > maxStage {
			return Shape{}, words.Of("shape.duration", "given", strconv.Quote(duration), "least", "100ms", "most", maxStage.String())
		}
	}
	s := Shape{spec: spec}
	if from, to, ramp := strings.Cut(rates, ".."); ramp {
		if !timed {
			return Shape{}, words.Of("shape.ramp", "least", from, "most", to, "given", rates)
		}
		low, err := parseRate(from, 0)
		if err != nil {
			return Shape{}, err
		}
		high, err := parseRate(to, 1)
		if err != nil {
			return Shape{}, err
		}
		s.stages = []stage{{low, high, lasts}}
		return s, nil
	}
	steps := strings.Split(rates, ",")
	if len(steps) > 1 && !timed {
		return Shape{}, words.Of("shape.steps", "given", rates)
	}
	for _, step := range steps {
		rate, err := parseRate(step, 1)
		if err != nil {
			return Shape{}, err
		}
		s.stages = append(s.stages, stage{rate, rate, lasts})
	}
	return s, nil
}

func parseRate(s string, least int) (float64, error) {
	rate, err := strconv.Atoi(s)
	if err != nil || rate < least || rate > maxRate {
		return 0, words.Of("shape.rate", "given", strconv.Quote(s), "least", least, "most", maxRate, "example", Forms[2].Example)
	}
	return float64(rate), nil
}

// String returns the form that [ParseShape] reads.
func (s Shape) String() string { return s.spec }

// IsZero reports whether there is no rate.
func (s Shape) IsZero() bool { return len(s.stages) == 0 }

// Total returns how many requests the stages send, or false where one has no end.
func (s Shape) Total() (requests int, ends bool) {
	var n float64
	for _, st := range s.stages {
		if st.lasts == 0 {
			return 0, false
		}
		n += st.sends()
	}
	return int(n), len(s.stages) > 0
}

func (st stage) sends() float64 { return (st.from + st.to) / 2 * st.lasts.Seconds() }

// Step is a part of a shape whose requests are counted by themselves.
type Step struct {
	From, To time.Duration // from the beginning
	Rate     float64       // requests a second, on average
}

// Length is how long the step lasts.
func (s Step) Length() time.Duration { return s.To - s.From }

// partsOfRamp is how many steps a rate that grows is divided into.
const partsOfRamp = 5

// Steps returns the parts of a shape with different rates: its stages, where one that grows is five
// steps of the same length. There are none for one constant rate.
func (s Shape) Steps() []Step {
	var steps []Step
	var begun time.Duration
	for _, st := range s.stages {
		parts := 1
		if st.from != st.to {
			parts = partsOfRamp
		}
		length := st.lasts / time.Duration(parts)
		growth := (st.to - st.from) / float64(parts)
		for i := range parts {
			from := begun + time.Duration(i)*length
			steps = append(steps, Step{From: from, To: from + length, Rate: st.from + growth*(float64(i)+0.5)})
		}
		begun += st.lasts
	}
	if len(steps) < 2 {
		return nil
	}
	return steps
}

// Due returns when the n-th request, counted from 0, is to be sent, from the beginning.
func (s Shape) Due(n int) time.Duration {
	left, begun := float64(n), time.Duration(0)
	for _, st := range s.stages {
		if st.lasts == 0 || left < st.sends() {
			return begun + seconds(st.after(left))
		}
		left, begun = left-st.sends(), begun+st.lasts
	}
	if s.IsZero() {
		return 0
	}
	return begun + seconds(left/s.stages[len(s.stages)-1].to)
}

// after returns how many seconds the stage takes to send n requests: n = from*t + growth*t*t/2.
func (st stage) after(n float64) float64 {
	if st.from == st.to {
		return n / st.from
	}
	growth := (st.to - st.from) / st.lasts.Seconds()
	return (math.Sqrt(st.from*st.from+2*growth*n) - st.from) / growth
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
