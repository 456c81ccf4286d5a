package drawing

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
)

// The size of a chart, and the edges of its plot.
const (
	chartWidth, chartHeight = 640.0, 190.0
	chartLeft, chartRight   = 46.0, 632.0
	chartTop, chartBottom   = 10.0, 160.0
)

// chart is a plot with axes.
type chart struct {
	SVG
	x, y scale
}

func newChart(from, to, highest float64) *chart {
	return &chart{x: scale{from, to, chartLeft, chartRight}, y: scale{0, highest, chartBottom, chartTop}}
}

// axes draws the axes. Each value lies at a place of the horizontal one.
func (c *chart) axes(unit string, values []float64, place func(float64) float64) {
	for _, v := range c.y.ticks(4) {
		y := c.y.at(v)
		c.Line("grid", chartLeft, y, chartRight, y, "")
		c.text("tick end", chartLeft-5, y+4, Short(v))
	}
	for _, v := range values {
		c.text("tick mid", c.x.at(place(v)), chartBottom+15, Short(v))
	}
	c.text("tick end", chartRight, chartBottom+28, unit)
}

func (c *chart) drawn(description string) string {
	return c.picture("chart", description, chartWidth, chartHeight)
}

// overTime is a chart over the time of a cell, with its faults shaded.
func overTime(t trial.Timeline, highest float64, beside []trial.Timeline, all *Words) *chart {
	long := lasted(t)
	for _, other := range beside {
		long = max(long, lasted(other))
	}
	c := newChart(0, long, highest)
	for _, f := range t.Faults {
		from, to := c.x.at(max(f.FromMS/1000, c.x.from)), c.x.at(min(f.ToMS/1000, c.x.to))
		hint := fmt.Sprintf("%s, %s–%s s", all.Say(f.What), Short(f.FromMS/1000), Short(f.ToMS/1000))
		c.Rect("shade", from, chartTop, max(to-from, 0.5), chartBottom-chartTop, hint)
	}
	c.axes("s", c.x.ticks(8), func(v float64) float64 { return v })
	return c
}

// OverTime draws the outcomes of a cell's requests over time, and the median and the 99th percentile
// of their latency. Both are empty for a cell without requests. The axes are those of all that are shown
// beside it, and have answers a second instead of answers in a bar.
func OverTime(t trial.Timeline, all *Words, beside ...trial.Timeline) (outcomes, latency string) {
	if len(t.P50) == 0 {
		return "", ""
	}
	return outcomesOverTime(t, beside, all), latencyOverTime(t, beside, all)
}

func outcomesOverTime(t trial.Timeline, beside []trial.Timeline, all *Words) string {
	highest, each := most(t), 1.0
	if len(beside) > 0 { // bars can be of other widths: all show what comes in a second
		highest, each = 1, 1000/t.BinMS
		for _, other := range append(slices.Clone(beside), t) {
			highest = max(highest, most(other)*1000/max(other.BinMS, 1))
		}
	}
	c := overTime(t, highest, beside, all)
	width := c.x.at(t.BinMS/1000) - c.x.at(0)
	below := make([]float64, len(t.P50))
	said := []words.Text{words.Of("chart-outcomes", "lasted_ms", t.BinMS)}
	for _, o := range verdict.Answers {
		var sum int64
		var bars strings.Builder
		for i, n := range t.Outcomes[load.Outcome(o.Name)] {
			if n == 0 {
				continue
			}
			fmt.Fprintf(&bars, "M%d %.0fV%.0f", i, c.y.at(below[i]*each), c.y.at((below[i]+float64(n))*each))
			below[i] += float64(n)
			sum += n
		}
		if sum > 0 {
			c.bins("o-"+o.Name, chartLeft, width, bars.String())
			said = append(said, words.Of("chart-count", "count", sum, "outcome", o.Name))
		}
	}
	return c.drawn(all.Say(said...))
}

// lasted is how long a cell took, in seconds.
func lasted(t trial.Timeline) float64 { return float64(len(t.P50)) * t.BinMS / 1000 }

// most is the largest sum of a bin.
func most(t trial.Timeline) float64 {
	highest := 1.0
	for i := range t.P50 {
		var sum int64
		for _, counts := range t.Outcomes {
			sum += counts[i]
		}
		highest = max(highest, float64(sum))
	}
	return highest
}

// bins adds one path for a value in each bin. Its horizontal coordinates are numbers of bins, and a bar is a line: a page
// has many thousands of them.
func (c *chart) bins(class string, left, width float64, path string) {
	c.Tag("path", "", "class", class, "transform", fmt.Sprintf("translate(%s)scale(%.3f,1)", value(left+width/2), width), "d", path)
}

func latencyOverTime(t trial.Timeline, beside []trial.Timeline, all *Words) string {
	highest := max(slices.Max(t.P99), 1)
	for _, other := range beside {
		highest = max(highest, slices.Max(append(slices.Clone(other.P99), 1)))
	}
	c := overTime(t, highest, beside, all)
	for _, l := range []struct {
		class  string
		values []float64
	}{{"p99", t.P99}, {"p50", t.P50}} {
		var path strings.Builder
		draw := "M"
		for i, v := range l.values {
			if v == 0 {
				continue // no request was answered then
			}
			fmt.Fprintf(&path, "%s%d %.0f", draw, i, c.y.at(v))
			draw = "L"
		}
		c.bins(l.class, chartLeft, c.x.at(t.BinMS/1000)-chartLeft, path.String())
	}
	return c.drawn(all.Say(words.Of("chart-latency", "lasted_ms", max(slices.Max(t.P99), 1))))
}

// Distribution draws how many requests took how long, on a logarithmic scale. It is empty for none.
func Distribution(buckets []trial.Bucket, all *Words) string {
	if len(buckets) == 0 {
		return ""
	}
	highest := int64(1)
	for _, b := range buckets {
		highest = max(highest, b.Count)
	}
	longest := buckets[len(buckets)-1].UpToMS
	first, last := math.Log10(buckets[0].UpToMS)-0.1, math.Log10(longest)
	var values []float64
	for power := math.Floor(first); power <= last; power++ {
		for _, times := range []float64{1, 2, 5} {
			if v := math.Pow(10, power) * times; math.Log10(v) >= first && math.Log10(v) <= last {
				values = append(values, v)
			}
		}
	}
	c := newChart(first, last, float64(highest))
	c.axes("ms", values, math.Log10)
	var counted strings.Builder
	for i, b := range buckets {
		if b.Count > 0 {
			fmt.Fprintf(&counted, "M%d %.0fV%.0f", i, chartBottom, c.y.at(float64(b.Count)))
		}
	}
	c.bins("buckets", chartLeft, (chartRight-chartLeft)/float64(len(buckets)), counted.String())
	return c.drawn(all.Say(words.Of("chart-buckets", "lasted_ms", longest)))
}
