package report

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
)

// The largest width of the drawing in the terminal, and the width of its first column.
const (
	drawingWidth = 100
	timeWidth    = 10
)

func (t Terminal) drawingWidth() int { return min(t.width(), drawingWidth) }

// Explain prints why a cell ended as it did: the cause, the interleaving in columns, the
// orders it speaks of, and how to see it again.
func (t Terminal) Explain(c trial.Result) {
	predicted := ""
	if !c.Surprise() && c.Verdict != verdict.Skipped {
		predicted = ", as predicted"
	}
	fmt.Fprintf(t.Out, "%s: %s%s\n", t.paint(text.Colors{text.Bold}, c.Name()), t.verdict(c, counted(c)), predicted)
	if sc, err := scenario.ByName(c.Scenario); err == nil {
		t.paragraph("what was done: " + sc.Doc)
	}
	x := c.Explanation
	if x != nil {
		fmt.Fprintln(t.Out)
	}
	t.paragraph(sentence(c))
	if x != nil {
		t.interleaving(x)
		t.rows(x)
	}
	if held := wouldHaveHeld(c); held != "" {
		fmt.Fprintf(t.Out, "\n%s\n", held)
	}
	fmt.Fprintf(t.Out, "\nsold %d of %d, oversold %d, lost updates %d, by %s in %.1f s\n", c.Sold, c.InitialStock, c.Oversold, c.LostUpdates, plural(int(c.Requests), "request"), c.Seconds)
	if c.Replay != "" {
		fmt.Fprintf(t.Out, "again: %s\n", brokenCommand(c.Replay, t.drawingWidth()))
	}
}

// said makes words of texts. It is the only place that knows the language of a report.
func said(texts ...explain.Text) string { return explain.English.Say(texts...) }

// sentence is the explanation of a cell in words.
func sentence(c trial.Result) string {
	switch {
	case c.Explanation != nil:
		return said(c.Explanation.Why...)
	case reason(c) != "":
		return reason(c)
	default:
		return "There is no trace of the cell: nothing can be said beyond the counts."
	}
}

func (t Terminal) paragraph(s string) {
	Terminal{Out: t.Out, Width: t.drawingWidth()}.wrapped(s)
}

// brokenCommand breaks a long command into lines, as a shell reads them.
func brokenCommand(command string, within int) string {
	var b strings.Builder
	width := len("again: ")
	for i, flag := range strings.Split(command, " --") {
		if i > 0 {
			flag = "--" + flag
			if width+len(flag)+3 > within {
				b.WriteString(" \\\n   ")
				width = 3
			}
			b.WriteByte(' ')
		}
		b.WriteString(flag)
		width += 1 + len(flag)
	}
	return b.String()
}

// columns are those of the terminal. The servers of a quorum share one column, and one
// without steps has none.
type columns struct {
	names []string
	of    []int // of an explanation -> of the terminal, -1 for none
}

func columnsOf(x *explain.Explanation) columns {
	c := columns{of: make([]int, len(x.Columns))}
	lock := -1
	for i, column := range x.Columns {
		c.of[i] = len(c.names)
		switch {
		case column.Kind == explain.OthersColumn:
			c.of[i] = -1
			continue
		case column.Kind == explain.LockColumn && lock >= 0:
			c.of[i] = lock
			continue
		case column.Kind == explain.LockColumn:
			lock = len(c.names)
			column.Name = explain.Text{Phrase: explain.AllLocks}
		case column.Kind == explain.FaultColumn && !hasSteps(x, i):
			c.of[i] = -1
			continue
		}
		c.names = append(c.names, said(column.Name))
	}
	return c
}

func hasSteps(x *explain.Explanation, column int) bool {
	for _, s := range x.Steps {
		if s.Column == column {
			return true
		}
	}
	return false
}

// line is one line of the drawing: the steps at a time, by column.
type line struct {
	at    float64
	cells []string
	alarm bool
}

// together is the time, in milliseconds, within which steps are put on one line.
const together = 0.05

// lines puts steps on lines. A step that several servers made at nearly the same time is one step.
func (c columns) lines(x *explain.Explanation) []line {
	var lines []line
	seen := map[string]int{} // the text of a column -> its line
	count := map[string]int{}
	for _, s := range x.Steps {
		at, text := c.of[s.Column], said(s.Text)
		if at < 0 {
			continue
		}
		if x.Columns[s.Column].Kind == explain.LockColumn {
			key := fmt.Sprint(at, text)
			if i, ok := seen[key]; ok && s.AtMS-lines[i].at < 10 && strings.HasPrefix(lines[i].cells[at], text) {
				count[key]++
				lines[i].cells[at] = fmt.Sprintf("%s ×%d", text, count[key])
				continue
			}
			seen[key], count[key] = len(lines), 1
		}
		if n := len(lines) - 1; n >= 0 && s.AtMS-lines[n].at < together && lines[n].cells[at] == "" {
			if _, isLock := seen[fmt.Sprint(at, text)]; isLock {
				seen[fmt.Sprint(at, text)] = n
			}
			lines[n].cells[at], lines[n].alarm = text, lines[n].alarm || s.Alarm
			continue
		}
		l := line{at: s.AtMS, cells: make([]string, len(c.names)), alarm: s.Alarm}
		l.cells[at] = text
		lines = append(lines, l)
	}
	return lines
}

func (t Terminal) interleaving(x *explain.Explanation) {
	c := columnsOf(x)
	if len(c.names) == 0 {
		return
	}
	width := min((t.drawingWidth()-timeWidth)/len(c.names), 26)
	fmt.Fprintln(t.Out)
	t.drawingLine(text.Colors{text.Bold}, "ms", c.names, width)
	fmt.Fprintln(t.Out, strings.Repeat("─", timeWidth+width*len(c.names)))
	marked := x.Moment == nil
	last := x.FromMS
	gap := max((x.ToMS-x.FromMS)/5, 20)
	for _, l := range c.lines(x) {
		if !marked && l.at > x.Moment.AtMS {
			t.moment(x.Moment)
			marked = true
		}
		if l.at-last > gap {
			fmt.Fprintf(t.Out, "%*s  %s\n", timeWidth-2, "⋮", t.paint(text.Colors{text.Faint}, fmt.Sprintf("%.0f ms", l.at-last)))
		}
		last = l.at
		colours := text.Colors{}
		if l.alarm {
			colours = text.Colors{text.FgHiRed, text.Bold}
		}
		t.drawingLine(colours, fmt.Sprintf("%+.1f", l.at), l.cells, width)
	}
	if !marked {
		t.moment(x.Moment)
	}
}

func (t Terminal) moment(m *explain.Moment) {
	sign, colours := "◆", text.Colors{text.FgHiGreen, text.Bold}
	if m.Alarm {
		sign, colours = "▲", text.Colors{text.FgHiRed, text.Bold}
	}
	at := fmt.Sprintf("%+.1f", m.AtMS)
	for _, line := range strings.Split(text.WrapSoft(sign+" "+said(m.What), t.drawingWidth()-timeWidth), "\n") {
		fmt.Fprintln(t.Out, t.paint(colours, fmt.Sprintf("%*s  %s", timeWidth-2, at, strings.TrimSpace(line))))
		at = ""
	}
}

// drawingLine prints one line, broken into several where a cell is too long for its column.
func (t Terminal) drawingLine(colours text.Colors, at string, cells []string, width int) {
	wrapped := make([][]string, len(cells))
	height := 1
	for i, cell := range cells {
		wrapped[i] = strings.Split(text.WrapSoft(cell, width-2), "\n")
		height = max(height, len(wrapped[i]))
	}
	for n := range height {
		var b strings.Builder
		fmt.Fprintf(&b, "%*s  ", timeWidth-2, at)
		at = ""
		for i := range cells {
			cell := ""
			if n < len(wrapped[i]) {
				cell = strings.TrimSpace(wrapped[i][n])
			}
			b.WriteString(text.Pad(cell, width, ' '))
		}
		printed := strings.TrimRight(b.String(), " ")
		if len(colours) > 0 {
			printed = t.paint(colours, printed)
		}
		fmt.Fprintln(t.Out, printed)
	}
}

func (t Terminal) rows(x *explain.Explanation) {
	if len(x.Rows) == 0 {
		return
	}
	fmt.Fprintln(t.Out, "\nThe orders in MySQL, with the place of their commits:")
	for _, r := range x.Rows {
		token := ""
		if r.Token != 0 {
			token = fmt.Sprintf(", token %d", r.Token)
		}
		fmt.Fprintf(t.Out, "  order %d (commit %d): request %s on %s read %d and wrote %d%s\n", r.ID, r.Nth, r.Request, r.Shop, r.Read, r.Written, token)
	}
}
