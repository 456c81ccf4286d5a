package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// svg builds one drawing. Colours and fonts are classes in html/style.css.
type svg struct {
	body          strings.Builder
	width, height float64
}

// tag adds an element; attributes are name and value in turn.
func (s *svg) tag(name, text string, attributes ...any) {
	s.body.WriteString("<" + name)
	for i := 0; i < len(attributes); i += 2 {
		fmt.Fprintf(&s.body, ` %s="%s"`, attributes[i], html.EscapeString(value(attributes[i+1])))
	}
	if text == "" {
		s.body.WriteString("/>")
		return
	}
	s.body.WriteString(">" + html.EscapeString(text) + "</" + name + ">")
}

// value writes a coordinate with at most one decimal.
func value(v any) string {
	if f, ok := v.(float64); ok {
		return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0")
	}
	return fmt.Sprint(v)
}

func (s *svg) rect(class string, x, y, w, h float64, hint string) {
	attributes := []any{"class", class, "x", x, "y", y, "width", max(w, 0.5), "height", h}
	if hint != "" {
		attributes = append(attributes, "data-t", hint)
	}
	s.tag("rect", "", attributes...)
}

func (s *svg) line(class string, x1, y1, x2, y2 float64) {
	s.tag("path", "", "class", class, "d", "M"+value(x1)+" "+value(y1)+"L"+value(x2)+" "+value(y2))
}

func (s *svg) text(class string, x, y float64, text string) {
	s.tag("text", text, "class", class, "x", x, "y", y)
}

// drawing ends the picture. Screen readers read the description.
func (s *svg) drawing(class, description string) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg class="%s" viewBox="0 0 %s %s" role="img" aria-label="%s">%s</svg>`,
		class, value(s.width), value(s.height), html.EscapeString(description), s.body.String()))
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

// short writes a number with at most two decimals.
func short(v float64) string {
	switch {
	case v == 0:
		return "0" // and not -0
	case v == math.Trunc(v) || math.Abs(v) >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	default:
		return strings.TrimRight(strings.TrimRight(strconv.FormatFloat(v, 'f', 2, 64), "0"), ".")
	}
}
