package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/trial"
)

// outcomes are stacked in this order.
var outcomes = []struct {
	outcome load.Outcome
	name    string
}{
	{load.Sold, "sold"}, {load.SoldOut, "sold out"}, {load.Busy, "busy"}, {load.Fenced, "fenced off"}, {load.Lost, "lock lost"},
	{load.Conflict, "conflict"}, {load.Refused, "refused"}, {load.Unknown, "unknown"}, {load.Failed, "error"},
}

// The size of a chart, and the edges of its plot.
const (
	chartWidth, chartHeight = 640.0, 190.0
	chartLeft, chartRight   = 46.0, 632.0
	chartTop, chartBottom   = 10.0, 160.0
)

// chart is a plot with axes.
type chart struct {
	svg
	x, y scale
}

func newChart(x, y scale) *chart {
	c := &chart{svg: svg{width: chartWidth, height: chartHeight}, x: x, y: y}
	c.x.left, c.x.right, c.y.left, c.y.right = chartLeft, chartRight, chartBottom, chartTop
	return c
}

func (c *chart) axes(unit string) {
	for _, v := range c.y.ticks(4) {
		y := c.y.at(v)
		c.line("grid", chartLeft, y, chartRight, y)
		c.text("tick end", chartLeft-5, y+4, short(v))
	}
	for _, v := range c.x.ticks(8) {
		c.text("tick mid", c.x.at(v), chartBottom+15, short(v))
	}
	c.text("tick end", chartRight, chartBottom+28, unit)
}

func (c *chart) shadeFaults(faults []trial.Period, in explain.Language) {
	for _, f := range faults {
		from, to := c.x.at(max(f.FromMS/1000, c.x.from)), c.x.at(min(f.ToMS/1000, c.x.to))
		c.rect("shade", from, chartTop, to-from, chartBottom-chartTop, fmt.Sprintf("%s, %s–%s s", in.Say(f.What), short(f.FromMS/1000), short(f.ToMS/1000)))
	}
}

// outcomesChart shows the outcomes of requests over time, with the faults shaded.
func outcomesChart(t trial.Timeline, in explain.Language) template.HTML {
	bins := len(t.P50)
	if bins == 0 {
		return ""
	}
	highest := 1.0
	for i := range bins {
		var sum int64
		for _, counts := range t.Outcomes {
			sum += counts[i]
		}
		highest = max(highest, float64(sum))
	}
	c := newChart(scale{from: 0, to: float64(bins) * t.BinMS / 1000}, scale{from: 0, to: highest})
	c.shadeFaults(t.Faults, in)
	c.axes("s")
	width := (chartRight - chartLeft) / float64(bins)
	below := make([]float64, bins)
	said := []explain.Text{{Phrase: explain.ChartOutcomes, Facts: explain.Facts{LastedMS: t.BinMS}}}
	for _, o := range outcomes {
		counts := t.Outcomes[o.outcome]
		var sum int64
		var bars bars
		for i, n := range counts {
			if n == 0 {
				continue
			}
			bars.add(chartLeft+float64(i)*width, c.y.at(below[i]), width*0.9, c.y.at(below[i]+float64(n)))
			below[i] += float64(n)
			sum += n
		}
		if sum > 0 {
			c.tag("path", "", "class", "o-"+string(o.outcome), "d", bars.String())
			said = append(said, explain.Text{Phrase: explain.ChartCount, Facts: explain.Facts{Count: int(sum), Outcome: string(o.outcome)}})
		}
	}
	return c.drawing("chart", in.Say(said...))
}

// bars is one path for all bars of a colour: a page has many thousands of them.
type bars struct{ strings.Builder }

func (b *bars) add(left, bottom, width, top float64) {
	fmt.Fprintf(b, "M%s %sV%sh%sV%sz", value(left), value(bottom), value(top), value(width), value(bottom))
}

// latencyChart shows the median and the 99th percentile over time.
func latencyChart(t trial.Timeline, in explain.Language) template.HTML {
	if len(t.P50) == 0 {
		return ""
	}
	highest := max(slices.Max(t.P99), 1)
	c := newChart(scale{from: 0, to: float64(len(t.P50)) * t.BinMS / 1000}, scale{from: 0, to: highest})
	c.shadeFaults(t.Faults, in)
	c.axes("s")
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
			path.WriteString(draw + value(c.x.at((float64(i)+0.5)*t.BinMS/1000)) + " " + value(c.y.at(v)))
			draw = "L"
		}
		c.tag("path", "", "class", l.class, "d", path.String())
	}
	return c.drawing("chart", in.Say(explain.Text{Phrase: explain.ChartLatency, Facts: explain.Facts{LastedMS: highest}}))
}

// distributionChart shows how many requests took how long, on a logarithmic scale.
func distributionChart(buckets []trial.Bucket) template.HTML {
	if len(buckets) == 0 {
		return ""
	}
	highest := int64(1)
	for _, b := range buckets {
		highest = max(highest, b.Count)
	}
	last := math.Log10(buckets[len(buckets)-1].UpToMS)
	first := math.Log10(buckets[0].UpToMS) - 0.1
	c := newChart(scale{from: first, to: last}, scale{from: 0, to: float64(highest)})
	for _, v := range c.y.ticks(4) {
		c.line("grid", chartLeft, c.y.at(v), chartRight, c.y.at(v))
		c.text("tick end", chartLeft-5, c.y.at(v)+4, short(v))
	}
	for power := math.Floor(first); power <= last; power++ {
		for _, times := range []float64{1, 2, 5} {
			if v := math.Pow(10, power) * times; math.Log10(v) >= first && math.Log10(v) <= last {
				c.text("tick mid", c.x.at(math.Log10(v)), chartBottom+15, short(v))
			}
		}
	}
	c.text("tick end", chartRight, chartBottom+28, "ms")
	var counted bars
	for _, b := range buckets {
		if b.Count > 0 {
			left, right := c.x.at(math.Log10(b.UpToMS)-0.1), c.x.at(math.Log10(b.UpToMS))
			counted.add(left, chartBottom, (right-left)*0.92, c.y.at(float64(b.Count)))
		}
	}
	c.tag("path", "", "class", "bar", "d", counted.String())
	return c.drawing("chart", fmt.Sprintf("Requests by latency: between %s and %s ms", short(math.Pow(10, first)), short(buckets[len(buckets)-1].UpToMS)))
}
