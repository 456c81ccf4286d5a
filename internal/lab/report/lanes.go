package report

import (
	"fmt"
	"html/template"

	"stocklock/internal/lab/explain"
)

// The size of a drawing of lanes.
const (
	lanesWidth = 1000.0
	lanesLeft  = 178.0
	lanesRight = 988.0
	lanesTop   = 30.0
	laneHeight = 36.0
)

// lanesDrawing draws the interleaving between two times to scale: one lane for each holder, for the
// lock in each Redis, for the row and for the faults.
func lanesDrawing(x *explain.Explanation, from, to float64, description string) template.HTML {
	bottom := lanesTop + laneHeight*float64(len(x.Lanes))
	d := &svg{width: lanesWidth, height: bottom + 24}
	at := scale{from, to, lanesLeft, lanesRight}
	within := func(s explain.Span) (left, width float64, ok bool) {
		if s.ToMS <= from || s.FromMS >= to {
			return 0, 0, false
		}
		left = at.at(max(s.FromMS, from))
		return left, at.at(min(s.ToMS, to)) - left, true
	}
	for _, v := range at.ticks(9) {
		d.line("grid", at.at(v), lanesTop, at.at(v), bottom)
		d.text("tick mid", at.at(v), bottom+15, short(v))
	}
	d.text("tick", 4, bottom+15, "milliseconds")
	if x.Both != nil {
		if left, width, ok := within(*x.Both); ok {
			d.rect("both", left, lanesTop, width, bottom-lanesTop, fmt.Sprintf("%s for %s ms", x.Both.Text, short(x.Both.ToMS-x.Both.FromMS)))
		}
	}
	for i, lane := range x.Lanes {
		y := lanesTop + laneHeight*float64(i)
		d.text("lane", 4, y+laneHeight/2+4, lane.Name)
		d.line("base", lanesLeft, y+laneHeight/2, lanesRight, y+laneHeight/2)
		for _, s := range lane.Spans {
			left, width, ok := within(s)
			if !ok {
				continue
			}
			top, height := y+8, laneHeight-16
			if s.Kind == explain.Waiting {
				top, height = y+laneHeight/2-2, 4
			}
			d.rect("s-"+string(s.Kind), left, top, width, height, fmt.Sprintf("%s: %s, %+.1f to %+.1f ms", lane.Name, s.Text, s.FromMS, s.ToMS))
			if left, width, ok = within(uncovered(lane, s)); !ok {
				continue
			}
			if room := float64(len(s.Text))*7 + 6; s.Kind != explain.Waiting && width > room {
				d.text("in mid", left+width/2, y+laneHeight/2+4, s.Text)
			}
		}
	}
	middle := func(lane int) float64 { return lanesTop + laneHeight*(float64(lane)+0.5) }
	for _, s := range x.Steps {
		if s.AtMS < from || s.AtMS > to {
			continue
		}
		left := at.at(s.AtMS)
		class := "step"
		if s.Alarm {
			class = "step alarm"
		}
		if s.To != s.Lane {
			d.line("to", left, middle(s.Lane), left, middle(s.To))
		}
		d.tag("circle", "", "class", class, "cx", left, "cy", middle(s.Lane), "r", 4, "data-t", fmt.Sprintf("%+.1f ms · %s: %s", s.AtMS, x.Lanes[s.Lane].Name, s.Text))
	}
	if m := x.Moment; m != nil && m.AtMS >= from && m.AtMS <= to {
		class, sign := "moment", "◆ "
		if m.Alarm {
			class, sign = "moment alarm", "▲ "
		}
		left := at.at(m.AtMS)
		d.line(class, left, 18, left, bottom)
		anchor := "mid"
		switch {
		case left > lanesRight-260:
			anchor = "end"
		case left < lanesLeft+260:
			anchor = "start"
		}
		d.text(class+" "+anchor, left, 13, sign+m.What)
	}
	return d.drawing("lanes", description)
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
		if s.Lane != second || s.Text == "asks" {
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
