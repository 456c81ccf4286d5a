package drawing

import (
	"fmt"
	"html/template"

	"github.com/jedib0t/go-pretty/v6/text"

	"stocklock/internal/lab/explain"
)

// The size of a drawing of columns, in pixels. Time goes to the right.
const (
	columnsWidth = 1000.0
	columnsLeft  = 178.0
	columnsRight = 988.0
	columnsTop   = 30.0
	columnHeight = 36.0
	letterWidth  = 7.0 // of the text within a span, at most
)

// Interleaving is a drawing of an explanation to scale: a column for each holder, for the lock in
// each Redis, for the row and for the faults.
type Interleaving struct {
	Whole  template.HTML // empty where there is nothing to draw
	Closer template.HTML // a part in which the whole is too coarse, empty where there is none
	FromMS float64       // the part that Closer shows
	ToMS   float64
}

// NewInterleaving draws an explanation in words of a language.
func NewInterleaving(x *explain.Explanation, in explain.Language) Interleaving {
	if len(x.Columns) == 0 {
		return Interleaving{}
	}
	i := Interleaving{Whole: columns(x, x.FromMS, x.ToMS, in)}
	if from, to, worth := closeUp(x); worth {
		i.Closer, i.FromMS, i.ToMS = columns(x, from, to, in), from, to
	}
	return i
}

// columnTop and columnMiddle are heights of the i-th column.
func columnTop(i int) float64    { return columnsTop + columnHeight*float64(i) }
func columnMiddle(i int) float64 { return columnTop(i) + columnHeight/2 }

// columns draws what happened between two times.
func columns(x *explain.Explanation, from, to float64, in explain.Language) template.HTML {
	d, at, bottom := &SVG{}, scale{from, to, columnsLeft, columnsRight}, columnTop(len(x.Columns))
	for _, v := range at.ticks(9) {
		d.Line("grid", at.at(v), columnsTop, at.at(v), bottom, "")
		d.text("tick mid", at.at(v), bottom+15, Short(v))
	}
	d.text("tick", 4, bottom+15, in.Say(explain.Text{Phrase: explain.Milliseconds}))
	if b := x.Both; b != nil {
		if left, width, ok := at.within(b.FromMS, b.ToMS); ok {
			hint := fmt.Sprintf("%s for %s ms", in.Say(b.Text), Short(b.ToMS-b.FromMS))
			d.Rect("both", left, columnsTop, width, bottom-columnsTop, hint)
		}
	}
	for i, c := range x.Columns {
		d.text("column", 4, columnMiddle(i)+4, in.Say(c.Name))
		d.Line("base", columnsLeft, columnMiddle(i), columnsRight, columnMiddle(i), "")
	}
	for i, c := range x.Columns {
		for _, s := range c.Spans {
			d.span(at, i, c, s, in)
		}
	}
	for _, s := range x.Steps {
		if s.AtMS < from || s.AtMS > to {
			continue
		}
		left, middle, class := at.at(s.AtMS), columnMiddle(s.Column), "step"
		if s.To != s.Column {
			d.Line("to", left, middle, left, columnMiddle(s.To), "")
		}
		if s.Alarm {
			class = "step alarm"
		}
		d.Tag("circle", "", "class", class, "cx", left, "cy", middle, "r", 4,
			"data-t", fmt.Sprintf("%+.1f ms · %s: %s", s.AtMS, in.Say(x.Columns[s.Column].Name), in.Say(s.Text)))
	}
	if m := x.Moment; m != nil && m.AtMS >= from && m.AtMS <= to {
		left, class, sign := at.at(m.AtMS), "moment", "◆ "
		if m.Alarm {
			class, sign = "moment alarm", "▲ "
		}
		d.Line(class, left, 18, left, bottom, "")
		d.text(class+" "+anchorAt(left), left, 13, sign+in.Say(m.What))
	}
	return d.picture("columns", in.Say(x.Why...), columnsWidth, bottom+24)
}

// span draws a span of the i-th column, with its text where that has room.
func (d *SVG) span(at scale, i int, c explain.Column, s explain.Span, in explain.Language) {
	left, width, ok := at.within(s.FromMS, s.ToMS)
	if !ok {
		return
	}
	words, class := in.Say(s.Text), "s-"+string(s.Kind)
	hint := fmt.Sprintf("%s: %s, %+.1f to %+.1f ms", in.Say(c.Name), words, s.FromMS, s.ToMS)
	if s.Kind == explain.Waiting {
		d.Rect(class, left, columnMiddle(i)-2, width, 4, hint)
		return
	}
	d.Rect(class, left, columnTop(i)+8, width, columnHeight-16, hint)
	until := s.ToMS
	for _, over := range c.Spans { // the next one lies over this one
		if over != s && over.FromMS >= s.FromMS {
			until = min(until, over.FromMS)
		}
	}
	needed := float64(text.StringWidthWithoutEscSequences(words))*letterWidth + 6
	if left, width, ok := at.within(s.FromMS, until); ok && width > needed {
		d.text("in mid", left+width/2, columnMiddle(i)+4, words)
	}
}

// anchorAt keeps a text near the edge within the drawing.
func anchorAt(x float64) string {
	switch {
	case x > columnsRight-260:
		return "end"
	case x < columnsLeft+260:
		return "start"
	}
	return "mid"
}

// closeUp is the part in which the second holder is at work, where that is too short to be seen
// in the whole.
func closeUp(x *explain.Explanation) (from, to float64, worth bool) {
	second := -1
	for i, c := range x.Columns {
		if c.Kind == explain.HolderColumn {
			second = i
		}
	}
	steps := 0
	for _, s := range x.Steps {
		if s.Column != second || s.Text.Phrase == explain.Asks {
			continue
		}
		if steps == 0 {
			from = s.AtMS
		}
		to = s.AtMS
		steps++
	}
	margin := max((to-from)*0.3, 5)
	from, to = max(from-margin, x.FromMS), min(to+margin, x.ToMS)
	return from, to, steps > 1 && (to-from)*3 < x.ToMS-x.FromMS
}
