package drawing

import (
	"stocklock/internal/lab/explain"
)

const (
	spansTop     = 22.0 // above the first column stands what decided the cell
	columnHeight = 36.0
)

// Column is what a drawing shows of one thing in the course of time, which goes to the right.
type Column struct {
	Kind   string  `json:"kind"` // a kind of package explain; or shop, lock or stock, of a record
	Name   string  `json:"name"`
	Top    float64 `json:"top"` // in pixels
	Height float64 `json:"height"`
}

// Bottom is the lower edge.
func (c Column) Bottom() float64 { return c.Top + c.Height }

func (c Column) middle() float64 { return c.Top + c.Height/2 }

// Interleaving is a drawing of an explanation to scale: a column for each holder, for the lock in each Redis, for the row
// and for the faults. Its coordinates are milliseconds and pixels: a page stretches it, and moves its window.
type Interleaving struct {
	Columns []Column    `json:"lanes"`
	Height  float64     `json:"height"`
	FromMS  float64     `json:"from_ms"`
	ToMS    float64     `json:"to_ms"`
	Closer  *[2]float64 `json:"closer,omitempty"` // a period for which the whole is too coarse, nil for none
	Shapes  string      `json:"shapes"`
	Moment  *moment     `json:"moment,omitempty"` // that decided the cell
}

type moment struct {
	AtMS  float64 `json:"at_ms"`
	What  string  `json:"what"`
	Alarm bool    `json:"alarm,omitempty"`
}

// NewInterleaving draws an explanation. It is nil where there is nothing to draw.
func NewInterleaving(x *explain.Explanation, all *Words) *Interleaving {
	if len(x.Columns) == 0 {
		return nil
	}
	d, i := &SVG{}, &Interleaving{FromMS: x.FromMS, ToMS: x.ToMS, Height: spansTop}
	for _, c := range x.Columns {
		i.Columns = append(i.Columns, Column{string(c.Kind), all.Say(c.Name), i.Height, columnHeight})
		i.Height += columnHeight
	}
	if b := x.Both; b != nil {
		d.Rect("both", b.FromMS, spansTop, b.ToMS-b.FromMS, i.Height-spansTop, all.Say(b.Text))
	}
	for n, c := range x.Columns {
		for _, s := range c.Spans {
			top, height := i.Columns[n].Top+8, columnHeight-16
			if s.Kind == explain.Waiting {
				top, height = i.Columns[n].middle()-2, 4
			}
			d.Rect("s-"+string(s.Kind), s.FromMS, top, s.ToMS-s.FromMS, height, all.Say(s.Text))
		}
	}
	for _, s := range x.Steps {
		middle, class := i.Columns[s.Column].middle(), "step"
		if s.To != s.Column {
			d.Line("to", s.AtMS, middle, s.AtMS, i.Columns[s.To].middle(), "")
		}
		if s.Alarm {
			class = "step alarm"
		}
		d.dot(class, s.AtMS, middle, all.Say(s.Text))
	}
	if m := x.Moment; m != nil {
		class := "moment"
		if m.Alarm {
			class = "moment alarm"
		}
		i.Moment = &moment{m.AtMS, all.Say(m.What), m.Alarm}
		d.Line(class, m.AtMS, spansTop, m.AtMS, i.Height, i.Moment.What)
	}
	i.Shapes = d.String()
	if from, to, worth := closer(x); worth {
		i.Closer = &[2]float64{from, to}
	}
	return i
}

// closer is the period in which the second holder is at work, where that is too short to be seen
// in the whole.
func closer(x *explain.Explanation) (from, to float64, worth bool) {
	second := -1
	for i, c := range x.Columns {
		if c.Kind == explain.HolderColumn {
			second = i
		}
	}
	steps := 0
	for _, s := range x.Steps {
		if s.Column != second || s.Text.Key == explain.Asks {
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
