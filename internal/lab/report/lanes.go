package report

import (
	"fmt"
	"html/template"

	"github.com/jedib0t/go-pretty/v6/text"

	"stocklock/internal/lab/explain"
)

// The size of a drawing of lanes.
const (
	lanesWidth  = 1000.0
	lanesLeft   = 178.0
	lanesRight  = 988.0
	lanesTop    = 30.0
	laneHeight  = 36.0
	letterWidth = 7.0 // of the text within a span, at most
)

// lanesDrawing draws the interleaving between two times to scale: one lane for each holder, for the
// lock in each Redis, for the row and for the faults.
func lanesDrawing(x *explain.Explanation, from, to float64, description string) template.HTML {
	return lanesOf(x, from, to, explain.English).drawn(description, explain.English)
}

// lanes is a drawing in numbers: what has which place and says what.
type lanes struct {
	bottom float64
	ticks  []mark
	both   *box // when two were in the section at once; nil where never
	names  []mark
	boxes  []box
	steps  []stepMark
	moment *momentMark // nil where it is not shown
}

// mark is a text at a place.
type mark struct {
	x, y float64
	text string
}

// box is a time in which something lasted.
type box struct {
	class               string
	x, y, width, height float64
	hint                string
	inside              *mark // its text, nil where that has no room
}

// stepMark is a step, and the lane that it leads to.
type stepMark struct {
	x, y, to float64
	alarm    bool
	hint     string
}

// momentMark is when the cell was decided.
type momentMark struct {
	x      float64
	alarm  bool
	anchor string // of its text, so that it stays within the drawing
	text   string
}

// laneTop and laneMiddle are heights of the i-th lane.
func laneTop(i int) float64    { return lanesTop + laneHeight*float64(i) }
func laneMiddle(i int) float64 { return laneTop(i) + laneHeight/2 }

// lanesOf computes the drawing of what happened between two times, in words of a language.
func lanesOf(x *explain.Explanation, from, to float64, in explain.Language) lanes {
	at := scale{from, to, lanesLeft, lanesRight}
	d := lanes{bottom: laneTop(len(x.Lanes))}
	for _, v := range at.ticks(9) {
		d.ticks = append(d.ticks, mark{at.at(v), d.bottom + 15, short(v)})
	}
	if x.Both != nil {
		if left, width, ok := at.within(*x.Both); ok {
			hint := fmt.Sprintf("%s for %s ms", in.Say(x.Both.Text), short(x.Both.ToMS-x.Both.FromMS))
			d.both = &box{class: "both", x: left, y: lanesTop, width: width, height: d.bottom - lanesTop, hint: hint}
		}
	}
	for i, lane := range x.Lanes {
		d.names = append(d.names, mark{4, laneMiddle(i) + 4, in.Say(lane.Name)})
		for _, s := range lane.Spans {
			if b, ok := at.box(i, lane, s, in); ok {
				d.boxes = append(d.boxes, b)
			}
		}
	}
	for _, s := range x.Steps {
		if s.AtMS >= from && s.AtMS <= to {
			hint := fmt.Sprintf("%+.1f ms · %s: %s", s.AtMS, in.Say(x.Lanes[s.Lane].Name), in.Say(s.Text))
			d.steps = append(d.steps, stepMark{at.at(s.AtMS), laneMiddle(s.Lane), laneMiddle(s.To), s.Alarm, hint})
		}
	}
	if m := x.Moment; m != nil && m.AtMS >= from && m.AtMS <= to {
		d.moment = &momentMark{at.at(m.AtMS), m.Alarm, anchorAt(at.at(m.AtMS)), in.Say(m.What)}
	}
	return d
}

// within is where a span begins and how wide it is, as far as it is shown.
func (s scale) within(span explain.Span) (left, width float64, ok bool) {
	if span.ToMS <= s.from || span.FromMS >= s.to {
		return 0, 0, false
	}
	left = s.at(max(span.FromMS, s.from))
	return left, s.at(min(span.ToMS, s.to)) - left, true
}

// box is the shape of a span in the i-th lane.
func (s scale) box(i int, lane explain.Lane, span explain.Span, in explain.Language) (box, bool) {
	left, width, ok := s.within(span)
	if !ok {
		return box{}, false
	}
	words := in.Say(span.Text)
	b := box{class: "s-" + string(span.Kind), x: left, width: width, y: laneTop(i) + 8, height: laneHeight - 16,
		hint: fmt.Sprintf("%s: %s, %+.1f to %+.1f ms", in.Say(lane.Name), words, span.FromMS, span.ToMS)}
	if span.Kind == explain.Waiting {
		b.y, b.height = laneMiddle(i)-2, 4
		return b, true
	}
	room := float64(text.StringWidthWithoutEscSequences(words))*letterWidth + 6
	if left, width, ok := s.within(uncovered(lane, span)); ok && width > room {
		b.inside = &mark{left + width/2, laneMiddle(i) + 4, words}
	}
	return b, true
}

// uncovered is a span up to where the next one lies over it.
func uncovered(lane explain.Lane, s explain.Span) explain.Span {
	rest := s
	for _, over := range lane.Spans {
		if over != s && over.FromMS >= s.FromMS && over.FromMS < rest.ToMS {
			rest.ToMS = over.FromMS
		}
	}
	return rest
}

// anchorAt keeps a text near the edge within the drawing.
func anchorAt(x float64) string {
	switch {
	case x > lanesRight-260:
		return "end"
	case x < lanesLeft+260:
		return "start"
	}
	return "mid"
}

// drawn writes the drawing.
func (l lanes) drawn(description string, in explain.Language) template.HTML {
	d := &svg{width: lanesWidth, height: l.bottom + 24}
	for _, m := range l.ticks {
		d.line("grid", m.x, lanesTop, m.x, l.bottom)
		d.text("tick mid", m.x, m.y, m.text)
	}
	d.text("tick", 4, l.bottom+15, in.Say(explain.Text{Phrase: explain.Milliseconds}))
	if l.both != nil {
		d.box(*l.both)
	}
	for i, m := range l.names {
		d.text("lane", m.x, m.y, m.text)
		d.line("base", lanesLeft, laneMiddle(i), lanesRight, laneMiddle(i))
	}
	for _, b := range l.boxes {
		d.box(b)
	}
	for _, s := range l.steps {
		if s.to != s.y {
			d.line("to", s.x, s.y, s.x, s.to)
		}
		class := "step"
		if s.alarm {
			class = "step alarm"
		}
		d.tag("circle", "", "class", class, "cx", s.x, "cy", s.y, "r", 4, "data-t", s.hint)
	}
	if m := l.moment; m != nil {
		class, sign := "moment", "◆ "
		if m.alarm {
			class, sign = "moment alarm", "▲ "
		}
		d.line(class, m.x, 18, m.x, l.bottom)
		d.text(class+" "+m.anchor, m.x, 13, sign+m.text)
	}
	return d.drawing("lanes", description)
}

func (s *svg) box(b box) {
	s.rect(b.class, b.x, b.y, b.width, b.height, b.hint)
	if b.inside != nil {
		s.text("in mid", b.inside.x, b.inside.y, b.inside.text)
	}
}

// closeUp is the part in which the second holder is at work, where that is too short to be seen
// in the whole.
func closeUp(x *explain.Explanation) (from, to float64, worth bool) {
	second := -1
	for i, lane := range x.Lanes {
		if lane.Kind == explain.HolderLane {
			second = i
		}
	}
	if second < 0 {
		return 0, 0, false
	}
	steps := 0
	for _, s := range x.Steps {
		if s.Lane != second || s.Text.Phrase == explain.Asks {
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
