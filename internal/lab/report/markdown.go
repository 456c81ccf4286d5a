package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"stocklock/internal/lab/drawing"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/words"
)

// Markdown writes what one pastes into an issue: the comparison under contention, the matrix where there are several
// scenarios, the surprises with the command that repeats them, and the drawings of the terminal. Of a matrix, only
// surprises are drawn.
func (r Report) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**\n", markdownText(r.title(words.English)))
	if r.Interrupted {
		b.WriteString("\n**Interrupted: cells are missing.**\n")
	}
	if compared, others := r.Compared(); len(compared) > 0 {
		r.markdownComparison(&b, compared, others)
	}
	if strategies, scenarios := r.Places(r.Cells); len(scenarios) > 1 {
		header, rule := []string{"strategy"}, []string{"---"}
		for _, sc := range scenarios {
			header, rule = append(header, markdownText(sc.Name)), append(rule, "---")
		}
		b.WriteString("\n" + markdownRow(header) + markdownRow(rule))
		cells := r.byPlace()
		for _, s := range strategies {
			row := []string{tableCode(s.Name)}
			for _, sc := range scenarios {
				row = append(row, markdownVerdict(cells[place{s.Name, sc.Name}]))
			}
			b.WriteString(markdownRow(row))
		}
	}
	for _, c := range r.Surprises() {
		fmt.Fprintf(&b, "\n**Surprise:** %s: %s, expected %s. Again: %s\n", markdownCode(c.Name()),
			markdownText(string(c.Verdict)), markdownText(string(c.Expected)), markdownCode(c.Replay))
	}
	drawn := r.Surprises()
	if !r.isMatrix() {
		drawn = r.telling()
	}
	for _, c := range drawn {
		var drawing strings.Builder
		Terminal{Out: &drawing}.Explain(c)
		b.WriteString("\n    " + strings.ReplaceAll(strings.TrimSpace(drawing.String()), "\n", "\n    ") + "\n") // indented, it is code
	}
	e := r.Environment
	fmt.Fprintf(&b, "\n%s: %s\n", markdownText(strings.Join(append(e.short(), e.Go), ", ")), markdownCode(e.Command))
	_, err := io.WriteString(w, b.String())
	return err
}

func (r Report) markdownComparison(b *strings.Builder, cells []trial.Result, others []string) {
	if note := r.Environment.sideBySide(); !note.IsZero() {
		fmt.Fprintf(b, "\n%s\n", note)
	}
	shown := metricsIn(inMarkdown, cells)
	header, rule := []string{"strategy"}, []string{"---"}
	for _, m := range shown {
		header, rule = append(header, m.title(words.English)), append(rule, "--:")
	}
	b.WriteString("\n" + markdownRow(append(header, "verdict")) + markdownRow(append(rule, "---")))
	for _, c := range cells {
		row := []string{tableCode(c.Strategy)}
		for _, m := range shown {
			row = append(row, m.text(c, drawing.Short))
		}
		b.WriteString(markdownRow(append(row, markdownVerdict(c))))
	}
	if len(others) > 0 {
		fmt.Fprintf(b, "\nMeasured under other conditions, and not to be compared with these: %s.\n", markdownText(strings.Join(others, ", ")))
	}
}

func markdownRow(cells []string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

func markdownVerdict(c trial.Result) string {
	word := markdownText(counted(words.English, c))
	if c.Surprise() {
		return "**" + word + "!**"
	}
	return word
}

// markdownText escapes what would be HTML, emphasis, a link, or the end of a table's cell.
func markdownText(s string) string {
	return strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, "&", `\&`, "|", `\|`, "\n", " ").Replace(s)
}

// markdownCode is code within a line. Nothing can be escaped there: characters that would end it
// are replaced.
func markdownCode(s string) string {
	return "`" + strings.NewReplacer("`", "'", "\n", " ").Replace(s) + "`"
}

// tableCode is code in a table, where a bar ends the cell unless it is escaped.
func tableCode(s string) string { return strings.ReplaceAll(markdownCode(s), "|", `\|`) }

// CSV writes the numbers, one line a cell. A number that a cell does not have is empty.
func (r Report) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	header := []string{"strategy", "scenario", "seed", "runs", "agreed", "verdict", "expected", "cause", "initial_stock"}
	for _, m := range metrics {
		header = append(header, m.csvName())
	}
	out.Write(header)
	for _, c := range r.InOrder() {
		cause := ""
		if c.Explanation != nil {
			cause = string(c.Explanation.Cause)
		}
		line := []string{c.Strategy, c.Scenario, fmt.Sprint(c.Seed), fmt.Sprint(c.Runs), fmt.Sprint(c.Agreed),
			string(c.Verdict), string(c.Expected), cause, fmt.Sprint(c.InitialStock)}
		for _, m := range metrics {
			value := ""
			if v, ok := m.value(c); ok {
				value = strconv.FormatFloat(v, 'f', -1, 64)
			}
			line = append(line, value)
		}
		out.Write(line)
	}
	out.Flush()
	return out.Error()
}
