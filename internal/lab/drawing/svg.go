// Package drawing draws as SVG what happened in a cell: the columns of an explanation to scale, what
// lasts in a cell that runs, and charts of its requests. Colours and fonts are classes, which the
// page that shows a drawing has in its style sheet.
package drawing

import (
	"encoding/json"
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"

	"stocklock/internal/lab/words"
)

// SVG is the shapes of a drawing. The zero value has none. A hint is shown when a pointer rests on
// a shape, and is empty for none.
type SVG struct{ strings.Builder }

// Tag adds an element. Attributes are name and value in turn; one without a value is left out.
func (s *SVG) Tag(name, text string, attributes ...any) {
	s.WriteString("<" + name)
	for i := 0; i < len(attributes); i += 2 {
		if v := value(attributes[i+1]); v != "" {
			fmt.Fprintf(s, ` %s="%s"`, attributes[i], html.EscapeString(v))
		}
	}
	if text == "" {
		s.WriteString("/>")
		return
	}
	s.WriteString(">" + html.EscapeString(text) + "</" + name + ">")
}

// value writes a coordinate with at most one decimal.
func value(v any) string {
	if f, ok := v.(float64); ok {
		return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0")
	}
	return fmt.Sprint(v)
}

// Rect adds a rectangle. One that is too narrow to be seen becomes wider.
func (s *SVG) Rect(class string, x, y, width, height float64, hint string) {
	s.Tag("rect", "", "class", class, "x", x, "y", y, "width", max(width, 0.1), "height", height, "data-t", hint)
}

// Line adds a line between two points.
func (s *SVG) Line(class string, x1, y1, x2, y2 float64, hint string) {
	s.Tag("path", "", "class", class, "d", "M"+value(x1)+" "+value(y1)+"L"+value(x2)+" "+value(y2), "data-t", hint)
}

// dot adds a dot that stays round where the drawing is stretched: the end of a line of no length.
func (s *SVG) dot(class string, x, y float64, hint string) {
	s.Tag("path", "", "class", class, "d", "M"+value(x)+" "+value(y)+"h0", "data-t", hint)
}

func (s *SVG) text(class string, x, y float64, text string) {
	s.Tag("text", text, "class", class, "x", x, "y", y)
}

// picture is the whole drawing. Screen readers read the description.
func (s *SVG) picture(class, description string, width, height float64) string {
	return fmt.Sprintf(`<svg class="%s" viewBox="0 0 %s %s" role="img" aria-label="%s">%s</svg>`,
		class, value(width), value(height), html.EscapeString(description), s)
}

// scale maps values to coordinates.
type scale struct{ from, to, left, right float64 }

func (s scale) at(v float64) float64 {
	if s.to == s.from {
		return s.left
	}
	return s.left + (v-s.from)/(s.to-s.from)*(s.right-s.left)
}

// ticks are round values, about n of them.
func (s scale) ticks(n int) []float64 {
	span := s.to - s.from
	if span <= 0 {
		return nil
	}
	step := math.Pow(10, math.Floor(math.Log10(span/float64(n))))
	for _, times := range []float64{2, 2.5, 2} {
		if span/step > float64(n) {
			step *= times
		}
	}
	var at []float64
	first := math.Ceil(s.from / step)
	for i := range n + 1 { // a bound on the loop: a step can be too small to change v
		if v := (first + float64(i)) * step; v <= s.to+step/1e6 {
			at = append(at, v)
		}
	}
	return at
}

// Short writes a number with at most two decimals.
func Short(v float64) string {
	switch {
	case v == 0:
		return "0" // and not -0
	case v == math.Trunc(v) || math.Abs(v) >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	default:
		return strings.TrimRight(strings.TrimRight(strconv.FormatFloat(v, 'f', 2, 64), "0"), ".")
	}
}

// Words are what drawings say. A drawing has their numbers instead, such as {3}: it is drawn once for the readers of all
// languages. The zero value has none.
type Words struct {
	Texts   [][]words.Text // by number, what is said one after the other
	numbers map[string]int
}

// Say returns the number of what some texts say. What is the same in every language needs none.
func (w *Words) Say(texts ...words.Text) string {
	if len(texts) == 1 && texts[0].Key == "" && !strings.Contains(texts[0].Words, "{") {
		return texts[0].Words
	}
	said, err := json.Marshal(texts)
	if err != nil {
		panic(fmt.Sprintf("drawing: a text: %v", err)) // its facts are of a wrong type
	}
	n, known := w.numbers[string(said)]
	if !known {
		if w.numbers == nil {
			w.numbers = map[string]int{}
		}
		n = len(w.Texts)
		w.numbers[string(said)], w.Texts = n, append(w.Texts, texts)
	}
	return fmt.Sprintf("{%d}", n)
}
