package report

import (
	"cmp"
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
	x := cmp.Or(c.Explanation, &explain.Explanation{})
	cols := columnsOf(x)
	steps := cols.steps(x)
	if len(cols.names) == 0 || len(steps) == 0 {
		mermaidSentence(w, c)
		return
	}
	for i, name := range cols.names {
		fmt.Fprintf(w, "  participant p%d as %s\n", i, mermaidText(name))
	}
	for _, s := range steps {
		line := mermaidText(fmt.Sprintf("%+.1f ms: %s", s.at, s.text))
		switch {
		case s.moment != nil:
			sign := "✔"
			if s.moment.Alarm {
				sign = "⚠"
			}
			fmt.Fprintf(w, "  Note over p0,p%d: %s %s%s\n", len(cols.names)-1, sign, line, mermaidText(said(s.moment.What)))
		case s.from == s.to || s.to < 0:
			fmt.Fprintf(w, "  Note over p%d: %s\n", s.from, line)
		default:
			fmt.Fprintf(w, "  p%d->>p%d: %s\n", s.from, s.to, line)
		}
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

// mermaidText escapes characters that end a line or begin an entity or a tag.
func mermaidText(s string) string {
	return strings.NewReplacer("#", "#35;", ";", "#59;", "<", "#lt;", "\n", " ").Replace(s)
}
