package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/trial"
)

// Mermaid writes the interleaving as a sequence diagram that GitHub draws in Markdown.
func Mermaid(w io.Writer, c trial.Result) {
	fmt.Fprintln(w, "sequenceDiagram")
	x := c.Explanation
	if x == nil || len(mermaidSteps(x, columnsOf(x))) == 0 {
		mermaidSentence(w, c)
		return
	}
	cols := columnsOf(x)
	for i, name := range cols.names {
		fmt.Fprintf(w, "  participant p%d as %s\n", i, mermaidText(name))
	}
	marked := x.Moment == nil
	for _, s := range mermaidSteps(x, cols) {
		if !marked && s.AtMS > x.Moment.AtMS {
			mermaidMoment(w, cols, x.Moment)
			marked = true
		}
		from, to := cols.of[s.Column], cols.of[s.To]
		said := mermaidText(fmt.Sprintf("%+.1f ms: %s", s.AtMS, said(s.Text)))
		if from == to || to < 0 {
			fmt.Fprintf(w, "  Note over p%d: %s\n", from, said)
		} else {
			fmt.Fprintf(w, "  p%d->>p%d: %s\n", from, to, said)
		}
	}
	if !marked {
		mermaidMoment(w, cols, x.Moment)
	}
}

// mermaidSentence writes a diagram with the sentence alone. Mermaid draws nothing without a
// participant.
func mermaidSentence(w io.Writer, c trial.Result) {
	fmt.Fprintf(w, "  participant p0 as %s\n", mermaidText(c.Name()))
	lines := strings.Split(text.WrapSoft(mermaidText(sentence(c)), 60), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	fmt.Fprintf(w, "  Note over p0: %s\n", strings.Join(lines, "<br/>"))
}

// mermaidSteps leaves out the repetitions by the servers of a quorum.
func mermaidSteps(x *explain.Explanation, cols columns) []explain.Step {
	var steps []explain.Step
	last := map[string]float64{}
	for _, s := range x.Steps {
		if cols.of[s.Column] < 0 {
			continue
		}
		if x.Columns[s.Column].Kind == explain.LockColumn {
			text := said(s.Text)
			at, before := last[text]
			last[text] = s.AtMS
			if before && s.AtMS-at < 10 {
				continue
			}
		}
		steps = append(steps, s)
	}
	return steps
}

func mermaidMoment(w io.Writer, cols columns, m *explain.Moment) {
	sign := "✔"
	if m.Alarm {
		sign = "⚠"
	}
	fmt.Fprintf(w, "  Note over p0,p%d: %s %s\n", len(cols.names)-1, sign, mermaidText(fmt.Sprintf("%+.1f ms: %s", m.AtMS, said(m.What))))
}

// mermaidText escapes characters that end a line or begin an entity or a tag.
func mermaidText(s string) string {
	return strings.NewReplacer("#", "#35;", ";", "#59;", "<", "#lt;", "\n", " ").Replace(s)
}
